"""What keeps pods from being placed is freed, by what was found out in this term alone."""

import logging
from collections.abc import Generator
from dataclasses import replace

import pytest

from extender.model.change import Gone
from extender.model.names import NodeName
from extender.model.node import Pod
from extender.scheduling.endings import NotBound
from extender.scheduling.steps import Outcome, Step
from extender.service.attention import TICK_S
from extender.service.freeing import PATIENCE_S, Vain
from extender.service.habits import Habits
from tests.scheduling.cast import belief_of, claim, device, held, node, pod
from tests.scheduling.server import World, allocation_of
from tests.scheduling.stage import OTHER, POD, A, bind, world_of
from tests.scheduling.test_r7_conditions import START, WAITS, reported, waiting
from tests.service.test_attention import Steps, Wakes, attention_of, contested, refused

ATTEMPTS = Habits().attempts
ENDS = {"done": True, "refused": False, "unheard": None}


def test_nothing_that_was_found_out_in_an_earlier_term_is_remembered() -> None:
    subject = pod("p", "c")
    attention = attention_of(belief_of(node("n1"), claim("c"), subject), Wakes(), 0.0)
    freeing = attention._freeing
    freeing.refusals[subject.uid] = 3
    freeing.cleared[subject.uid] = frozenset()
    freeing._leaving[claim("c").uid] = "1"
    freeing._vain[subject.uid] = Vain(frozenset(), 9.0, 1.0)
    freeing._unready.add(subject.uid)
    attention._steers[subject.uid], attention._silent = True, claim("c").uid
    waits = attention.waits
    waits.awaits(subject.uid, NodeName("n1"), is_unheard=True)
    waits._nudged[subject.uid] = 1.0
    waits._left = {subject.uid}
    attention._forget()
    known = freeing.refusals, freeing.cleared, freeing._leaving, freeing._vain, attention._steers, attention._silent
    assert not any((*known, freeing._unready))
    assert not any((waits._awaiting, waits._unheard, waits._nudged, waits._left))


class Carried(Steps):
    """Stands in for the carrier: counts what it is given; *end*: how all ends, without a step."""

    def __init__(self, world: World, end: str = "") -> None:
        super().__init__(world)
        self.end, self.count, self.attention = end, 0, attention_of(world.belief, Wakes(), START, self)
        self.is_offered = False

    async def carry(self, work: Generator[Step, Outcome, bool], deadline: float) -> bool | None:  # type: ignore[override]  # as the carrier
        self.count += 1
        if self.is_offered:
            self.attention.offered(POD)
        if not self.end:
            return await super().carry(work, deadline)
        work.close()
        return ENDS[self.end]


def in_the_way() -> World:
    """POD has a device on n1, which keeps it there; OTHER has all that is free."""
    others = held(claim("b"), device("n2", 0), by=OTHER)
    return world_of(held(claim("a"), device("n1", 0), by=POD), others)


async def test_r4_a_claim_is_freed_after_so_many_refusals_and_not_before(caplog: pytest.LogCaptureFixture) -> None:
    world = in_the_way()
    freeing = Carried(world).attention._freeing
    for _ in range(ATTEMPTS - 1):
        freeing.rejected(POD, is_at_once=False)
        await freeing.round(lambda: 0.0)
    assert allocation_of(world.server, "a") is not None
    known = world.server.claims[A]
    freeing.rejected(POD, is_at_once=False)
    with caplog.at_level(logging.INFO):
        await freeing.round(lambda: 0.0)
    assert allocation_of(world.server, "a") is None
    assert freeing.cleared == {POD.uid: {(known.uid, known.resource_version)}}
    assert [record.message for record in caplog.records] == ["claims freed that could not be used"]


async def test_r4_what_could_not_be_freed_is_not_told_to_be() -> None:
    carried = Carried(in_the_way(), "refused")
    carried.attention._refusals[POD.uid] = ATTEMPTS
    await carried.attention._free()
    assert carried.attention._freeing.cleared == {}


