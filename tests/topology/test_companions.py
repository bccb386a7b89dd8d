"""What goes along is worked out once for all that is alike, however many devices there are."""

from collections.abc import Sequence

import pytest

from extender.allocation.features import ALL
from extender.allocation.preference import Tightest
from extender.allocation.question import EXACT, Question, ask
from extender.allocation.solve import Manner, Solution, solve
from extender.model.claim import ClaimSpec, DeviceRequest, RequestSlot, ResourceClaim
from extender.model.names import ClassName, ObjectKey, Uid
from extender.topology import companions
from extender.topology.aliases import Place
from extender.topology.alignment import cover
from extender.topology.together import Together
from loadtests.quality.hopper import CLASSES, CPU, GPU, NIC, board, device, gpu, grounds, sliced, usages

# GPUs, NICs on roots of their own, and every CPU as a device, as dra-driver-cpu publishes them.
CORES = 128
LARGE = board(
    sliced(GPU, *map(gpu, range(8))),
    sliced(NIC, *(device(f"net-{index}", pcieRoot=f"r{index}", numaNode=index // 6) for index in range(12))),
    sliced(CPU, *(device(f"cpu-{index}", numaNode=index // 64) for index in range(CORES))),
)


def counted(**wanted: int) -> Question:
    requests = tuple(
        RequestSlot(name=name, exactly=DeviceRequest(name=name, class_name=ClassName(name), mode=EXACT, count=count))
        for name, count in wanted.items()
    )
    spec = ClaimSpec(requests=requests)
    return ask([ResourceClaim(key=ObjectKey("ns", "claim"), uid=Uid("claim"), spec=spec)], CLASSES, ALL)


@pytest.mark.parametrize(
    ("wanted", "devices"),
    [
        pytest.param({"nic": 3, "cpu": 1}, "cpu-0 net-0 net-1 net-2", id="NICs that nothing leads"),
        pytest.param({"gpu": 2, "nic": 2, "cpu": 1}, "cpu-0 gpu-0 gpu-1 net-0 net-1", id="NICs beside GPUs"),
        pytest.param({"nic": 2, "cpu": 2}, "cpu-0 cpu-1 net-0 net-1", id="more sets of CPUs than are compared"),
    ],
)
def test_single_cpus_of_one_numa_node_are_looked_at_once(
    wanted: dict[str, int], devices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def looked(anchors: Sequence[Place], zoned: Sequence[Place]) -> int:
        nonlocal looks
        looks += 1
        return cover(anchors, zoned)

    monkeypatch.setattr(companions, "cover", looked)
    manner = Manner(preference=Together(grounds(), Tightest()), is_lenient=True)
    found = solve(counted(**wanted), LARGE, usages([]), manner)
    assert isinstance(found, Solution)
    assert sorted(LARGE.candidates[pick.place].device.name for pick in found.picks) == devices.split()
    # Each of up to 220 sets of NICs had each of 128 CPUs looked at.
    assert looks < CORES
