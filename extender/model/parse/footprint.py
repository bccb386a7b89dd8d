"""Bound pods, of which there are many, most of them alike: what is written alike is added up once."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from extender.model.footprint import PODS, Footprint, amounts_of, requested
from extender.model.names import NodeName, Uid
from extender.model.node import FINISHED, Container
from extender.model.parse.alike import alike
from extender.model.parse.fields import Fields, Malformed, shared_place, shared_soon
from extender.model.parse.metadata import key_of
from extender.model.parse.resize import STATUSES, UNTOLD, Asking, Json, Written, items_of, sides_of, wholes_of
from extender.model.quantity import NANO, Amounts, Quantity, quantity_of

ALIKE: Final = 4096
# Letters of what a pod requests up to which it is worth the memory.
MOST_LETTERS: Final = 2048
# Claims of one pod that are remembered.
MOST_CLAIMS: Final = 64
OF_SPEC: Final = ("initContainers", "containers", "resources", "overhead")
OF_STATUS: Final = (*STATUSES, "allocatedResources", "resources", "conditions")


def footprint_of(fields: Fields) -> Footprint:
    """Read what a bound pod takes; raise Malformed where it makes no sense."""
    metadata, spec = fields.child("metadata"), fields.child("spec")
    key, node, uid = key_of(metadata), NodeName(shared_place(spec.required("nodeName"))), Uid(metadata.text("uid"))
    status = fields.child("status")
    if status.text("phase") in FINISHED:
        return Footprint(key=key, uid=uid, node=node)
    claims = _claims_in(spec, status)
    scheduler = shared_soon(spec.text("schedulerName")) if claims else ""
    return Footprint(key=key, uid=uid, node=node, amounts=_amounts(fields, ""), claims=claims, scheduler=scheduler)


def _claims_in(spec: Fields, status: Fields) -> str:
    """Name the first claims that the pod has, as far as they are made. Most pods have none, and none is to be large."""
    if not (spec.has("resourceClaims") or status.has("extendedResourceClaimStatus")):
        return ""
    direct = [entry.text("resourceClaimName") for entry in spec.objects("resourceClaims")]
    made = [entry.text("resourceClaimName") for entry in status.objects("resourceClaimStatuses")]
    extended = status.child("extendedResourceClaimStatus").text("resourceClaimName")
    return " ".join([name for name in (extended, *direct, *made) if name][:MOST_CLAIMS])


def amounts_in(spec: Fields) -> Amounts:
    """Add up what a pod with *spec* takes that waits."""
    return _added(spec, Fields({}, ""))


def _added(spec: Fields, status: Fields) -> Amounts:
    """Add up in a hurry: only where that does not go well the pod is read field by field."""
    try:
        return _summed(spec.raw, status.raw)
    except (AttributeError, TypeError, ValueError) as error:
        _find_fault(spec, status)
        raise Malformed(spec.path, str(error)) from error


def _written(pod: Fields) -> object:
    """Pick what is looked at: of a pod that is read as a whole most is something else."""
    spec, status = pod.raw["spec"], pod.raw.get("status") or UNTOLD
    return [spec.get(name) for name in OF_SPEC], [status.get(name) for name in OF_STATUS]


_amounts: Final = alike(lambda pod, _version: _added(pod.child("spec"), pod.child("status")), ALIKE, _written)


def _summed(spec: Json, status: Json) -> Amounts:
    """Add up as Kubernetes does: what the pod requests as a whole comes before what its containers do."""
    total = _most([requested(map(_container, side)) for side in sides_of(spec, status)])
    total |= _most([dict(_nanos(whole)) for whole in wholes_of(spec, status)])
    for name, nanos in _nanos(items_of(spec.get("overhead"))):
        total[name] = total.get(name, 0) + nanos
    amounts = amounts_of(total | {PODS: NANO})
    return _shared(amounts) if sum(map(len, total)) <= MOST_LETTERS else amounts


def _container(asking: Asking) -> Container:
    is_init, is_sidecar, written = asking
    return Container(name="", requests=_read(written), is_init=is_init, is_sidecar=is_sidecar)


def _most(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    return {name: max(part.get(name, 0) for part in parts) for name in set[str]().union(*parts)}


# What is written differently may come to the same.
_shared = lru_cache(maxsize=ALIKE)(tuple[tuple[str, int], ...])


def _read(written: Written) -> tuple[tuple[str, Quantity], ...]:
    return tuple((name, quantity_of(value)) for name, value in written)


def _nanos(written: Written) -> Iterator[tuple[str, int]]:
    return ((name, quantity.nanos) for name, quantity in _read(written))


def _find_fault(spec: Fields, status: Fields) -> None:
    """Raise Malformed for the first field that cannot be read."""
    containers = [entry for name in ("initContainers", "containers") for entry in spec.objects(name)]
    told = [entry for name in STATUSES for entry in status.objects(name)]
    for entry in (*containers, *told):
        entry.text("name")
    for entry in (*containers, spec, *told, status):
        entry.child("resources").quantities("requests")
    for fields, name in ((spec, "overhead"), *((entry, "allocatedResources") for entry in (*told, status))):
        fields.quantities(name)
    tuple(status.objects("conditions"))