async def test_r4_refusals_do_not_count_before_something_is_in_the_way_or_while_others_go_for_the_pod() -> None:
    world = in_the_way()
    freeing = Carried(world).attention._freeing
    freeing.rejected(pod("free"), is_at_once=False)
    assert not freeing.refusals
    nominated = replace(POD, nominated_node=node("n1").name)
    freeing.are_going = lambda _pod, _node, _is_on: True
    for _ in range(ATTEMPTS):
        freeing.rejected(nominated, is_at_once=False)
        await freeing.round(lambda: 0.0)
    assert allocation_of(world.server, "a") is not None


async def test_r4_time_counts_once_a_tick() -> None:
    world = in_the_way()
    freeing = Carried(world).attention._freeing
    freeing.rejected(POD, is_at_once=False)
    for _ in range(2 * ATTEMPTS):
        await freeing.round(lambda: TICK_S)
    assert allocation_of(world.server, "a") is not None


async def test_r4_who_is_gone_or_hindered_no_more_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    world = contested(POD)
    carried = Carried(world, "refused")
    refused(carried.attention)
    world.belief.apply(Gone(Pod, POD.key))
    carried.attention.waker.drop(POD.uid)
    await carried.attention._free()
    assert (carried.count, dict(carried.attention._refusals)) == (0, {})
    carried.attention._refusals[OTHER.uid] = ATTEMPTS
    await carried.attention._free()
    assert (carried.count, dict(carried.attention._refusals)) == (1, {})
    assert caplog.records == []


async def test_r4_who_was_offered_a_node_while_another_was_freed_keeps_what_it_has() -> None:
    second = pod("second", "a")
    world = contested(POD)
    world.server.put(second)
    world.server.deliver(world.belief)
    carried = Carried(world, "done")
    carried.is_offered = True
    carried.attention._refusals.update({second.uid: ATTEMPTS, POD.uid: ATTEMPTS})
    await carried.attention._free()
    assert carried.count == 1


def test_r4_what_cannot_be_freed_is_tried_half_as_often_each_time_and_anew_once_it_is_something_else() -> None:
    freeing = Carried(contested(POD)).attention._freeing
    pauses = list[float]()
    for held_by in (*[frozenset({(POD.uid, "1")})] * 8, frozenset({(POD.uid, "2")})):
        freeing._leave(POD.uid, held_by, 5.0)
        pauses.append(freeing._vain[POD.uid].at - 5.0)
    assert pauses == [1, 2, 4, 8, 16, 32, PATIENCE_S, PATIENCE_S, 1]


@pytest.mark.parametrize(("end", "is_slow"), [("done", False), ("refused", False), ("unheard", True)])
async def test_r4_only_who_gets_no_answer_holds_up_others(end: str, *, is_slow: bool) -> None:
    carried = Carried(contested(POD), end)
    refused(carried.attention)
    await carried.attention._free()
    assert (POD.key.namespace in carried.attention._turns.slow) is is_slow


async def test_r4_what_is_freed_is_not_freed_again_before_the_watch_shows_it() -> None:
    carried = Carried(contested(POD), "done")
    refused(carried.attention)
    await carried.attention._free()
    assert (carried.count, dict(carried.attention._refusals)) == (1, {})


@pytest.mark.parametrize("end", ["done", "refused"])
async def test_r4_who_was_offered_a_node_while_something_was_freed_is_left_alone(end: str) -> None:
    carried = Carried(contested(POD), end)
    carried.is_offered = True
    refused(carried.attention)
    await carried.attention._free()
    freeing = carried.attention._freeing
    assert (dict(freeing.refusals), freeing.cleared, freeing._vain) == ({}, {}, {})


async def test_r4_what_was_not_answered_is_tried_again_each_tick() -> None:
    carried = Carried(contested(POD), "unheard")
    refused(carried.attention)
    for tick in range(4):
        for _ in range(2):
            carried.attention._turns.begin()
            await carried.attention._freeing.round(lambda tick=tick: tick * TICK_S)  # type: ignore[misc]  # a default that is never given
        assert carried.count == tick + 1


