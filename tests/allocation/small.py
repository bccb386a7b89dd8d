"""Clusters and questions of a few words, for claims about one thing."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from extender.allocation.choose import choose
from extender.allocation.features import ALL
from extender.allocation.fit import Fitter
from extender.allocation.question import Question, ask
from extender.allocation.snapshot import Snapshot
from extender.allocation.verdict import VERDICTS, Verdict
from extender.model.change import Kind, Listed, Noun
from extender.model.claim import (
    AllocatedDevice,
    Allocation,
    ClaimSpec,
    Constraint,
    DeviceClass,
    DeviceRequest,
    RequestSlot,
    ResourceClaim,
    Selector,
)
from extender.model.device import Attribute, Capacity, Device, NodeSelection, RequestPolicy, ResourceSlice, Traits
from extender.model.names import ClassName, DeviceKey, DeviceName, DriverName, NodeName, ObjectKey, PoolName, Uid
from extender.model.node import Node
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from extender.model.quantity import parse_quantity
from extender.state.cluster import Cluster

DRIVER = DriverName("gpu.example.com")
ANY = ClassName("any")
CLASSES = {ANY: DeviceClass(name=ANY)}


def device(
    name: str,
    attributes: Mapping[str, int | str] | None = None,
    capacity: Mapping[str, str] | None = None,
    policy: RequestPolicy | None = None,
    **traits: Any,
) -> Device:
    """Make a device; a policy is that of all its capacities."""
    valued = tuple(
        (key, Attribute("int" if isinstance(value, int) else "string", value))
        for key, value in sorted((attributes or {}).items())
    )
    amounts = tuple((key, Capacity(parse_quantity(text), policy)) for key, text in sorted((capacity or {}).items()))
    return Device(DeviceName(name), valued, amounts, Traits(**traits))


def published(pool: str, *devices: Device, name: str = "", count: int = 1, **selection: Any) -> ResourceSlice:
    """Publish devices on the node that is called like their pool, or where *selection* says."""
    place = NodeSelection(**(selection or {"node_name": NodeName(pool)}))
    return ResourceSlice(
        name=name or pool,
        driver=DRIVER,
        pool=PoolName(pool),
        generation=1,
        slice_count=count,
        selection=place,
        devices=devices,
    )


def selector(*zones: str) -> NodeSelector:
    """Select the nodes of some zones, one term for each."""
    wanted = (Requirement(key="zone", operator="In", values=(zone,)) for zone in zones)
    return NodeSelector(tuple(NodeSelectorTerm(expressions=(item,)) for item in wanted))


def node(name: str, zone: str = "", **parts: Any) -> Node:
    return Node(name=NodeName(name), labels=(("zone", zone),) if zone else (), **parts)


def request(
    count: int = 1, *, selectors: Sequence[str] = (), capacity: Mapping[str, str] | None = None, **parts: Any
) -> DeviceRequest:
    amounts = None if capacity is None else tuple((key, parse_quantity(text)) for key, text in capacity.items())
    mode = parts.pop("mode", "ExactCount")
    return DeviceRequest(
        name="r",
        class_name=ANY,
        mode=mode,
        count=count,
        selectors=tuple(map(Selector, selectors)),
        capacity=amounts,
        **parts,
    )


def claim(wanted: DeviceRequest, *constraints: Constraint, name: str = "c") -> ResourceClaim:
    spec = ClaimSpec(requests=(RequestSlot(name="r", exactly=wanted),), constraints=constraints)
    return ResourceClaim(key=ObjectKey("ns", name), uid=Uid(name), spec=spec)


def question(wanted: DeviceRequest, *constraints: Constraint, name: str = "c") -> Question:
    return ask([claim(wanted, *constraints, name=name)], CLASSES, ALL)


def holder(name: str, pool: str, device_name: str, share: str | None = None) -> ResourceClaim:
    """Make a claim that holds a device, or a share of it."""
    result = AllocatedDevice(
        request="r", device=DeviceKey(DRIVER, PoolName(pool), DeviceName(device_name)), share_id=share
    )
    return ResourceClaim(
        key=ObjectKey("ns", name), uid=Uid(name), spec=ClaimSpec(), allocation=Allocation(devices=(result,))
    )


def cluster(*nouns: Noun) -> Cluster:
    """Build a cluster of nouns of any kinds."""
    kinds: dict[Kind, list[Noun]] = {}
    for noun in nouns:
        kinds.setdefault(type(noun), []).append(noun)
    made = Cluster()
    for kind, items in kinds.items():
        made.apply(Listed(kind, tuple(items)))
    return made


def verdicts(fitter: Fitter, snapshot: Snapshot) -> list[str]:
    return [Verdict(code).name for code in fitter.fit(snapshot).verdicts.tolist()]


def chosen(asked: Question, snapshot: Snapshot) -> list[str]:
    """Choose on each node by itself."""
    nodes: Iterable[int] = range(len(snapshot.layout.nodes))
    return [VERDICTS[type(choose(snapshot, place, asked))].name for place in nodes]
