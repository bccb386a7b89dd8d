"""Devices that were promised unasked are there for those of higher priority; what was answered is not."""

import pytest

from extender.model.change import Changed
from extender.model.node import Pod
from extender.scheduling.planner import Offer, Plan, Planner, Rejection
from extender.scheduling.precedence import planned
from extender.scheduling.waking import Waker
from tests.scheduling.cast import belief_of, claim, device, gpus, held, names, node, planner_of, pod, promised

NODES = names("n1", "n2")


def stage(*pods: Pod, devices: int = 1) -> Planner:
    """Return a planner for two nodes, the second of which is full."""
    full = [held(claim(f"h{index}"), device("n2", index)) for index in range(devices)]
    fleet = [item for name in NODES for item in (node(name), gpus(name, devices))]
    claims = [claim(str(entry.claim_name)) for item in pods for entry in item.claims]
    return planner_of(belief_of(*fleet, *full, *claims, *pods))


def asked(planner: Planner, item: Pod) -> Plan:
    return planned(planner, item, NODES, 1.0)


@pytest.mark.parametrize(
    ("priority", "is_answer", "fits"),
    [(1, False, True), (0, False, False), (-1, False, False), (1, True, False)],
    ids=["higher", "the same", "lower", "answered"],
)
def test_who_is_more_important_has_what_was_promised_unasked(priority: int, *, is_answer: bool, fits: bool) -> None:
    low, high = pod("low", "a"), pod("high", "b", priority=priority)
    planner = stage(low, high)
    assert isinstance(planner.plan(low, None, 0.0, is_answer=is_answer), Offer)
    assert isinstance(asked(planner, high), Offer if fits else Rejection)
    holder = next(iter(planner.belief.ledger))
    assert holder.pod == (high.uid if fits else low.uid)
    assert promised(planner.belief) == [device("n1", 0)]


def test_what_is_being_written_is_nobody_elses() -> None:
    low, high = pod("low", "a"), pod("high", "b", priority=1)
    planner = stage(low, high)
    plan = planner.plan(low, None, 0.0, is_answer=False)
    assert isinstance(plan, Offer)
    assert planner.belief.ledger.reserve(plan.placement.promise(plan.needs, 0.0, is_answer=False))
    assert isinstance(asked(planner, high), Rejection)


def test_where_it_does_not_fit_all_the_same_promises_stay_as_they_were() -> None:
    low, high = pod("low", "a"), pod("high", "b", priority=1)
    planner = stage(low, high)
    planner.belief.apply(Changed(claim("b", 2)))
    assert isinstance(planner.plan(low, None, 0.0, is_answer=False), Offer)
    before = list(planner.belief.ledger)
    assert isinstance(asked(planner, high), Rejection)
    assert list(planner.belief.ledger) == before


def test_only_those_are_disturbed_whose_devices_are_of_the_same_pool() -> None:
    lows = [pod(f"low{index}", f"a{index}") for index in range(2)]
    high = pod("high", "b", priority=1)
    belief = belief_of(
        *(item for name in NODES for item in (node(name), gpus(name, 1))),
        *lows,
        high,
        claim("a0"),
        claim("a1"),
        claim("b"),
    )
    planner = planner_of(belief)
    for low in lows:
        assert isinstance(planner.plan(low, None, 0.0, is_answer=False), Offer)
    plan = asked(planner, high)
    assert isinstance(plan, Offer)
    left = {promise.node: promise.pod for promise in belief.ledger}
    assert left[plan.placement.node] == high.uid
    assert len(left) == 2


def test_the_more_important_of_those_who_wait_is_woken_for_what_another_was_promised_just_before() -> None:
    low, high = pod("low", "a"), pod("high", "b", priority=1)
    planner = stage(low, high)
    waker = Waker(planner.belief, planner)
    waker.put(high.uid)
    assert isinstance(planner.plan(low, None, 0.0, is_answer=False), Offer)
    assert [wake.pod for wake in waker.round(1.0) if wake] == [high]
