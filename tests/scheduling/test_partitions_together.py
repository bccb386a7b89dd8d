"""GPUs that are cut, with NICs and CPUs beside them: what is left whole, and what goes with a partition."""

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import count

import pytest

from extender.model.change import Changed
from extender.model.claim import DeviceClass, DeviceRequest, RequestSlot, Selector
from extender.model.device import ResourceSlice, Traits
from extender.model.names import ClassName, PoolName
from extender.model.parse import parse_slice
from extender.scheduling.planner import Offer
from extender.state.belief import Belief
from extender.topology.document import Document
from loadtests.quality.hopper import CPU as CPUS
from loadtests.quality.hopper import NODE, cpus, sliced
from tests.scheduling.cast import belief_of, node, pod
from tests.scheduling.machines import NVIDIA
from tests.scheduling.mixed import CLASSES, NIC, asks, nics, planner_of, some
from tests.topology.mig import RAW

GPU, PART, CPU = ClassName("gpu"), ClassName("part"), ClassName("cpu")
ABOUT = f"device.driver == '{NVIDIA}' && device.attributes['{NVIDIA}'].type"
ROLES = (
    DeviceClass(name=GPU, selectors=(Selector(f"{ABOUT} == 'gpu'"),)),
    DeviceClass(name=PART, selectors=(Selector(f"{ABOUT} == 'mig'"),)),
    DeviceClass(name=CPU, selectors=(Selector(f"device.driver == '{CPUS}'"),)),
)
ON = "device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:{:02x}'"
SXM, PCIE = "NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"
SMALL = f"device.attributes['{NVIDIA}'].profile == '1g.5gb'"
NUMBERS = count()


def cut_up(gpus: int, product: str = SXM) -> list[ResourceSlice]:
    """Publish A100s that can be cut, of which the first half is on NUMA node 0, each on a PCIe root of its own."""
    found = []
    for index in range(gpus):
        text = (
            json.dumps(RAW["slices"])
            .replace("gpu-0", f"gpu-{index}")
            .replace("GPU-00000000", f"GPU-{index}")
            .replace("mig-a100-gpu.nvidia.com", f"gpu-{index}-slice")
            .replace("mig-a100", NODE)
            .replace(SXM, product)
            .replace("pci0000:00", f"pci0000:{index:02x}")
            .replace("0000:07:00.0", f"0000:{index:02x}:00.0")
            .replace('numaNode": {"int": 0}', f'numaNode": {{"int": {2 * index // gpus}}}')
        )
        found += json.loads(text)
    for one in found:
        one["spec"]["pool"]["resourceSliceCount"] = len(found)
    return [one for one in map(parse_slice, found) if isinstance(one, ResourceSlice)]


def cut_for_good(published: ResourceSlice, *cut: int) -> ResourceSlice:
    """Publish GPUs as those where the sevenths of some are plain devices, and the others are whole."""
    kept = []
    for device in published.devices:
        index, _, profile = device.name.removeprefix("gpu-").partition("-mig-")
        if profile[:6] == ("1g5gb-" if int(index) in cut else ""):
            kept.append(replace(device, traits=Traits()))
    return replace(published, devices=tuple(kept))


def machine(*gpus: ResourceSlice, count: int = 4) -> Belief:
    return belief_of(*CLASSES[1:], *ROLES, node(NODE), *gpus, nics(NODE, count), sliced(CPUS, cpus(0), cpus(1)))


def small(root: int | None = None) -> RequestSlot:
    """Ask for a seventh of a GPU, maybe of a certain one."""
    tests = (SMALL,) if root is None else (SMALL, ON.format(root))
    selectors = tuple(map(Selector, tests))
    asked = DeviceRequest(name="part", class_name=PART, mode="ExactCount", count=1, selectors=selectors)
    return RequestSlot(name="part", exactly=asked)


def given_of(belief: Belief, *requests: RequestSlot, policy: str = "") -> list[str]:
    """Return what the next pod is given; others do not get it any more."""
    name = f"c{next(NUMBERS)}"
    belief.apply(Changed(asks(name, *requests, policy=policy)))
    plan = planner_of(belief, Document()).plan(pod(name, name), None, 0.0)
    assert isinstance(plan, Offer)
    return sorted(item.device.device for _, allocation in plan.placement.claims for item in allocation.devices)


@pytest.mark.parametrize("has_nics", [False, True])
@pytest.mark.parametrize(
    ("gpus", "broken", "sizes", "expected"),
    [
        (4, 3, (1,), ("2",)),
        (4, 1, (1, 2), ("0", "2 3")),
        (8, 7, (1, 2, 4), ("4", "5 6", "0 1 2 3")),
    ],
)
def test_a_gpu_that_is_cut_is_left_whole_for_nobody_with_and_without_nics(
    gpus: int, broken: int, sizes: Iterable[int], expected: tuple[str, ...], *, has_nics: bool
) -> None:
    beside = [nics(NODE, gpus)] if has_nics else []
    belief = belief_of(*CLASSES[1:], *ROLES, node(NODE), *cut_up(gpus), *beside)
    given_of(belief, small(broken))
    given = [given_of(belief, some(size, GPU)) for size in sizes]
    assert given == [[f"gpu-{one}" for one in names.split()] for names in expected]


