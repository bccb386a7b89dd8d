"""Bound pods, of which there are many, most of them alike: what is written alike is added up once."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from extender.model.footprint import PODS, Footprint, amounts_of, requested
from extender.model.names import NodeName, Uid
from extender.model.node import FINISHED, Container
from extender.model.parse.fields import Fields, Malformed, shared_place, shared_soon
from extender.model.parse.metadata import key_of
from extender.model.quantity import NANO, Amounts, Quantity, quantity_of

# Requests as they are written, and those of a container with whether it is an init container and a sidecar.
Written = tuple[tuple[str, Any], ...]
Asking = tuple[bool, bool, Written]

ALIKE: Final = 4096
# Containers of pods that are worth the memory, and letters of what these request.
MOST_CONTAINERS: Final = 64
MOST_LETTERS: Final = 2048
# Claims of one pod that are remembered.
MOST_CLAIMS: Final = 64
# What a pod can request as a whole; other resources are those of its containers, whatever else is written.
OF_PODS: Final = ("cpu", "memory")
OF_PODS_PREFIX: Final = "hugepages-"


def footprint_of(fields: Fields) -> Footprint:
    """Read what a bound pod takes; raise Malformed where it makes no sense."""
    metadata, spec = fields.child("metadata"), fields.child("spec")
    key, node, uid = key_of(metadata), NodeName(shared_place(spec.required("nodeName"))), Uid(metadata.text("uid"))
    status = fields.child("status")
    if status.text("phase") in FINISHED:
        return Footprint(key=key, uid=uid, node=node)
    claims = _claims_in(spec, status)
    scheduler = shared_soon(spec.text("schedulerName")) if claims else ""
    return Footprint(key=key, uid=uid, node=node, amounts=amounts_in(spec), claims=claims, scheduler=scheduler)


def _claims_in(spec: Fields, status: Fields) -> str:
    """Name the first claims that the pod has, as far as they are made. Most pods have none, and none is to be large."""
    if not (spec.has("resourceClaims") or status.has("extendedResourceClaimStatus")):
        return ""
    direct = [entry.text("resourceClaimName") for entry in spec.objects("resourceClaims")]
    made = [entry.text("resourceClaimName") for entry in status.objects("resourceClaimStatuses")]
    extended = status.child("extendedResourceClaimStatus").text("resourceClaimName")
    return " ".join([name for name in (extended, *direct, *made) if name][:MOST_CLAIMS])


def amounts_in(spec: Fields) -> Amounts:
    """Add up what the pod with *spec* takes, in a hurry: only where that does not go well it is read field by field."""
    try:
        asking, whole = tuple(_asking(spec.raw)), _written(spec.raw.get("resources"))
        letters = sum([len(name) + len(str(value)) for _, _, written in asking for name, value in written])
        is_short = len(asking) <= MOST_CONTAINERS and letters <= MOST_LETTERS
        return (_summed if is_short else _summed.__wrapped__)(asking, whole, _items(spec.raw.get("overhead")))
    except (AttributeError, TypeError, ValueError) as error:
        _find_fault(spec)
        raise Malformed(spec.path, str(error)) from error


def _asking(spec: dict[str, Any]) -> Iterator[Asking]:
    for entry in spec.get("initContainers") or ():
        yield True, entry.get("restartPolicy") == "Always", _written(entry.get("resources"))
    for entry in spec.get("containers") or ():
        yield False, False, _written(entry.get("resources"))


def _written(resources: dict[str, Any] | None) -> Written:
    return _items(resources.get("requests")) if resources else ()


def _items(requests: dict[str, Any] | None) -> Written:
    return tuple(requests.items()) if requests else ()


@lru_cache(maxsize=ALIKE)
def _summed(asking: tuple[Asking, ...], whole: Written, overhead: Written) -> Amounts:
    """Add up as Kubernetes does: what the pod requests as a whole comes before what its containers do."""
    total = requested(
        Container(name="", requests=_read(written), is_init=is_init, is_sidecar=is_sidecar)
        for is_init, is_sidecar, written in asking
    )
    total |= {name: amount.nanos for name, amount in _read(whole) if _is_of_pods(name)}
    for name, amount in _read(overhead):
        total[name] = total.get(name, 0) + amount.nanos
    amounts = amounts_of(total | {PODS: NANO})
    return _shared(amounts) if sum(map(len, total)) <= MOST_LETTERS else amounts


# What is written differently may come to the same.
_shared = lru_cache(maxsize=ALIKE)(tuple[tuple[str, int], ...])


def _read(written: Written) -> tuple[tuple[str, Quantity], ...]:
    return tuple((name, quantity_of(value)) for name, value in written)


def _is_of_pods(name: str) -> bool:
    return name in OF_PODS or name.startswith(OF_PODS_PREFIX)


def _find_fault(spec: Fields) -> None:
    """Raise Malformed for the first field that cannot be read."""
    for name in ("initContainers", "containers"):
        for entry in spec.objects(name):
            entry.child("resources").quantities("requests")
    spec.child("resources").quantities("requests")
    spec.quantities("overhead")
