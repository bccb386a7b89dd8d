"""What goes along is worked out once for all that is alike, however many devices there are."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.features import ALL
from extender.allocation.masks import mask_of
from extender.allocation.preference import Tightest
from extender.allocation.question import EXACT, At, Question, ask
from extender.allocation.solve import Manner, Solution, solving
from extender.allocation.work import finished
from extender.model.claim import ClaimSpec, DeviceClass, DeviceRequest, RequestSlot, ResourceClaim, Selector
from extender.model.device import Device
from extender.model.names import ClassName, DriverName, ObjectKey, Uid
from extender.topology import companions
from extender.topology.alignment import covered
from extender.topology.partitioned import Partitioned
from extender.topology.together import Together
from loadtests.quality.hopper import CLASSES, CPU, GPU, NIC, board, device, gpu, grounds, sliced, usages

# GPUs, NICs on roots of their own, and every CPU as a device, as dra-driver-cpu publishes them.
CORES = 128
ZONE = "resource.kubernetes.io/numaNode"
LARGE = board(
    sliced(GPU, *map(gpu, range(8))),
    sliced(NIC, *(device(f"net-{index}", pcieRoot=f"r{index}", numaNode=index // 6) for index in range(12))),
    sliced(CPU, *(device(f"cpu-{index}", numaNode=index // 64) for index in range(CORES))),
)


MEMORY = DriverName("dra.memory")
KINDS = {
    **CLASSES,
    ClassName("memory"): DeviceClass(name=ClassName("memory"), selectors=(Selector(f"device.driver == '{MEMORY}'"),)),
}


def counted(**wanted: int) -> Question:
    requests = tuple(
        RequestSlot(name=name, exactly=DeviceRequest(name=name, class_name=ClassName(name), mode=EXACT, count=count))
        for name, count in wanted.items()
    )
    spec = ClaimSpec(requests=requests)
    return ask([ResourceClaim(key=ObjectKey("ns", "claim"), uid=Uid("claim"), spec=spec)], KINDS, ALL)


def solved(asked: Question, on: Board, held: Sequence[str] = ()) -> tuple[Together, Solution]:
    together = Together(grounds(), Tightest(), Partitioned())
    keys = [candidate.key for candidate in on.candidates if candidate.key.device in held]
    found = finished(solving(asked, on, usages(keys), Manner(preference=together, is_lenient=True)))
    assert isinstance(found, Solution)
    return together, found


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

    def looked(anchors: Counter[int | None], zoned: Counter[frozenset[int]]) -> int:
        nonlocal looks
        looks += 1
        return covered(anchors, zoned)

    monkeypatch.setattr(companions, "covered", looked)
    _, found = solved(counted(**wanted), LARGE)
    assert sorted(LARGE.candidates[pick.place].device.name for pick in found.picks) == devices.split()
    # Each of up to 220 sets of NICs had each of 128 CPUs looked at.
    assert looks < CORES


def zone(on: Board, place: int) -> object:
    return dict(on.candidates[place].device.attributes)[ZONE].value


def given_zones(asked: Question, on: Board, held: Sequence[str] = ()) -> list[tuple[object, int]]:
    """Return how many CPUs a pod is given of which NUMA node."""
    picks = solved(asked, on, held)[1].picks
    cpus = [pick.place for pick in picks if on.candidates[pick.place].key.driver == CPU]
    return sorted(Counter(zone(on, place) for place in cpus).items(), key=repr)


def single(count: int, *gone: int) -> tuple[str, ...]:
    """Name the first CPUs of each of two NUMA nodes with *count* each."""
    return tuple(f"cpu-{at * count + index}" for at, number in enumerate(gone) for index in range(number))


@pytest.mark.parametrize(
    ("wanted", "gone", "zones"),
    [
        pytest.param({"gpu": 8, "cpu": 2}, (0, 0), [(0, 1), (1, 1)], id="one for each NUMA node of GPUs"),
        pytest.param({"gpu": 8, "cpu": 16}, (0, 0), [(0, 8), (1, 8)], id="as many for each as there are GPUs"),
        pytest.param({"gpu": 8, "cpu": 16}, (61, 0), [(0, 3), (1, 13)], id="as many as there are"),
        pytest.param({"gpu": 1, "cpu": 16}, (0, 0), [(0, 16)], id="all for one GPU, though others want them"),
        pytest.param({"cpu": 4}, (62, 0), [(1, 4)], id="not split where one NUMA node has enough"),
        pytest.param({"cpu": 4}, (60, 0), [(0, 4)], id="where the fewest are left"),
        pytest.param({"cpu": 30}, (50, 40), [(0, 6), (1, 24)], id="split where none has enough"),
    ],
)
def test_single_cpus_are_shared_out_by_whom_they_are_for(
    wanted: dict[str, int], gone: tuple[int, int], zones: list[tuple[object, int]]
) -> None:
    assert given_zones(counted(**wanted), LARGE, single(64, *gone)) == zones


def by_counts(on: Board, at: At, size: int) -> Iterator[tuple[tuple[Pick, ...], int, int]]:
    """Yield all that an ask for *size* CPUs could be given, by how many of each NUMA node.

    Tell on how many NUMA nodes they are, and how many are free there.
    """
    free: dict[object, list[int]] = {}
    for place, candidate in enumerate(on.candidates):
        if candidate.key.driver == CPU:
            free.setdefault(zone(on, place), []).append(place)
    for counts in product(*(range(len(places) + 1) for places in free.values())):
        if sum(counts) == size:
            used = [(places, count) for places, count in zip(free.values(), counts, strict=True) if count]
            chosen = tuple(Pick(at, place) for places, count in used for place in places[:count])
            yield chosen, len(used), sum(len(places) for places, _ in used)


def of_cpus(solution: Solution) -> tuple[list[Pick], list[Pick]]:
    """Part what is given into CPUs and what else there is."""
    on = solution.situation.board
    cpus = [pick for pick in solution.picks if on.candidates[pick.place].key.driver == CPU]
    return cpus, [pick for pick in solution.picks if pick not in cpus]


def small(gpus: Sequence[int], cpus: Sequence[int]) -> Board:
    """Return a node with GPUs on these NUMA nodes, and so many single CPUs on each."""
    return board(
        sliced(GPU, *(gpu_on(index, at) for index, at in enumerate(gpus))),
        sliced(NIC, device("net-0", pcieRoot="r", numaNode=0)),
        sliced(
            CPU, *(device(f"cpu-{at}-{index}", numaNode=at) for at, most in enumerate(cpus) for index in range(most))
        ),
    )


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=5),
    st.lists(st.integers(0, 14), min_size=2, max_size=4),
    st.integers(0, 3),
    st.integers(1, 12),
    st.sets(st.integers(0, 4)),
)
# One CPU is too few for two GPUs and enough for them as their part, and the same for the one on another NUMA node.
@example(gpus=[0, 0, 1], cpus=[10, 14], led=3, count=2, held=set())
@example(gpus=[0, 0, 0, 1], cpus=[2, 8, 14], led=3, count=2, held={0})
def test_single_cpus_are_given_as_if_all_counts_by_numa_node_had_been_compared(
    gpus: list[int], cpus: list[int], led: int, count: int, held: set[int]
) -> None:
    named = [f"gpu-{index}" for index in sorted(held) if index < len(gpus)]
    wanted = {"gpu": min(led, len(gpus) - len(named)), "cpu": min(count, sum(cpus))}
    if not wanted["cpu"]:
        return
    on = small(gpus, cpus)
    together, solution = solved(counted(**{name: one for name, one in wanted.items() if one}), on, named)
    mine, others = of_cpus(solution)

    def rank(picks: Sequence[Pick], *then: int) -> tuple[int, ...]:
        worth = together.appraise(solution.situation, (*others, *picks)).value
        return -worth, *(then if not wanted["gpu"] else ())

    best = min(rank(*some) for some in by_counts(on, mine[0].at, len(mine)))
    zones = {zone(on, pick.place) for pick in mine}
    assert rank(mine, len(zones), sum(cpus[int(str(at))] for at in zones)) == best


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=5),
    st.lists(st.integers(0, 14), min_size=2, max_size=4),
    st.integers(1, 3),
    st.integers(1, 12),
)
@example(gpus=[0, 1, 3, 0, 1], cpus=[5, 2, 7], led=3, count=10)
@example(gpus=[0, 1, 2, 0, 1], cpus=[7, 2, 2, 4], led=3, count=11)
@example(gpus=[0, 1, 3, 0], cpus=[2, 5, 8], led=3, count=11)
def test_whatever_gpus_lead_no_counts_of_single_cpus_are_worth_more(
    gpus: list[int], cpus: list[int], led: int, count: int
) -> None:
    size, led = min(count, sum(cpus)), min(led, len(gpus))
    if not size:
        return
    on = small(gpus, cpus)
    together, solution = solved(counted(gpu=led, cpu=size), on)
    (cpu, *_), (gpu, *_) = of_cpus(solution)
    cast = together.cast(solution.situation)
    leads = [Pick(gpu.at, on.candidates.index(one)) for one in on.candidates if one.key.driver == GPU][:led]

    def worth(picks: Sequence[Pick]) -> int:
        return together.appraise(solution.situation, (*leads, *picks)).value

    mask = mask_of(pick.place for pick in leads)
    zones = next(cast.companions.zones(cpu.at, mask, 0, cast.scene.mask(cpu.at), size))
    assert worth([Pick(cpu.at, place) for place in zones]) == max(
        worth(chosen) for chosen, *_ in by_counts(on, cpu.at, size)
    )


def gpu_on(index: int, at: int) -> Device:
    return device(
        f"gpu-{index}",
        type="gpu",
        productName="P",
        pciBusID=f"0000:{index:02x}:00.0",
        pcieRoot=f"p{index}",
        numaNode=at,
    )


@pytest.mark.parametrize(
    ("wanted", "held", "devices"),
    [
        pytest.param({"cpu": 1, "memory": 1}, "cpu-0 cpu-2", "cpu-1 memory-1", id="memory follows CPUs"),
        pytest.param({"memory": 1, "cpu": 1}, "memory-0", "cpu-1 memory-1", id="CPUs follow memory"),
        pytest.param({"memory": 1, "cpu": 2}, "cpu-0", "cpu-1 cpu-3 memory-1", id="memory is where CPUs will be"),
    ],
)
def test_cpus_and_memory_that_nothing_leads_are_close_to_each_other(
    wanted: dict[str, int], held: str, devices: str
) -> None:
    on = board(
        sliced(CPU, *(device(f"cpu-{index}", numaNode=index % 2) for index in range(4))),
        sliced(MEMORY, *(device(f"memory-{at}", numaNode=at) for at in range(2))),
    )
    picks = solved(counted(**wanted), on, held.split())[1].picks
    assert sorted(on.candidates[pick.place].key.device for pick in picks) == devices.split()


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 2), max_size=4),
    st.lists(st.integers(0, 9), min_size=2, max_size=3),
    st.sets(st.integers(0, 2), min_size=1),
    st.integers(1, 9),
)
def test_cpus_and_memory_that_nothing_leads_are_on_the_same_numa_nodes_as_far_as_can_be(
    gpus: list[int], cpus: list[int], memory: set[int], count: int
) -> None:
    on = board(
        sliced(GPU, *(gpu_on(index, at) for index, at in enumerate(gpus))),
        sliced(NIC, device("net-0", pcieRoot="r", numaNode=0)),
        sliced(
            CPU, *(device(f"cpu-{at}-{index}", numaNode=at) for at, most in enumerate(cpus) for index in range(most))
        ),
        sliced(MEMORY, *(device(f"memory-{at}", numaNode=at) for at in sorted(memory))),
    )
    if sum(cpus) < count:
        return
    together, solution = solved(counted(cpu=count, memory=1), on)
    (cpu, *_), (bank,) = of_cpus(solution)
    banks = [place for place, candidate in enumerate(on.candidates) if candidate.key.driver == MEMORY]
    others = [(Pick(bank.at, place), *picks) for picks, *_ in by_counts(on, cpu.at, count) for place in banks]
    best = max(together.appraise(solution.situation, picks).value for picks in others)
    assert together.appraise(solution.situation, solution.picks).value == best
