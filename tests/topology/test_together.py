"""What a pod asks for beside each other is chosen together, and nothing that is asked for is overridden."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, pairwise, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.masks import mask_of, places_of
from extender.allocation.preference import REST, Tightest
from extender.allocation.question import Question
from extender.allocation.solve import FIRST, Manner, Solution, solving
from extender.allocation.work import finished
from extender.model.claim import Constraint
from extender.model.device import Device, Traits
from extender.model.names import DeviceKey, DeviceName
from extender.topology.choice import Choice, Ranker
from extender.topology.ground import Ground
from extender.topology.leads import WORKED, Leads
from extender.topology.partitioned import Partitioned
from extender.topology.quality import ONE
from extender.topology.tables import shipped
from extender.topology.together import Together
from loadtests.quality.hopper import (
    CPU,
    EVERY_ONE,
    GPU,
    NIC,
    board,
    cpus,
    device,
    gpu,
    ground_on,
    grounds,
    key,
    nic,
    question,
    sliced,
    usages,
)
from tests.topology.machines import machine

ROOT, ZONE = "resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode"
HOPPER = board()


def solved(
    asked: Question, held: Collection[str], on: Board = HOPPER, cores: Sequence[int] = (0, 0)
) -> tuple[Together, Solution] | None:
    together = Together(grounds(), Tightest(), Partitioned())
    answer = finished(solving(asked, on, usages(map(_key, held), cores), Manner(preference=together, is_lenient=True)))
    return (together, answer) if isinstance(answer, Solution) else None


def given_devices(asked: Question, *held: str, on: Board = HOPPER, cores: Sequence[int] = (0, 0)) -> list[str]:
    found = solved(asked, held, on, cores)
    assert found
    return sorted(on.candidates[pick.place].key.device for pick in found[1].picks)


def _key(name: str) -> DeviceKey:
    return key({"gpu": GPU, "net": NIC, "cpu": CPU}[name.partition("-")[0]], name)


@pytest.mark.parametrize("size", [1, 4])
def test_the_partners_of_several_claims_are_shared_out_by_what_each_claim_has(size: int) -> None:
    """The NICs are numbered the other way round than the GPUs on whose roots they are."""
    turned = [replace(nic(7 - index), name=DeviceName(f"net-{index}")) for index in range(8)]
    on = board(sliced(GPU, *map(gpu, range(8))), sliced(NIC, *turned))
    found = solved(question({"gpu": size, "nic": size}, {"gpu": size, "nic": size}), [], on)
    assert found
    together, solution = found
    roots: dict[tuple[int, str], set[object]] = {}
    for pick in solution.picks:
        candidate = on.candidates[pick.place]
        driver, root = candidate.key.driver, dict(candidate.device.attributes)[ROOT].value
        roots.setdefault((pick.at.claim, driver), set()).add(root)
    assert all(roots[claim, GPU] == roots[claim, NIC] for claim in (0, 1))
    texts = [part.text for part in together.appraise(solution.situation, solution.picks).parts]
    assert f"NIC on the same PCIe root as its GPU ({2 * size} of {2 * size})" in texts


def test_a_pair_is_two_devices_of_one_claim() -> None:
    """Each claim has what it can: that a NIC is on the root of another claim's GPU is no use to it."""
    found = solved(
        question({"gpu": 1, "nic": 1}, {"gpu": 1, "nic": 1}),
        ["gpu-2", "gpu-3", *(f"net-{index}" for index in (0, 4, 5, 6, 7))],
    )
    assert found
    together, solution = found
    given = [(pick.at.claim, HOPPER.candidates[pick.place].key.device) for pick in solution.picks]
    near = [
        f"net-{name[-1]}" in [other for at, other in given if at == claim] for claim, name in given if "gpu" in name
    ]
    texts = " ".join(part.text for part in together.appraise(solution.situation, solution.picks).parts)
    assert f"NIC on the same PCIe root as its GPU ({sum(near)} of 2)" in texts


