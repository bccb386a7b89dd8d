"""A node is offered on which the first alternative of a list can be had, if there is any, however many have others."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.allocation.choose import choose
from extender.allocation.solve import FIRST, Manner, Solution
from extender.allocation.verdict import Fit
from extender.model.change import Changed
from extender.model.claim import (
    AllocatedDevice,
    Allocation,
    Constraint,
    DeviceClass,
    DeviceRequest,
    RequestSlot,
    ResourceClaim,
    Selector,
)
from extender.model.device import (
    Attribute,
    Counter,
    CounterConsumption,
    CounterSet,
    Device,
    NodeSelection,
    ResourceSlice,
    Traits,
)
from extender.model.names import ClassName, DeviceKey, DeviceName, DriverName, NodeName, PoolName
from extender.model.quantity import parse_quantity
from extender.scheduling.choosing import Chooser
from extender.scheduling.planner import Offer, Planner
from extender.scheduling.ranking import Answer, AnswerPolicy
from extender.state.belief import Belief
from extender.topology.policies import Policies
from tests.scheduling.cast import belief_of, claim, node, pod
from tests.scheduling.mixed import asks, planner_by

DRIVER = DriverName("gpu.example.com")
GROUP = "example.com/group"
KINDS = ("gpu", "large", "small", "other")
CLASSES = tuple(
    DeviceClass(name=ClassName(kind), selectors=(Selector(f"device.attributes['{DRIVER}'].kind == '{kind}'"),))
    for kind in KINDS
)
# How many parts a GPU can be cut into, and how many of them a large partition has.
PARTS, LARGE, GPUS = 7, 3, 4
Published = list[ResourceSlice]


def several(kind: str, count: int, name: str = "") -> DeviceRequest:
    """Ask for *count* devices, or for all."""
    mode = "ExactCount" if count else "All"
    return DeviceRequest(name=name or f"{kind}-{count}", class_name=ClassName(kind), mode=mode, count=count)


def either(*some: DeviceRequest, name: str = "r") -> RequestSlot:
    return RequestSlot(name=name, first_available=some)


def sliced(name: str, devices: Iterable[Device], sets: tuple[CounterSet, ...] = ()) -> Published:
    made, place = [], NodeSelection(node_name=NodeName(name))
    for part, (some, shared) in enumerate([(tuple(devices), ()), ((), sets)] if sets else [(tuple(devices), ())]):
        made.append(
            ResourceSlice(
                name=f"{name}-{part}",
                driver=DRIVER,
                pool=PoolName(name),
                generation=1,
                slice_count=2 if sets else 1,
                selection=place,
                devices=some,
                shared_counters=shared,
            )
        )
    return made


def device(name: str, kind: str, group: str = "", traits: Traits | None = None) -> Device:
    told = [("kind", Attribute("string", kind)), *([(GROUP, Attribute("string", group))] if group else [])]
    return Device(DeviceName(name), tuple(sorted(told)), (), traits or Traits())


def whole(name: str) -> Published:
    """Publish eight GPUs, the first half in one group, the others in another."""
    return sliced(name, (device(f"gpu-{index}", "gpu", "ab"[index // 4]) for index in range(8)))


def cut(name: str) -> Published:
    """Publish GPUs that can be had whole, or in large and small partitions."""

    def part(index: int, kind: str, parts: Iterable[int], tag: str) -> Device:
        counters = tuple(Counter(f"part-{number}", parse_quantity("1")) for number in parts)
        traits = Traits(consumes_counters=(CounterConsumption(f"chip-{index}", counters),))
        return device(f"gpu-{index}{tag}", kind, traits=traits)

    devices, sets = [], []
    for index in range(GPUS):
        every = range(PARTS)
        sets.append(
            CounterSet(f"chip-{index}", tuple(Counter(f"part-{number}", parse_quantity("1")) for number in every))
        )
        devices.append(part(index, "gpu", every, ""))
        starts = range(0, PARTS - LARGE + 1, LARGE)
        devices += [part(index, "large", range(start, start + LARGE), f"-large-{start}") for start in starts]
        devices += [part(index, "small", [number], f"-small-{number}") for number in every]
    return sliced(name, devices, tuple(sets))


def holder(name: str, devices: Iterable[str]) -> ResourceClaim:
    """Return the claim that holds *devices* of a node."""
    given = (DeviceKey(DRIVER, PoolName(name), DeviceName(one)) for one in devices)
    results = tuple(AllocatedDevice(request="r", device=key) for key in given)
    return replace(claim(f"held-{name}"), allocation=Allocation(devices=results))


def most_gpus(random: Random) -> list[str]:
    """Take GPUs such that two are left in each group."""
    left = {*random.sample(range(4), 2), *random.sample(range(4, 8), 2)}
    return [f"gpu-{index}" for index in range(8) if index not in left]


def some_parts(random: Random) -> list[str]:
    """Take partitions such that no GPU is whole, nor either of its large partitions."""
    taken = [(index, number) for index in range(GPUS) for number in (random.randrange(3), random.randrange(3, 6))]
    return [f"gpu-{index}-small-{number}" for index, number in taken]


def cluster(used: int, free: int, kind: Callable[[str], Published], taken: Callable[[Random], list[str]]) -> Belief:
    """Return nodes of which parts are taken, before nodes of which nothing is."""
    random, names = Random(1), [f"a{index:03}" for index in range(used)]  # noqa: S311 - no secret depends on it
    holders = [holder(name, taken(random)) for name in names]
    names += [f"b{index:03}" for index in range(free)]
    return belief_of(*CLASSES, *map(node, names), *(one for name in names for one in kind(name)), *holders)


def given_to(belief: Belief, wanted: ResourceClaim, planner: Planner | None = None) -> tuple[str, set[str]]:
    """Return the node that a pod is offered, and of which requests its devices are."""
    belief.apply(Changed(wanted))
    plan = (planner or planner_by(belief, Policies())).plan(pod("p", wanted.key.name), None, 0.0)
    assert isinstance(plan, Offer)
    return plan.placement.node[:1], {item.request for _, given in plan.placement.claims for item in given.devices}


@pytest.mark.parametrize("used", [60, 200])
@pytest.mark.parametrize(
    ("first", "second", "match"),
    [
        pytest.param(several("gpu", 0), several("gpu", 2), "", id="all GPUs, which are free nowhere else"),
        pytest.param(several("gpu", 8), several("gpu", 2), "", id="more GPUs than are free elsewhere"),
        pytest.param(several("gpu", 4), several("gpu", 2), GROUP, id="as many of one group"),
    ],
)
def test_the_first_alternative_is_given_behind_many_nodes_without(
    used: int, first: DeviceRequest, second: DeviceRequest, match: str
) -> None:
    wanted = asks("c", either(first, second))
    if match:
        wanted = replace(wanted, spec=replace(wanted.spec, constraints=(Constraint(match_attribute=match),)))
    assert given_to(cluster(used, 10, whole, most_gpus), wanted) == ("b", {f"r/{first.name}"})


@pytest.mark.parametrize("first", ["gpu", "large"])
def test_what_is_cut_up_is_not_taken_for_whole(first: str) -> None:
    wanted = asks("c", either(several(first, 1), several("small", 1)))
    assert given_to(cluster(60, 10, cut, some_parts), wanted) == ("b", {f"r/{first}-1"})


def test_each_of_several_claims_has_its_first_alternative() -> None:
    belief = cluster(60, 10, cut, some_parts)
    for name, first in (("c", "gpu"), ("d", "large")):
        belief.apply(Changed(asks(name, either(several(first, 1), several("small", 1)))))
    plan = planner_by(belief, Policies()).plan(pod("p", "c", "d"), None, 0.0)
    assert isinstance(plan, Offer)
    assert [item.request for _, given in plan.placement.claims for item in given.devices] == ["r/gpu-1", "r/large-1"]


def drawn(seed: int) -> tuple[Belief, Random]:
    """Return nodes with some of their devices in use, on few of which there is a GPU that is whole, or a group."""
    random = Random(seed)  # noqa: S311 - no secret depends on it
    names = [f"n{index:02}" for index in range(random.randint(1, 60))]
    kinds, spared = random.choice(((whole,), (cut,), (whole, cut))), random.choice((0.0, 0.005, 0.02))
    slices, holders = list[ResourceSlice](), list[ResourceClaim]()
    for name in names:
        kind = random.choice(kinds)
        slices += kind(name)
        taken = most_gpus(random) if kind is whole else some_parts(random)
        cards = {f"gpu-{index}" for index in range(8) if random.random() < spared}
        holders.append(holder(name, [one for one in taken if one[:5] not in cards]))
    return belief_of(*CLASSES, *map(node, names), *slices, *holders), random


def requested(random: Random) -> DeviceRequest:
    """Draw an alternative."""
    kind, count = random.choice((("gpu", 1), ("gpu", 3), ("gpu", 5), ("gpu", 0), ("large", 1), ("small", 2)))
    return several(kind, count)


@given(st.integers(0, 1 << 30))
@settings(max_examples=30)
def test_the_first_alternative_that_fits_anywhere_is_given(seed: int) -> None:
    belief, random = drawn(seed)
    some = list({item.name: item for item in (requested(random) for _ in range(3))}.values())
    match = (Constraint(match_attribute=GROUP),) if random.random() < 0.3 else ()

    def wanted(*left: DeviceRequest) -> ResourceClaim:
        made = asks("c", either(*left))
        return replace(made, spec=replace(made.spec, constraints=match))

    def fit(*left: DeviceRequest) -> Fit:
        snapshot = belief.cluster.snapshot
        return belief.questions.fitter([wanted(*left)], snapshot.classes).fit(snapshot)

    first = next((item.name for item in some if fit(item).mask.any()), None)
    if first is not None:
        assert given_to(belief, wanted(*some))[1] == {f"r/{first}"}


def planner_as_asked(belief: Belief, answers: AnswerPolicy | None = None) -> Planner:
    """Return a planner that prefers nothing, as by the order of kube-scheduler."""
    return Planner(belief, Chooser(belief, lambda: "share", Manner()), answers or AnswerPolicy())


def test_without_any_preference_nodes_are_ranked_by_their_alternatives() -> None:
    slices = [*sliced("few", [device("d0", "other")]), *whole("many")]
    belief = belief_of(*CLASSES, node("few"), node("many"), *slices)
    wanted = asks("c", either(several("gpu", 1), several("other", 1)))
    assert given_to(belief, wanted, planner_as_asked(belief)) == ("m", {"r/gpu-1"})


def score(belief: Belief, wanted: ResourceClaim, number: int) -> int | None:
    """Score a node as kube-scheduler's plugin DynamicResources does in computeScore; None where it does not fit."""
    snapshot = belief.cluster.snapshot
    question = belief.questions.question([wanted], snapshot.classes)
    answer = choose(snapshot, number, question, FIRST)
    if not isinstance(answer, Solution):
        return None
    given = {answer.situation.asks[pick.at].name for pick in answer.picks}
    return sum(
        8 - index
        for slot in wanted.spec.requests
        for index, item in enumerate(slot.first_available)
        if f"{slot.name}/{item.name}" in given
    )