def test_who_wants_a_nic_alone_gets_that_of_a_gpu_that_is_cut() -> None:
    belief = machine(*cut_up(4))
    given_of(belief, small(2))
    assert given_of(belief, some(1, NIC)) == ["d2"]


def test_who_looks_after_devices_may_look_at_a_gpu_that_is_cut() -> None:
    belief = machine(*cut_up(2), count=2)
    given_of(belief, small(1))
    cut = (Selector(ON.format(1)),)
    asked = DeviceRequest(name="all", class_name=GPU, mode="ExactCount", count=1, selectors=cut, admin_access=True)
    assert given_of(belief, RequestSlot(name="all", exactly=asked)) == ["gpu-1"]


@pytest.mark.parametrize("product", [SXM, PCIE])
@pytest.mark.parametrize("is_for_good", [False, True])
def test_the_nic_and_the_cpus_of_a_partition_are_close_to_it(product: str, *, is_for_good: bool) -> None:
    gpus = cut_up(4, product)
    belief = machine(*(cut_for_good(one, 0, 3) for one in gpus) if is_for_good else gpus)
    for root in (0, 3):
        given_of(belief, small(root))
    assert _parted(given_of(belief, small(3), some(1, NIC))) == ["d3", "gpu-3"]
    assert _parted(given_of(belief, small(3), some(1, CPU))) == ["cpu-1", "gpu-3"]


@pytest.mark.parametrize("near", range(4))
@pytest.mark.parametrize("size", [1, 2])
def test_partitions_are_of_a_gpu_that_a_nic_is_close_to(near: int, size: int) -> None:
    every = nics(NODE, 4)
    belief = belief_of(*CLASSES[1:], *ROLES, node(NODE), *cut_up(4), replace(every, devices=every.devices[near:][:1]))
    parts = [replace(small(), name=f"part-{index}") for index in range(size)]
    assert _parted(given_of(belief, *parts, some(1, NIC))) == [f"d{near}", *[f"gpu-{near}"] * size]


@pytest.mark.parametrize(
    ("policy", "gpus"),
    [("pack", ["gpu-0", "gpu-0"]), ("spread", ["gpu-3", "gpu-2"]), ("protect", ["gpu-3", "gpu-3"])],
)
def test_where_chips_are_packed_or_spread_a_nic_that_is_close_comes_second(policy: str, gpus: list[str]) -> None:
    every = nics(NODE, 4)
    on_last = [replace(every, name=name, pool=PoolName(name), devices=every.devices[3:]) for name in "ab"]
    belief = belief_of(*CLASSES[1:], *ROLES, node(NODE), *cut_up(4), *on_last)
    given_of(belief, small(0))
    given = [_parted(given_of(belief, small(), some(1, NIC), policy=policy)) for _ in gpus]
    assert given == [["d3", gpu] for gpu in gpus]


@pytest.mark.parametrize("beside", [(), (some(1, NIC, "nic"),)])
@pytest.mark.parametrize("product", [SXM, PCIE])
@pytest.mark.parametrize(
    ("cut", "used", "whole"),
    [((2,), 0, "gpu-3"), ((3,), 1, "gpu-2"), ((0,), 2, "gpu-1"), ((1,), 3, "gpu-0")],
)
def test_a_whole_gpu_goes_where_a_partition_of_the_same_pod_finds_room(
    cut: tuple[int, ...], used: int, whole: str, product: str, beside: tuple[RequestSlot, ...]
) -> None:
    # Of the GPUs that are free none is in a pair: one was taken from the first, and the second is cut.
    belief = machine(*(cut_for_good(one, *cut) for one in cut_up(4, product)))
    asked = DeviceRequest(
        name="some", class_name=GPU, mode="ExactCount", count=1, selectors=(Selector(ON.format(used)),)
    )
    given_of(belief, RequestSlot(name="some", exactly=asked))
    found = _parted(given_of(belief, some(1, GPU), small(), *beside))
    assert set(found) >= {whole, f"gpu-{cut[0]}"}


def test_what_is_left_is_worth_the_same_whether_gpus_could_be_cut_or_not() -> None:
    costs = []
    for gpus in (cut_up(4, PCIE), [cut_for_good(one) for one in cut_up(4, PCIE)]):
        belief = machine(*gpus)
        belief.apply(Changed(asks("c", some(1, NIC))))
        plan = planner_of(belief, Document()).plan(pod("p", "c"), None, 0.0)
        assert isinstance(plan, Offer)
        assert plan.placement.appraisal
        costs.append([part.value for part in plan.placement.appraisal.parts if part.name == "stranding"])
    assert costs == [[-43750], [-43750]]


def test_a_gpu_that_a_pod_cuts_misses_no_nic() -> None:
    belief = machine(*cut_up(4))
    belief.apply(Changed(asks("c", small(2), some(1, NIC))))
    plan = planner_of(belief, Document()).plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Offer)
    assert plan.placement.appraisal
    parts = {part.name: part.text for part in plan.placement.appraisal.parts}
    assert parts["partners"] == "NIC on the same PCIe root as its GPU (1 of 1)"
    assert parts["stranding"] == "1 x GPU and NIC taken together"


def _parted(devices: Iterable[str]) -> list[str]:
    return [name.partition("-mig")[0] for name in devices]