@pytest.mark.parametrize(
    ("claims", "held", "devices"),
    [
        pytest.param([{"gpu": 1, "nic": 1}], "gpu-0 net-1", "gpu-2 net-2", id="a pair on one root that is whole"),
        pytest.param([{"nic": 1}, {"gpu": 1}], "gpu-0 net-1", "gpu-2 net-2", id="over claims, whichever comes first"),
        pytest.param([{"nic": 2}, {"gpu": 2}], "gpu-0 gpu-1 gpu-2", "gpu-4 gpu-5 net-4 net-5", id="on one NUMA node"),
        pytest.param([{"nic": 1}], "gpu-5", "net-5", id="a NIC alone is one whose GPU is taken"),
        pytest.param([{"gpu": 1}], "net-6", "gpu-6", id="a GPU alone is one whose NIC is taken"),
        pytest.param([{"cpu": 40}], "gpu-4", "cpu-1", id="CPUs alone are where fewer GPUs are free"),
        pytest.param([{"cpu": 8}, {"gpu": 1}], "gpu-0 gpu-1 gpu-2 gpu-3", "cpu-1 gpu-4", id="CPUs beside the GPU"),
        pytest.param([{"cpu": 8}, {"nic": 1}], "gpu-4", "cpu-1 net-4", id="CPUs beside the NIC, if there is no GPU"),
        pytest.param(
            [{"gpu-a": 1, "nic-a": 1, "gpu-b": 1, "nic-b": 1}],
            "gpu-0 gpu-1 net-2",
            "gpu-4 gpu-5 net-4 net-5",
            id="several requests for GPUs are one choice",
        ),
        pytest.param(
            [{"gpu": 2}, {"gpu": 2}, {"cpu": 4}],
            "gpu-0",
            "cpu-1 gpu-4 gpu-5 gpu-6 gpu-7",
            id="several claims for GPUs are one choice",
        ),
        pytest.param(
            [{"gpu": 4, "cpu-a": 8, "cpu-b": 8}],
            "gpu-0 gpu-1 gpu-4 gpu-5",
            "cpu-0 cpu-1 gpu-2 gpu-3 gpu-6 gpu-7",
            id="CPUs of both NUMA nodes for GPUs of both",
        ),
    ],
)
def test_what_a_pod_asks_for_is_close_to_each_other(claims: list[dict[str, int]], held: str, devices: str) -> None:
    assert given_devices(question(*claims), *held.split()) == devices.split()