@given(st.integers(0, 1 << 30))
@settings(max_examples=20)
def test_without_any_preference_nodes_are_ranked_as_kube_scheduler_scores_them(seed: int) -> None:
    belief, random = drawn(seed)
    slots = [either(*dict.fromkeys(requested(random) for _ in range(3)), name=f"r{index}") for index in range(2)]
    # What only one of them wants is the same whichever devices the other has.
    partitions = [item for item in slots[1].first_available if item.class_name != "gpu"] or [several("small", 1)]
    wanted = asks("c", slots[0], replace(slots[1], first_available=tuple(partitions)))
    belief.apply(Changed(wanted))
    nodes = belief.cluster.snapshot.layout.nodes
    scores = {name: score(belief, wanted, number) for number, name in enumerate(nodes)}
    plan = planner_as_asked(belief, AnswerPolicy(Answer.ALL)).plan(pod("p", "c"), None, 0.0)
    fitting = {name: found for name, found in scores.items() if found is not None}
    if not fitting:
        assert not isinstance(plan, Offer)
        return
    assert isinstance(plan, Offer)
    assert set(plan.scores) == set(fitting)
    assert fitting[plan.placement.node] == max(fitting.values())
    order = sorted(fitting, key=lambda name: -plan.scores[name])
    assert [fitting[name] for name in order] == sorted(fitting.values(), reverse=True)
