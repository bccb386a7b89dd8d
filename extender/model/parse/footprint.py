"""Bound pods, of which there are many, most of them alike: what is written alike is added up once."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from extender.model.footprint import PODS, Amounts, Footprint, amounts_of, requested
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import FINISHED, Container
from extender.model.parse.fields import Fields, Malformed, quantity_at, shared_name
from extender.model.quantity import NANO, Quantity, parse_quantity

# Requests as they are written, and those of a container with whether it is an init container and a sidecar.
Written = tuple[tuple[str, str], ...]
Asking = tuple[bool, bool, Written]

ALIKE: Final = 4096
# What a pod can request as a whole; other resources are those of its containers, whatever else is written.
OF_PODS: Final = ("cpu", "memory")
OF_PODS_PREFIX: Final = "hugepages-"


def footprint_of(fields: Fields) -> Footprint:
    """Read what a bound pod takes; raise Malformed where it makes no sense."""
    metadata, spec = fields.child("metadata"), fields.child("spec")
    key = ObjectKey(shared_name(metadata.text("namespace")), metadata.required("name"))
    node, uid = NodeName(shared_name(spec.required("nodeName"))), Uid(metadata.text("uid"))
    has_finished = fields.child("status").text("phase") in FINISHED
    return Footprint(key=key, uid=uid, node=node, amounts=() if has_finished else _amounts(spec))


def _amounts(spec: Fields) -> Amounts:
    asking = tuple(_asking(spec))
    whole, overhead = _written(spec.child("resources").child("requests")), _written(spec.child("overhead"))
    try:
        return _summed(asking, whole, overhead)
    except ValueError as error:
        _find_fault(spec)
        raise Malformed(spec.path, str(error)) from error


def _asking(spec: Fields) -> Iterator[Asking]:
    for entry in spec.objects("initContainers"):
        is_sidecar = entry.text("restartPolicy") == "Always"
        yield True, is_sidecar, _written(entry.child("resources").child("requests"))
    for entry in spec.objects("containers"):
        yield False, False, _written(entry.child("resources").child("requests"))


def _written(requests: Fields) -> Written:
    """Return requests as they are written; numbers, which stand for texts, as texts."""
    return tuple(
        (name, value if isinstance(value, str) else str(quantity_at(value, f"{requests.path}[{name}]")))
        for name, value in requests.raw.items()
    )


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
    return _shared(amounts_of(total | {PODS: NANO}))


# What is written differently may come to the same.
_shared = lru_cache(maxsize=ALIKE)(tuple[tuple[str, int], ...])


def _read(written: Written) -> tuple[tuple[str, Quantity], ...]:
    return tuple((name, parse_quantity(text.strip())) for name, text in written)


def _is_of_pods(name: str) -> bool:
    return name in OF_PODS or name.startswith(OF_PODS_PREFIX)


def _find_fault(spec: Fields) -> None:
    """Name the quantity that cannot be read."""
    for name in ("initContainers", "containers"):
        for entry in spec.objects(name):
            entry.child("resources").quantities("requests")
    spec.child("resources").quantities("requests")
    spec.quantities("overhead")
