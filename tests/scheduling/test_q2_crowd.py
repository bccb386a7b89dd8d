"""Q2: ten thousand pods that fit nowhere cost the one that fits nothing, and nobody waits for a look at all of them."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from extender.model.change import Changed, Gone
from extender.model.claim import ClaimSpec, ResourceClaim, Selector
from extender.model.node import Pod
from extender.scheduling import planner as module
from extender.scheduling.planner import Offer, Rejection
from extender.scheduling.survey import survey
from extender.scheduling.waking import CALM, LOOKS, PASSED, SPACING_S, Wake, Waker
from tests.scheduling.cast import belief_of, claim, device, gpus, held, names, node, planner_of, pod

NODES = names(*(f"n{number}" for number in range(20)))


def asking(number: int, *, is_distinct: bool) -> tuple[Pod, ResourceClaim]:
    """Return a pod that asks for more than any node has, in words of its own or as all the others."""
    item = claim(f"c{number:05}", 9, version=number + 10)
    (slot,) = item.spec.requests
    if is_distinct and slot.exactly:
        asked = replace(slot.exactly, selectors=(Selector(f"device.driver != 'x{number}'"),))
        item = replace(item, spec=ClaimSpec(requests=(replace(slot, exactly=asked),)))
    return pod(f"p{number:05}", item.key.name), item


class Crowd:
    """Pods that fit nowhere and were told so."""

    def __init__(self, count: int, *, is_distinct: bool) -> None:
        fleet = [item for name in NODES for item in (node(name), gpus(name, 2))]
        holders = [held(claim(f"h{name}-{index}"), device(name, index)) for name in NODES for index in (0, 1)]
        self.belief = belief_of(*fleet, *holders)
        self.planner = planner_of(self.belief)
        self.waker = Waker(self.belief, self.planner)
        for number in range(count):
            self.waits(*asking(number, is_distinct=is_distinct))

    def waits(self, item: Pod, *claims: ResourceClaim) -> None:
        everything: tuple[Pod | ResourceClaim, ...] = (*claims, item)
        for each in everything:
            self.belief.apply(Changed(each))
        assert isinstance(self.planner.plan(item, NODES, 0.0), Rejection)
        self.waker.put(item.uid)

    def free(self, name: str) -> None:
        self.belief.apply(Gone(ResourceClaim, claim(f"h{name}-0").key))

    def round(self, now: float) -> list[Wake]:
        return [wake for wake in self.waker.round(now) if wake]


@pytest.fixture
def surveys(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often nodes are judged for somebody."""
    count = [0]

    def counted(judge: Callable[..., object]) -> Callable[..., object]:
        def judged(*given: object) -> object:
            count[0] += 1
            return judge(*given)

        return judged

    monkeypatch.setattr(module, "survey", counted(survey))
    return count


def test_ten_thousand_that_fit_nowhere_are_looked_at_once_and_do_not_delay_the_one_that_fits(
    surveys: list[int],
) -> None:
    crowd = Crowd(10_000, is_distinct=False)
    crowd.waits(pod("small", "small"), claim("small", 1, version=5))
    assert crowd.round(1.0) == []
    crowd.free("n7")
    surveys[0] = 0
    assert [(wake.pod.key.name, wake.node) for wake in crowd.round(10.0)] == [("small", "n7")]
    assert surveys[0] <= 4
    surveys[0] = 0
    fresh = pod("fresh", "fresh")
    crowd.free("n8")
    for item in (claim("fresh", 1, version=6), fresh):
        crowd.belief.apply(Changed(item))
    assert isinstance(crowd.planner.plan(fresh, NODES, 11.0), Offer)
    assert surveys[0] == 1


def test_who_asks_something_else_each_has_a_turn_and_a_round_is_short(surveys: list[int]) -> None:
    crowd = Crowd(3 * LOOKS, is_distinct=True)
    crowd.waits(pod("small", "small"), claim("small", 1, version=5))
    assert crowd.round(1.0) == []
    crowd.free("n7")
    rounds: list[list[Wake]] = []
    while not rounds or not rounds[-1]:
        surveys[0] = 0
        rounds.append(crowd.round(10.0 + len(rounds)))
        assert surveys[0] <= LOOKS + 1
    assert [wake.pod.key.name for wake in rounds[-1]] == ["small"]
    assert len(rounds) <= 4


def test_others_have_their_turn_after_each_look() -> None:
    crowd = Crowd(50, is_distinct=True)
    crowd.free("n7")
    looking = crowd.waker.round(10.0)
    assert [next(looking) for _ in range(10)] == [None] * 10
    # Meanwhile one pod is gone, one is offered what it needs, and one comes.
    crowd.belief.apply(Gone(Pod, pod("p00030").key))
    crowd.waker.drop(pod("p00031").uid)
    crowd.waits(*asking(77, is_distinct=True))
    assert list(looking) == [None] * 38
    # Who is gone is forgotten after a while: the scheduler may know a pod before the watch shows it.
    assert len(crowd.waker) == 50


def test_others_have_their_turn_while_many_are_passed_over() -> None:
    crowd = Crowd(10 * PASSED, is_distinct=False)
    crowd.free("n7")
    assert len(list(crowd.waker.round(10.0))) >= 10


def test_what_changes_during_a_round_is_looked_at_in_the_next() -> None:
    crowd = Crowd(5, is_distinct=True)
    small = pod("small", "small", priority=9)
    crowd.waits(small, claim("small", 1, version=5))
    crowd.belief.apply(Changed(node("another")))
    looking = crowd.waker.round(10.0)
    assert next(looking) is None
    crowd.free("n7")
    assert [wake for wake in looking if wake] == []
    assert [wake.pod.key.name for wake in crowd.round(10.1)] == ["small"]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Note when it is seen of all pods whose turn it is."""
    times: list[float] = []
    whole = Waker._in_line

    def noted(waker: Waker, now: float, *, is_news: bool) -> Iterator[Pod]:
        times.append(now)
        return whole(waker, now, is_news=is_news)

    monkeypatch.setattr(Waker, "_in_line", noted)
    return times


def test_of_many_that_rest_it_is_not_seen_all_the_time_who_has_rested(lines: list[float]) -> None:
    many = 1000
    crowd = Crowd(many, is_distinct=False)
    crowd.free("n7")
    assert crowd.round(10.0) == []
    for tick in range(1, 100):
        # One that was offered something and is back is new.
        back = asking(tick, is_distinct=False)[0].uid
        crowd.waker.drop(back)
        crowd.waker.put(back)
        assert crowd.round(10.0 + tick / 10) == []
    assert lines == [10.0 + CALM * SPACING_S * many * turn for turn in range(10)]


def test_news_is_not_waited_for_as_long_as_rest() -> None:
    crowd = Crowd(1000, is_distinct=False)
    crowd.free("n7")
    assert crowd.round(10.0) == []
    crowd.waits(pod("small", "small"), claim("small", 2, version=5))
    crowd.free("n8")
    assert [wake.pod.key.name for wake in crowd.round(10.2)] == []
    crowd.belief.apply(Gone(ResourceClaim, claim("hn8-1").key))
    assert [wake.pod.key.name for wake in crowd.round(10.4)] == ["small"]
