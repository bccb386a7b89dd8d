"""Nodes of different sizes: the larger ones are kept for those that nobody else can have."""

from dataclasses import replace

import pytest

from extender.model.change import Changed
from extender.model.claim import DeviceClass, Selector
from extender.model.device import Attribute, ResourceSlice
from extender.model.names import ClassName, DeviceKey, DeviceName, DriverName, PoolName
from extender.scheduling.planner import Offer
from extender.topology.document import Document
from extender.topology.policies import Policies
from extender.topology.policy import Policy, Trait
from tests.scheduling.cast import belief_of, held, node, pod
from tests.scheduling.machines import GPU, NUMA, NVIDIA
from tests.scheduling.mixed import (
    CLASSES,
    NIC,
    RESERVED,
    asks,
    cluster,
    gpus,
    nics,
    planner_of,
    published,
    some,
)

SIZES = {"a-eight": 8, "m-four": 4, "z-two": 2}
ZONED = ("cpu", "memory")


@pytest.mark.parametrize(("count", "name"), [(1, "z-two"), (2, "z-two"), (3, "m-four"), (4, "m-four"), (8, "a-eight")])
def test_of_empty_nodes_the_smallest_is_broken(count: int, name: str) -> None:
    belief = cluster(*(gpus(name, size) for name, size in SIZES.items()), nodes=list(SIZES))
    planner = planner_of(belief, Document())
    claim = asks("c", some(count))
    belief.apply(Changed(claim))
    plan = planner.plan(pod("p", claim.key.name), None, 0.0)
    assert isinstance(plan, Offer)
    assert plan.placement.node == name


def on_one_numa_node(item: ResourceSlice) -> ResourceSlice:
    """Have all devices on the same NUMA node, and none on a PCIe root of its own."""
    near = tuple(
        replace(device, attributes=tuple(sorted({**bare(device.attributes), NUMA: Attribute("int", 0)}.items())))
        for device in item.devices
    )
    return replace(item, devices=near)


def bare(attributes: tuple[tuple[str, Attribute], ...]) -> dict[str, Attribute]:
    return {name: value for name, value in attributes if not name.endswith("pcieRoot")}


def machine(name: str, size: int, *, is_preferred: bool) -> list[ResourceSlice]:
    """Make a node with one NIC, CPU and memory for all of its GPUs, on one NUMA node."""
    zoned = [published(name, DriverName(f"dra.{kind}"), 1) for kind in ZONED]
    return list(map(on_one_numa_node, [gpus(name, size, range(size) if is_preferred else ()), nics(name, 1), *zoned]))


@pytest.mark.parametrize("size", [16, 32, 40, 64])
def test_what_many_others_lose_never_outweighs_what_is_preferred(size: int) -> None:
    zoned = [
        DeviceClass(name=ClassName(kind), selectors=(Selector(f"device.driver == 'dra.{kind}'"),)) for kind in ZONED
    ]
    slices = machine("n", 2, is_preferred=False) + machine("p", size, is_preferred=True)
    belief = belief_of(*CLASSES, *zoned, node("n"), node("p"), *slices)
    taken = DeviceKey(NVIDIA, PoolName("n"), DeviceName("d1"))
    belief.apply(Changed(held(asks("o", some(1)), taken)))
    policy = Policy(name="those", prefer=(Trait(RESERVED, ("true",)),))
    wanted = [some(1, kind, kind) for kind in (GPU, NIC, *map(ClassName, ZONED))]
    claim = asks("c", *wanted)
    belief.apply(Changed(claim))
    plan = planner_of(belief, Document(policies=Policies(every=(policy,), default="those"))).plan(
        pod("p", "c"), None, 0.0
    )
    assert isinstance(plan, Offer)
    assert plan.placement.node == "p"