@pytest.mark.parametrize("claims", [[{"gpu": 4}, {"gpu": 4}], [{"gpu-a": 4, "gpu-b": 4}], [{"gpu": 3}, {"gpu": 4}]])
def test_what_is_chosen_for_several_is_shared_out_such_that_each_has_what_is_close(
    claims: list[dict[str, int]],
) -> None:
    """The GPUs of the two NUMA nodes are numbered by turns."""
    turned = [replace(gpu(index % 2 * 4 + index // 2), name=DeviceName(f"gpu-{index}")) for index in range(8)]
    on = board(sliced(GPU, *turned), sliced(NIC, *map(nic, range(8))))
    found = solved(question(*claims), [], on)
    assert found
    zones: dict[object, set[object]] = {}
    for pick in found[1].picks:
        zone = dict(on.candidates[pick.place].device.attributes)[ZONE].value
        zones.setdefault(pick.at, set()).add(zone)
    assert sorted(map(len, zones.values())) == [1, 1]


def test_cpus_that_have_not_enough_left_are_not_taken_and_gpus_follow() -> None:
    assert given_devices(question({"gpu": 1}, {"cpu": 40}), cores=(20, 0)) == ["cpu-1", "gpu-4"]


def test_gpus_and_nics_without_a_root_in_common_go_by_numa_nodes() -> None:
    tray = _tray()
    assert given_devices(question({"gpu": 2, "nic": 2}), "gpu-0", on=tray) == ["gpu-2", "gpu-3", "net-2", "net-3"]
    # Beside GPU 3, either NIC of its NUMA node is left without a GPU anyway.
    assert given_devices(question({"nic": 1}), "gpu-3", on=tray) == ["net-2"]


def _tray() -> Board:
    devices = [[member.device for member in machine("gb200-tray", driver)[1]] for driver in (GPU, NIC)]
    return board(sliced(GPU, *devices[0]), sliced(NIC, *devices[1]))


def test_reasons_are_told_in_plain_words() -> None:
    found = solved(question({"gpu": 2, "nic": 2}, {"cpu": 8}), ["gpu-0", "net-1"])
    assert found
    together, solution = found
    appraisal = together.appraise(solution.situation, solution.picks)
    assert appraisal.value == sum(part.value for part in appraisal.parts)
    texts = [part.text for part in appraisal.parts]
    assert "NIC on the same PCIe root as its GPU (2 of 2)" in texts
    assert "on NUMA 0 alone" in texts
    assert "CPUs on the GPUs' NUMA nodes" in texts


@pytest.mark.parametrize(
    ("attribute", "requests", "held", "devices"),
    [
        pytest.param(ROOT, ("gpu", "nic"), "gpu-0 net-1 net-2", "gpu-3 net-3", id="one root"),
        pytest.param(ROOT, ("gpu", "nic"), "gpu-0 net-1 gpu-2 net-3 net-4 net-5 gpu-6", "gpu-7 net-7", id="the last"),
    ],
)
def test_a_constraint_is_kept_and_met_by_the_first_sets(
    attribute: str, requests: tuple[str, ...], held: str, devices: str
) -> None:
    rule = Constraint(requests=requests, match_attribute=attribute)
    assert given_devices(question({"gpu": 1, "nic": 1}, constraints=[rule]), *held.split()) == devices.split()


names = st.sampled_from([*(f"gpu-{index}" for index in range(8)), *(f"net-{index}" for index in range(8))])


@settings(max_examples=60)
@given(
    st.sets(names, max_size=12),
    st.sampled_from([ROOT, ZONE]),
    st.sampled_from([(1, 1), (2, 2), (2, 1), (4, 4), (4, 2)]),
)
def test_a_constraint_is_never_overridden(held: set[str], attribute: str, sizes: tuple[int, int]) -> None:
    asked = question({"nic": sizes[1], "gpu": sizes[0]}, constraints=[Constraint(match_attribute=attribute)])
    plain = finished(solving(asked, HOPPER, usages(map(_key, held)), FIRST))
    found = solved(asked, held)
    assert (found is not None) == isinstance(plain, Solution)
    if found:
        chosen = [HOPPER.candidates[pick.place].device for pick in found[1].picks]
        assert len({dict(one.attributes)[attribute] for one in chosen}) == 1
        assert len({one.name for one in chosen}) == sum(sizes)


@st.composite
def machines(draw: st.DrawFn) -> list[Device]:
    """Draw a few GPUs and NICs on some roots and NUMA nodes, and CPUs of both."""
    made = []
    for name, most in (("gpu", 4), ("net", 4)):
        for index in range(draw(st.integers(2, most))):
            root, zone = draw(st.sampled_from(["a", "b", "c", ""])), draw(st.integers(0, 1))
            values: dict[str, str | int] = {"numaNode": zone} | ({"pcieRoot": f"{root}{zone}"} if root else {})
            extra: dict[str, str | int] = {"type": "gpu", "productName": "P", "pciBusID": f"0000:{index:02x}:00.0"}
            made.append(device(f"{name}-{index}", **values, **(extra if name == "gpu" else {})))
    return made


def laid_out(devices: Sequence[Device]) -> Board:
    drivers = {
        driver: [one for one in devices if one.name.startswith(name)] for driver, name in ((GPU, "gpu"), (NIC, "net"))
    }
    return board(*(sliced(driver, *ones) for driver, ones in drivers.items()), sliced(CPU, cpus(0), cpus(1)))


def sets_of(solution: Solution) -> Iterator[tuple[Pick, ...]]:
    """Yield everything that a question could be given."""
    situation = solution.situation
    options = [
        [tuple(Pick(at, place) for place in places) for places in combinations(_bits(found.free), ask.count)]
        for (at, ask), found in zip(situation.asks.items(), situation.eligible.values(), strict=True)
    ]
    for chosen in product(*options):
        picks = tuple(pick for part in chosen for pick in part)
        alone = [pick.place for pick in picks if not situation.is_shareable(pick.place)]
        if len(set(alone)) == len(alone):
            yield picks


def _bits(mask: int) -> list[int]:
    return [place for place in range(mask.bit_length()) if mask >> place & 1]


wanted = st.sampled_from(
    [
        [{"gpu": 1, "nic": 1}],
        [{"nic": 2}, {"gpu": 2}],
        [{"gpu": 2, "nic": 1}, {"cpu": 8}],
        [{"gpu": 1, "nic": 2}],
        [{"nic": 1}],
        [{"nic": 1}, {"cpu": 30}],
        [{"gpu": 1}],
        [{"gpu": 3}, {"cpu": 8}],
        [{"cpu": 30}],
        [{"gpu-a": 1, "nic": 2}, {"gpu-b": 1}],
        [{"gpu-a": 1, "gpu-b": 2, "nic": 1}, {"cpu": 8}],
        [{"gpu": 2, "nic": 2}, {"cpu-a": 8, "cpu-b": 8}],
        [{"gpu": 2, "nic-a": 1, "nic-b": 1}],
        [{"nic": 2}, {"cpu": 8}],
        [{"nic-a": 1, "nic-b": 1}],
    ]
)


@settings(max_examples=300, deadline=None)
@given(machines(), st.sets(names, max_size=3), st.randoms(use_true_random=False))
def test_the_partners_that_are_found_soon_are_those_that_comparing_all_would_find(
    devices: list[Device], held: set[str], chance: Random
) -> None:
    found = solved(question({"gpu": 1}), held, laid_out(devices))
    if not found:
        return
    companions = found[0].cast(found[1].situation).companions
    for kind in companions.scene.ground.kinds:
        taken, leads = (
            mask_of(chance.sample(places, min(len(places), chance.randint(0, 3))))
            for places in (kind.places, kind.anchors)
        )
        sets = list(combinations([place for place in kind.places if not taken >> place & 1], chance.randint(1, 2)))
        if sets:
            worths = [companions.partnered(kind, leads, (*places_of(taken), *places)) for places in sets]
            best = sets[worths.index(max(worths))]
            assert companions._best(kind, leads, taken, sets) == best


@settings(max_examples=150, deadline=None)
@given(machines(), st.sets(names, max_size=4), wanted)
def test_nothing_that_could_be_had_is_worth_more(
    devices: list[Device], held: set[str], claims: list[Mapping[str, int]]
) -> None:
    found = solved(question(*claims), held, laid_out(devices))
    if found:
        together, solution = found
        got = together.appraise(solution.situation, solution.picks).value
        best = max(together.appraise(solution.situation, picks).value for picks in sets_of(solution))
        assert got >= best - ONE // 100


@settings(max_examples=100, deadline=None)
@given(machines(), st.sets(names, max_size=4), wanted, st.data())
def test_what_is_chosen_is_worth_the_same_in_whichever_order_devices_are_published(
    devices: list[Device], held: set[str], claims: list[Mapping[str, int]], data: st.DataObject
) -> None:
    found = [
        solved(question(*claims), held, laid_out(order)) for order in (devices, data.draw(st.permutations(devices)))
    ]
    # Sets that are worth the same may differ by what each of their parts is rounded by: millionths.
    worth = [together.appraise(solution.situation, solution.picks) for together, solution in filter(None, found)]
    assert len(worth) == (0 if found[0] is None else 2)
    if worth:
        assert abs(worth[0].value - worth[1].value) <= max(len(item.parts) for item in worth)


def test_where_nothing_looks_like_an_accelerator_others_follow_what_is_asked_for_first() -> None:
    unknown = [device(f"gpu-{index}", pcieRoot=f"r{index}", numaNode=index // 2) for index in range(4)]
    nics = [device(f"net-{index}", pcieRoot=f"r{3 - index}", numaNode=1 - index // 2) for index in range(4)]
    plain = board(sliced(GPU, *unknown), sliced(NIC, *nics))
    assert given_devices(question({"nic": 1, "gpu": 1}), "net-0", on=plain) == ["gpu-2", "net-1"]
    assert given_devices(question({"gpu": 1, "nic": 1}), "net-3", on=plain) == ["gpu-1", "net-2"]


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_of_many_gpus_behind_one_switch_those_are_taken_that_have_their_nics(size: int) -> None:
    many = board(
        sliced(GPU, *(_sxm(index) for index in range(16))),
        sliced(NIC, *(device(f"net-{index}", pcieRoot=f"r{index}", numaNode=index // 8) for index in range(16))),
        sliced(CPU, cpus(0), cpus(1)),
    )
    # GPUs that have lost their NIC are worth more to be rid of than a closer NIC is; here none has.
    held = ["gpu-0", "net-0", "gpu-1", "net-1"]
    chosen = given_devices(question({"gpu": size, "nic": size}, {"cpu": 8}), *held, on=many)
    assert [name for name in chosen if "net" in name] == [
        name.replace("gpu", "net") for name in chosen if "gpu" in name
    ]
    assert len({int(name.partition("-")[2]) // 8 for name in chosen if "net" in name}) == 1


def _sxm(index: int) -> Device:
    values: dict[str, str | int] = {"pciBusID": f"0000:{index:02x}:00.0", "pcieRoot": f"r{index}"}
    return device(f"gpu-{index}", type="gpu", productName="Tesla V100-SXM3-32GB", numaNode=index // 8, **values)


def test_what_takes_all_comes_first_and_others_follow_it() -> None:
    few = board(sliced(GPU, gpu(4), gpu(5)), sliced(NIC, *map(nic, range(8))), sliced(CPU, cpus(0), cpus(1)))
    assert given_devices(question({"nic": 2}, {"gpu": EVERY_ONE}, {"cpu": 8}), on=few) == [
        "cpu-1", "gpu-4", "gpu-5", "net-4", "net-5",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("claims", "near"), [([{"gpu": 1, "nic": EVERY_ONE}], (6,)), ([{"gpu": 2}, {"nic": EVERY_ONE}], (6, 7))]
)
def test_gpus_follow_nics_of_which_all_are_taken(claims: list[dict[str, int]], near: tuple[int, ...]) -> None:
    few = board(sliced(GPU, *map(gpu, range(8))), sliced(NIC, *map(nic, near)))
    expected = [f"{name}-{index}" for name in ("gpu", "net") for index in near]
    assert given_devices(question(*claims), on=few) == expected


def test_a_set_that_no_constraint_would_have_holds_nobody_up() -> None:
    apart = board(
        sliced(GPU, gpu(0)),
        sliced(NIC, *(device(f"net-{index}", pcieRoot=f"r{index % 29}", numaNode=0) for index in range(32))),
    )
    rule = Constraint(requests=("nic",), match_attribute=ROOT)
    assert given_devices(question({"gpu": 1, "nic": 2}, constraints=[rule]), on=apart) == ["gpu-0", "net-0", "net-29"]
    rule = Constraint(requests=("nic",), distinct_attribute=ROOT)
    chosen = given_devices(question({"gpu": 1, "nic": 16}, constraints=[rule]), on=apart)
    assert len({int(name.partition("-")[2]) % 29 for name in chosen if "net" in name}) == 16


class OnOneNuma(Ranker):
    """Leaves out sets on several NUMA nodes."""

    def choices(self, free: int, size: int, among: int = -1) -> Iterator[Choice]:
        every = super().choices(free, size, among)
        return (choice for choice in every if not choice.mask & 15 or choice.mask < 16)


def test_sets_that_a_ranking_leaves_out_are_not_tried() -> None:
    ground = ground_on(HOPPER, shipped())
    groups = tuple(
        group._replace(ranking=OnOneNuma(group.ranking.make, group.ranking.residual.mix)) for group in ground.groups
    )
    strict = Together(lambda one: Ground(one.board, groups, ground.sites), Tightest(), Partitioned())
    found = solved(question({"gpu": 2}), [])
    assert found
    situation, at = found[1].situation, found[1].picks[0].at
    free = situation.eligible[at].free
    assert len(list(filter(None, strict.sets(situation, at, free, 2, ())))) == 12
    assert len(list(filter(None, found[0].sets(situation, at, free, 2, ())))) == 28


def test_while_many_sets_are_looked_at_others_may_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, pauses, worth = list[int](), list[int](), Leads._worth

    def counted(leads: Leads, mask: int) -> int:
        looked.append(mask)
        return worth(leads, mask)

    monkeypatch.setattr(Leads, "_worth", counted)
    found = solved(question({"gpu": 4, "nic": 4}), ["net-0", "net-2", "net-5", "net-7"])
    assert found
    situation, at = found[1].situation, next(pick.at for pick in found[1].picks if pick.at.slot == 0)
    together, free = Together(found[0]._ground_of, Tightest(), Partitioned()), situation.eligible[at].free
    looked.clear()
    for _ in range(2):
        for places in together.sets(situation, at, free, 4, ()):
            pauses += [len(looked)] if places is REST else []
    assert len(pauses) > 2
    assert max(later - before for before, later in pairwise([0, *pauses])) <= WORKED
    # What sets are worth is worked out once.
    assert len(looked) == len(set(looked))


def test_nics_that_are_shared_leave_nobody_without() -> None:
    shared = [
        Device(one.name, one.attributes, (), Traits(allow_multiple_allocations=True)) for one in map(nic, range(8))
    ]
    together = board(sliced(GPU, *map(gpu, range(8))), sliced(NIC, *shared))
    found = solved(question({"nic": 1}), ["gpu-5"], together)
    assert found
    assert found[0].appraise(found[1].situation, found[1].picks).value == 0
    assert given_devices(question({"nic": 2}, {"gpu": 2}), "gpu-0", on=together)[2:] == ["net-1", "net-2"]


def test_the_sample_machine_is_as_close_as_the_drawn_one() -> None:
    devices = [[member.device for member in machine("dgx-h100", driver)[1]] for driver in (GPU, NIC)]
    sample = board(sliced(GPU, *devices[0]), sliced(NIC, *devices[1]))
    asked, held = question({"nic": 4}, {"gpu": 4}), ("gpu-1", "net-2")
    assert given_devices(asked, *held, on=sample) == given_devices(asked, *held)
    assert given_devices(asked, *held, on=sample) == [
        *(f"gpu-{one}" for one in range(4, 8)),
        *(f"net-{one}" for one in range(4, 8)),
    ]
