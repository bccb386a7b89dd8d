"""An allocation has so much configuration for drivers and no more: whoever needs more is told before it is written."""

from dataclasses import replace

import pytest

from extender.allocation.configuration import ENTRIES, least
from extender.allocation.result import Release
from extender.model.claim import ClaimSpec, DeviceClass, DeviceConfig, RequestSlot, ResourceClaim, Selector
from extender.model.names import ClassName
from extender.scheduling.planner import Offer, Plan, Rejection
from extender.scheduling.vocabulary import Word
from extender.scheduling.waking import Waker
from extender.scheduling.yielding import Yielding
from tests.scheduling.cast import GPU, belief_of, claim, gpus, node, planner_of, pod
from tests.scheduling.mixed import asks, one, some

LARGE, LARGER, LARGEST = (ClassName(f"large-{number}") for number in range(3))
# As many as a class, or a claim, may have.
MOST = 32
TOLD = "96 entries of configuration, of classes and its own, are more than the 64 of an allocation"


def entries(count: int, *requests: str) -> tuple[DeviceConfig, ...]:
    drawn = ({"driver": "d", "parameters": {"number": number}} for number in range(count))
    return tuple(DeviceConfig(requests=requests, opaque=opaque) for opaque in drawn)


CLASSES = tuple(
    DeviceClass(name=name, selectors=(Selector("true"),), config=entries(MOST)) for name in (LARGE, LARGER, LARGEST)
)
BY_NAME = {item.name: item for item in CLASSES}


def planned(asked: ResourceClaim, release: Release = Release.V1_37) -> Plan:
    belief = belief_of(*CLASSES, node("n1"), node("n2"), gpus("n1", 8), gpus("n2", 8), asked)
    planner = planner_of(belief)
    planner.chooser.release = release
    return planner.plan(pod("p", asked.key.name), None, 0.0)


def configured(asked: ResourceClaim, *config: DeviceConfig) -> ResourceClaim:
    return replace(asked, spec=replace(asked.spec, config=config))


def written(plan: Plan) -> tuple[DeviceConfig, ...]:
    assert isinstance(plan, Offer)
    ((_, allocation),) = plan.placement.claims
    return allocation.config


@pytest.mark.parametrize("release", Release)
def test_a_claim_of_classes_with_too_much_configuration_is_refused_with_the_number(release: Release) -> None:
    plan = planned(asks("c", *(some(1, name, name) for name in (LARGE, LARGER, LARGEST))), release)
    assert isinstance(plan, Rejection)
    assert (plan.word, plan.detail) == (Word.QUESTION, f"claim c: {TOLD}")


def test_it_is_refused_before_devices_are_free() -> None:
    asked = asks("c", *(some(1, name, name) for name in (LARGE, LARGER, LARGEST)))
    plan = planner_of(belief_of(*CLASSES, node("n1"), asked)).plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Rejection)
    assert (plan.word, plan.detail) == (Word.QUESTION, f"claim c: {TOLD}")


def test_as_much_configuration_as_an_allocation_has_is_given() -> None:
    asked = asks("c", some(1, LARGE, "a"), some(1, LARGE, "b"))
    assert len(written(planned(configured(asked, *entries(MOST, "a"))))) == ENTRIES
    more = configured(asks("c", some(1, LARGE, "a"), some(1, LARGER, "b")), *entries(1))
    assert isinstance(planned(more), Rejection)


def test_before_137_configuration_is_repeated_for_each_request_as_far_as_there_is_room() -> None:
    names = tuple(f"r{number}" for number in range(8))
    asked = asks("c", *(some(1, GPU, name) for name in names))
    few, many = (configured(asked, *entries(count, *names)) for count in (8, 9))
    assert len(written(planned(few, Release.V1_36))) == ENTRIES
    for release in (Release.V1_34, Release.V1_35, Release.V1_36):
        assert written(planned(many, release)) == written(planned(many, Release.V1_37))
    assert len(written(planned(many, Release.V1_36))) == 9