async def test_r4_a_namespace_in_which_something_was_freed_comes_last_no_more() -> None:
    carried = Carried(contested(POD), "done")
    carried.attention._turns.slow[POD.key.namespace] = -1.0
    refused(carried.attention)
    carried.attention._turns.begin()
    await carried.attention._free()
    assert not carried.attention._turns.slow


def test_r4_who_was_left_alone_is_tried_again_as_soon_as_any_of_what_is_in_its_way_changes() -> None:
    world = world_of(claim("a"), claim("b"))
    freeing, versions = Carried(world).attention._freeing, world.belief.cluster.claims
    held_now = frozenset((item.uid, item.resource_version) for item in versions)
    freeing._vain[POD.uid] = Vain(held_now, 9.0, 1.0)
    assert freeing._rests(POD.uid, 0.0)
    world.server.put(world.server.claims[A])
    world.server.deliver(world.belief)
    assert not freeing._rests(POD.uid, 0.0)


@pytest.mark.parametrize("is_deleting", [False, True])
async def test_r7_what_is_made_ready_and_deleted_is_given_up_though_there_is_nothing_elsewhere(
    *, is_deleting: bool
) -> None:
    world = waiting()
    world.server.put(replace(world.server.claims[A], is_deleting=is_deleting))
    world.server.deliver(world.belief)
    freeing = Carried(world).attention._freeing
    freeing.is_of_use = lambda _needs, _claims: False
    freeing.refusals[POD.uid] = ATTEMPTS
    await freeing.round(lambda: 0.0)
    assert (allocation_of(world.server, "a") is None) is is_deleting


@pytest.mark.parametrize("is_looked_at", [False, True])
async def test_r7_refusals_from_before_a_device_was_ready_do_not_count_once_it_is(*, is_looked_at: bool) -> None:
    world = waiting()
    freeing = Carried(world).attention._freeing
    for _ in range(ATTEMPTS):
        freeing.rejected(POD, is_at_once=False)
    reported(world, "attached")
    if is_looked_at:
        freeing.rejected(POD, is_at_once=False)
    await freeing.round(lambda: 0.0)
    assert allocation_of(world.server, "a") is not None
    for _ in range(ATTEMPTS):
        freeing.rejected(POD, is_at_once=False)
    await freeing.round(lambda: 0.0)
    assert allocation_of(world.server, "a") is None


async def test_r7_what_no_other_attempt_ends_better_with_is_freed_at_once_though_it_is_ready_just_now() -> None:
    world = waiting()
    freeing = Carried(world).attention._freeing
    freeing.rejected(POD, is_at_once=False)
    reported(world, "attached")
    freeing.rejected(POD, is_at_once=True)
    await freeing.round(lambda: 0.0)
    assert allocation_of(world.server, "a") is None


async def test_r7_refusals_from_before_a_device_has_failed_count() -> None:
    world = waiting()
    freeing = Carried(world).attention._freeing
    for _ in range(ATTEMPTS):
        freeing.rejected(POD, is_at_once=False)
    reported(world, "broken")
    await freeing.round(lambda: 0.0)
    assert allocation_of(world.server, "a") is None


async def test_r7_what_is_made_ready_is_given_up_where_something_else_is_in_the_way_too() -> None:
    both = pod("p", "a", "c")
    world = world_of(claim("a"), traits=WAITS, subject=both)
    world.server.put(held(claim("c"), device("n1", 1), by=both))
    world.server.deliver(world.belief)
    assert isinstance(bind(world, now=START, subject=both), NotBound)
    freeing = Carried(world).attention._freeing
    freeing.is_of_use = lambda _needs, _claims: False
    freeing.refusals[both.uid] = ATTEMPTS
    await freeing.round(lambda: 0.0)
    assert [allocation_of(world.server, name) for name in ("a", "c")] == [None, None]
