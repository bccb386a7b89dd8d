"""What a pod takes of its node."""

from collections.abc import Iterable, Mapping
from typing import Final

from extender.model.frozen import dataclass
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Container
from extender.model.quantity import MAX_INT64, NANO, Amounts, Quantity

CPU: Final = "cpu"
# One of these for each pod, as Kubernetes counts them among what a node has.
PODS: Final = "pods"
# More than any node has of anything, and so little that those of eight thousand pods are still added in 64 bits.
MOST: Final = 1 << 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """A bound pod; one that has finished takes nothing. Most pods are like many others and share their *amounts*.

    *claims* are those that it names itself, and those that its status says were made for it, in one string with spaces
    between them: there are tens of thousands. Where there are none the *scheduler* does not matter.
    """

    key: ObjectKey
    uid: Uid
    node: NodeName
    amounts: Amounts = ()
    claims: str = ""
    scheduler: str = ""


def requested(containers: Iterable[Container]) -> dict[str, int]:
    """Sum what *containers* request, init containers first, in nano units.

    Those that last are there together; an init container runs beside the sidecars that began before it.
    """
    lasting, sidecars, peak = dict[str, int](), dict[str, int](), dict[str, int]()
    for item in containers:
        for name, quantity in item.requests:
            if item.is_init and not item.is_sidecar:
                peak[name] = max(peak.get(name, 0), quantity.nanos + sidecars.get(name, 0))
                continue
            lasting[name] = lasting.get(name, 0) + quantity.nanos
            if item.is_sidecar:
                sidecars[name] = sidecars.get(name, 0) + quantity.nanos
    # Of what an init container does not request all sidecars together have at least as much as those before it.
    return {name: max(lasting.get(name, 0), peak.get(name, 0)) for name in lasting | peak}


def amounts_of(requests: Mapping[str, int]) -> Amounts:
    """Return what a pod that requests so many nano units takes."""
    counted = ((name, amount(name, Quantity(nanos))) for name, nanos in sorted(requests.items()))
    return tuple((name, number) for name, number in counted if number)


def amount(name: str, quantity: Quantity) -> int:
    """Count *quantity* of a resource as Kubernetes does, up to what can be added: fractions are rounded up.

    What int64 does not hold is nothing to kube-scheduler, or less: who asks for so much is let in and keeps nobody out.
    """
    unit = NANO // 1000 if name == CPU else NANO
    if abs(quantity.nanos) > MAX_INT64 * unit:
        return 0
    return max(-MOST, min(MOST, quantity.milli if name == CPU else quantity.whole))
