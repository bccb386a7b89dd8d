"""What goes along is worked out once for all that is alike, however many devices there are."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.features import ALL
from extender.allocation.preference import Tightest
from extender.allocation.question import EXACT, Question, ask
from extender.allocation.solve import Manner, Solution, solve
from extender.model.claim import ClaimSpec, DeviceClass, DeviceRequest, RequestSlot, ResourceClaim, Selector
from extender.model.device import Device
from extender.model.names import ClassName, DriverName, ObjectKey, Uid
from extender.topology import companions
from extender.topology.aliases import Place
from extender.topology.alignment import cover
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
    together = Together(grounds(), Tightest())
    keys = [candidate.key for candidate in on.candidates if candidate.key.device in held]
    found = solve(asked, on, usages(keys), Manner(preference=together, is_lenient=True))
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

    def looked(anchors: Sequence[Place], zoned: Sequence[Place]) -> int:
        nonlocal looks
        looks += 1
        return cover(anchors, zoned)

    monkeypatch.setattr(companions, "cover", looked)
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


def by_counts(solution: Solution) -> Iterator[tuple[tuple[Pick, ...], int, int]]:
    """Yield all that could be given of CPUs, by how many of each NUMA node, with what else was given.

    Tell on how many NUMA nodes they are, and how many are free there.
    """
    on = solution.situation.board
    cpus = [pick for pick in solution.picks if on.candidates[pick.place].key.driver == CPU]
    others = tuple(pick for pick in solution.picks if pick not in cpus)
    free: dict[object, list[int]] = {}
    for place, candidate in enumerate(on.candidates):
        if candidate.key.driver == CPU:
            free.setdefault(zone(on, place), []).append(place)
    for counts in product(*(range(len(places) + 1) for places in free.values())):
        if sum(counts) == len(cpus):
            used = [(places, count) for places, count in zip(free.values(), counts, strict=True) if count]
            chosen = tuple(Pick(cpus[0].at, place) for places, count in used for place in places[:count])
            yield (*others, *chosen), len(used), sum(len(places) for places, _ in used)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=5),
    st.lists(st.integers(0, 14), min_size=2, max_size=4),
    st.integers(0, 3),
    st.integers(1, 12),
    st.data(),
)
def test_single_cpus_are_given_as_if_all_counts_by_numa_node_had_been_compared(
    gpus: list[int], cpus: list[int], led: int, count: int, data: st.DataObject
) -> None:
    named = [f"gpu-{index}" for index in range(len(gpus))]
    held = data.draw(st.sets(st.sampled_from(named)))
    wanted = {"gpu": min(led, len(named) - len(held)), "cpu": min(count, sum(cpus))}
    on = board(
        sliced(GPU, *(gpu_on(index, at) for index, at in enumerate(gpus))),
        sliced(NIC, device("net-0", pcieRoot="r", numaNode=0)),
        sliced(
            CPU, *(device(f"cpu-{at}-{index}", numaNode=at) for at, most in enumerate(cpus) for index in range(most))
        ),
    )
    if not wanted["cpu"]:
        return
    together, solution = solved(counted(**{name: one for name, one in wanted.items() if one}), on, sorted(held))

    def rank(picks: Sequence[Pick], *then: int) -> tuple[int, ...]:
        return -together.appraise(solution.situation, picks).value, *(then if not wanted["gpu"] else ())

    best = min(rank(*some) for some in by_counts(solution))
    mine = Counter(zone(on, pick.place) for pick in solution.picks if on.candidates[pick.place].key.driver == CPU)
    assert rank(solution.picks, len(mine), sum(cpus[int(str(at))] for at in mine)) == best


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
    places = {on.candidates[pick.place].key.driver: pick for pick in solution.picks}
    banks = [place for place, candidate in enumerate(on.candidates) if candidate.key.driver == MEMORY]
    others = [
        tuple(Pick(places[MEMORY].at, bank) if pick == places[MEMORY] else pick for pick in picks)
        for picks, *_ in by_counts(solution)
        for bank in banks
    ]
    best = max(together.appraise(solution.situation, picks).value for picks in others)
    assert together.appraise(solution.situation, solution.picks).value == best