def test_of_alternatives_those_count_that_are_given() -> None:
    small = RequestSlot(name="x", first_available=(one(1, GPU, "small"), one(1, LARGEST, "large")))
    large = RequestSlot(name="x", first_available=(one(1, LARGEST, "large"), one(1, GPU, "small")))
    rest = some(1, LARGE, "a"), some(1, LARGER, "b")
    assert len(written(planned(asks("c", small, *rest)))) == ENTRIES
    plan = planned(asks("c", large, *rest))
    assert isinstance(plan, Rejection)
    assert (plan.word, plan.detail) == (Word.QUESTION, f"claim c: {TOLD}")


def test_what_another_claim_that_asks_the_same_may_have_says_nothing_of_this_one() -> None:
    slots = some(1, LARGE, "a"), some(1, LARGER, "b")
    fits, exceeds = asks("c", *slots), configured(asks("d", *slots), *entries(MOST))
    belief = belief_of(*CLASSES, node("n1"), gpus("n1", 8), fits, exceeds)
    planner = planner_of(belief)
    for _ in range(2):
        assert isinstance(planner.plan(pod("p", "c"), None, 0.0), Offer)
        plan = planner.plan(pod("q", "d"), None, 0.0)
        assert isinstance(plan, Rejection)
        assert plan.detail == f"claim d: {TOLD}"


def test_who_asks_the_same_with_less_configuration_is_woken() -> None:
    slots = some(1, LARGE, "a"), some(1, LARGER, "b")
    fits, exceeds = asks("c", *slots), configured(asks("d", *slots), *entries(MOST))
    first, second = pod("first", "d", priority=1), pod("second", "c")
    belief = belief_of(*CLASSES, node("n1"), gpus("n1", 8), fits, exceeds, first, second)
    waker = Waker(belief, planner_of(belief))
    for each in (first, second):
        waker.put(each.uid)
    assert [wake.pod for wake in waker.round(1.0) if wake] == [second]


def test_for_who_asks_the_same_with_less_configuration_others_leave_what_they_were_promised() -> None:
    slots = some(1, LARGE, "a"), some(1, LARGER, "b")
    fits, exceeds, least_of_all = asks("c", *slots), configured(asks("d", *slots), *entries(MOST)), claim("e")
    pods = pod("first", "d", priority=1), pod("second", "c", priority=1), pod("lesser", "e")
    belief = belief_of(*CLASSES, node("n1"), gpus("n1", 2), fits, exceeds, least_of_all, *pods)
    planner = planner_of(belief)
    assert isinstance(planner.plan(pods[2], None, 0.0, is_answer=False), Offer)
    yielding = Yielding(belief, planner.chooser)
    assert yielding.who(pods[0], lambda nodes: nodes) == ()
    assert list(yielding.who(pods[1], lambda nodes: nodes)) == [pods[2].uid]


@pytest.mark.parametrize(
    ("slots", "config", "count"),
    [
        ((some(1, LARGE, "a"), some(2, LARGE, "b")), (), MOST),
        ((some(1, LARGE, "a"),), entries(3) + entries(2, "a") + entries(4, "b"), MOST + 5),
        ((RequestSlot(name="a", first_available=(one(1, LARGE, "s"), one(1, LARGER, "t"))),), entries(1, "a/s"), 0),
        ((RequestSlot(name="a", first_available=(one(1, LARGE, "s"), one(2, LARGE, "t"))),), entries(1, "a"), MOST + 1),
        ((RequestSlot(name="a"),), entries(1), 1),
    ],
    ids=["a class once", "its own as far as named", "either class", "one class either way", "nothing asked"],
)
def test_what_is_certain_is_what_every_choice_has(
    slots: tuple[RequestSlot, ...], config: tuple[DeviceConfig, ...], count: int
) -> None:
    assert least(ClaimSpec(requests=slots, config=config), BY_NAME) == count
