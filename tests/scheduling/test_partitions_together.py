"""GPUs that are cut, with NICs and CPUs beside them: what is left whole, and what goes with a partition."""

import json
from collections.abc import Iterable
from itertools import count

import pytest

from extender.model.change import Changed
from extender.model.claim import DeviceClass, DeviceRequest, RequestSlot, Selector
from extender.model.device import ResourceSlice
from extender.model.names import ClassName
from extender.model.parse import parse_slice
from extender.scheduling.planner import Offer
from extender.state.belief import Belief
from extender.topology.document import Document
from tests.scheduling.cast import belief_of, node, pod
from tests.scheduling.machines import NVIDIA
from tests.scheduling.mixed import CLASSES, NIC, asks, nics, planner_of, some
from tests.topology.mig import RAW

GPU, PART = ClassName("gpu"), ClassName("part")
ABOUT = f"device.driver == '{NVIDIA}' && device.attributes['{NVIDIA}'].type"
ROLES = (
    DeviceClass(name=GPU, selectors=(Selector(f"{ABOUT} == 'gpu'"),)),
    DeviceClass(name=PART, selectors=(Selector(f"{ABOUT} == 'mig'"),)),
)
ON = "device.attributes['resource.kubernetes.io'].pcieRoot == 'pci0000:{:02x}'"
SMALL = f"device.attributes['{NVIDIA}'].profile == '1g.5gb'"
NUMBERS = count()


def cut_up(gpus: int) -> list[ResourceSlice]:
    """Publish A100s that can be cut, of which the first half is on NUMA node 0, each on a PCIe root of its own."""
    found = []
    for index in range(gpus):
        text = (
            json.dumps(RAW["slices"])
            .replace("gpu-0", f"gpu-{index}")
            .replace("GPU-00000000", f"GPU-{index}")
            .replace("mig-a100-gpu.nvidia.com", f"gpu-{index}-slice")
            .replace("mig-a100", "a")
            .replace("pci0000:00", f"pci0000:{index:02x}")
            .replace("0000:07:00.0", f"0000:{index:02x}:00.0")
            .replace('numaNode": {"int": 0}', f'numaNode": {{"int": {2 * index // gpus}}}')
        )
        found += json.loads(text)
    for one in found:
        one["spec"]["pool"]["resourceSliceCount"] = len(found)
    return [one for one in map(parse_slice, found) if isinstance(one, ResourceSlice)]


def machine(gpus: int, *, has_nics: bool = True) -> Belief:
    beside = [nics("a", gpus)] if has_nics else []
    return belief_of(*CLASSES[1:], *ROLES, node("a"), *cut_up(gpus), *beside)


def small(root: int | None = None) -> RequestSlot:
    """Ask for a seventh of a GPU, maybe of a certain one."""
    tests = (SMALL,) if root is None else (SMALL, ON.format(root))
    selectors = tuple(map(Selector, tests))
    asked = DeviceRequest(name="part", class_name=PART, mode="ExactCount", count=1, selectors=selectors)
    return RequestSlot(name="part", exactly=asked)


def given_of(belief: Belief, *requests: RequestSlot) -> list[str]:
    """Return what the next pod is given; others do not get it any more."""
    name = f"c{next(NUMBERS)}"
    belief.apply(Changed(asks(name, *requests)))
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
    belief = machine(gpus, has_nics=has_nics)
    given_of(belief, small(broken))
    given = [given_of(belief, some(size, GPU)) for size in sizes]
    assert given == [[f"gpu-{one}" for one in names.split()] for names in expected]


def test_who_wants_a_nic_alone_gets_that_of_a_gpu_that_is_cut() -> None:
    belief = machine(4)
    given_of(belief, small(2))
    assert given_of(belief, some(1, NIC)) == ["d2"]


def test_who_looks_after_devices_may_look_at_a_gpu_that_is_cut() -> None:
    belief = machine(2)
    given_of(belief, small(1))
    cut = (Selector(ON.format(1)),)
    asked = DeviceRequest(name="all", class_name=GPU, mode="ExactCount", count=1, selectors=cut, admin_access=True)
    assert given_of(belief, RequestSlot(name="all", exactly=asked)) == ["gpu-1"]
