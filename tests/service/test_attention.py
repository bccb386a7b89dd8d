"""What is looked after unasked."""

import asyncio
import itertools
from collections.abc import Awaitable, Generator
from dataclasses import replace
from math import inf
from typing import Any
from unittest.mock import AsyncMock

import pytest

from extender.allocation.usage import Hold, Usage
from extender.kube.outcome import RequestOutcome, Succeeded, Unknown
from extender.model.change import Changed, Gone, Listed
from extender.model.claim import DeviceClass, ResourceClaim
from extender.model.device import Traits
from extender.model.footprint import Footprint
from extender.model.names import NodeName
from extender.model.node import Pod, PodClaim, PodClaimStatus
from extender.model.terms import Terms
from extender.scheduling.claiming import consumer_of
from extender.scheduling.endings import NotBound, Order
from extender.scheduling.expiry import UNASKED_S
from extender.scheduling.planner import Offer, Plan, Planner, Rejection
from extender.scheduling.steps import Outcome, Refusal, Refused, Release, Step, TouchPod
from extender.scheduling.vocabulary import TEXTS, Word
from extender.scheduling.waking import Waker
from extender.service import attention as module
from extender.service.attention import TICK_S, Attention
from extender.service.binds import CROWDED
from extender.service.habits import Habits
from extender.service.waits import LOOK_S, UNASKED
from extender.state.belief import READY_WITHIN_S, Belief
from extender.state.ledger import ClaimHold, Event, Promise
from extender.telemetry.metrics import Metrics
from tests.scheduling.cast import belief_of, claim, device, gpus, held, node, planner_of, pod
from tests.scheduling.server import World, allocation_of
from tests.scheduling.stage import N1, N2, OTHER, POD, A, bind, world_of
from tests.scheduling.test_r4_remedy import EXTENDED, made
from tests.scheduling.test_r7_conditions import START, WAITS, reported, waiting
from tests.state.test_ownership import allocated, believing, closed, shown


class Wakes:
    """Stands in for writes: remembers whom it would have woken."""

    def __init__(self) -> None:
        self.woken: list[tuple[str, str]] = []
        self.touched: list[str] = []

    async def nominate(self, pod: Pod, node: NodeName) -> RequestOutcome:
        self.woken.append((pod.key.name, node))
        return Succeeded({})

    async def annotate_pod(self, pod: Pod, annotation: str, value: str) -> RequestOutcome:
        del annotation, value
        self.touched.append(pod.key.name)
        return Succeeded({})


class Steps:
    """Stands in for the carrier: takes all steps of a work at once."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def carry(self, work: Generator[Step, Outcome, bool], _deadline: float) -> bool:
        return bool(self.world.carry(work))


def attention_of(belief: Belief, wakes: Wakes, wall: float, steps: Steps | None = None) -> Attention:
    waker = Waker(belief, planner_of(belief))
    habits = Habits(wakes_per_second=1e9)
    return Attention(
        belief,
        waker,
        wakes,  # type: ignore[arg-type]  # only nominations are asked for
        steps,  # type: ignore[arg-type]  # where there are none, no steps are taken
        Metrics(),
        habits,
        lambda: 0.0,
        lambda: wall,
    )


@pytest.mark.parametrize(
    ("kind", "after_s", "is_woken"),
    [
        ("attached", 1.0, True),
        ("broken", 1.0, True),
        ("", 1.0, False),
        ("", READY_WITHIN_S + 1, True),
        ("", -3600.0, True),
    ],
    ids=["met", "failed", "waiting", "timed-out", "clock set back"],
)
async def test_r7_a_pod_is_woken_once_its_conditions_are_met_or_fail_or_time_out(
    kind: str, after_s: float, *, is_woken: bool
) -> None:
    world, wakes = waiting(), Wakes()
    attention = attention_of(world.belief, wakes, START + after_s)
    attention.waits.ended(Order(POD.key, POD.uid, N1), NotBound("waiting", is_waiting=True))
    if kind:
        reported(world, kind)
    for _ in range(2):
        await attention.waits.ready()
    assert wakes.woken == ([(POD.key.name, N1)] if is_woken else [])


async def test_r7_a_pod_whose_devices_were_freed_is_not_sent_back_to_them() -> None:
    world, wakes = waiting(), Wakes()
    attention = attention_of(world.belief, wakes, START)
    attention.waits.ended(Order(POD.key, POD.uid, N1), NotBound("waiting", is_waiting=True))
    world.server.put(replace(world.server.claims[A], allocation=None, reserved_for=()))
    world.server.deliver(world.belief)
    await attention.waits.ready()
    assert wakes.woken == []


@pytest.mark.parametrize("is_asked_about", [False, True])
async def test_r7_devices_that_cannot_be_made_ready_are_freed_where_nobody_asks_about_the_pod_any_more(
    *, is_asked_about: bool
) -> None:
    world, wakes = waiting(), Wakes()
    attention = attention_of(world.belief, wakes, START + READY_WITHIN_S + 1, Steps(world))
    attention.waits.ended(Order(POD.key, POD.uid, N1), NotBound("waiting", is_waiting=True))
    await attention.waits.ready()
    if is_asked_about:
        attention.offered(POD)
    left = []
    for second in range(1, UNASKED + Habits().attempts + 1):
        attention.now = lambda moment=TICK_S * second: moment  # type: ignore[misc]  # a default that is never given
        await attention._free()
        left.append(world.server.claims[A].allocation is not None)
    assert left[:UNASKED] == [True] * UNASKED
    assert left[-1] is is_asked_about


async def test_r7_where_the_scheduler_does_ask_such_devices_are_freed_as_soon_as_any_that_keep_a_pod_away() -> None:
    world = waiting()
    attention = attention_of(world.belief, Wakes(), START + READY_WITHIN_S + 1, Steps(world))
    attention.waits.ended(Order(POD.key, POD.uid, N1), NotBound("waiting", is_waiting=True))
    await attention.waits.ready()
    plan = attention.waker.planner.plan(POD, ["n2"], 0.0)
    assert isinstance(plan, Rejection)
    attention.rejected(POD, plan)
    for second in range(1, Habits().attempts + 1):
        attention.now = lambda moment=TICK_S * second: moment  # type: ignore[misc]  # a default that is never given
        await attention._free()
    assert world.server.claims[A].allocation is None


async def test_r4_what_others_left_to_a_pod_that_waits_is_freed_though_nobody_asks_about_the_pod_again() -> None:
    both = pod("p", "a", "c")
    shared = held(claim("a"), device("n2", 0), by=both)
    everybody = (*shared.reserved_for, consumer_of(OTHER))
    world = world_of(replace(shared, reserved_for=everybody), claim("c", devices=2), subject=both)
    attention = attention_of(world.belief, Wakes(), START, Steps(world))
    plan = attention.waker.planner.plan(both, None, 0.0)
    assert isinstance(plan, Rejection)
    attention.rejected(both, plan)
    await rounds(attention, 2)
    world.server.put(shared)
    world.server.deliver(world.belief)
    await rounds(attention, int(attention.waker.patience_s) + Habits().attempts)
    assert allocation_of(world.server, "a") is None


async def rounds(attention: Attention, seconds: int) -> None:
    """Have *seconds* pass, with a round in each."""
    for moment in range(int(attention.now()) + 1, int(attention.now()) + 1 + seconds):
        attention.now = lambda moment=moment: float(moment)  # type: ignore[misc]  # a default that is never given
        await attention.round()


async def class_gone(subject: Pod, *claims: ResourceClaim, is_back: bool = False) -> World:
    """Have the class of the devices that *subject* waits for go; return the world after both looks at all pods."""
    world = world_of(*claims, traits=WAITS, subject=subject)
    assert isinstance(bind(world, now=START, subject=subject), NotBound)
    attention = attention_of(world.belief, Wakes(), START, Steps(world))
    classes = tuple(world.belief.cluster.snapshot.classes.values())
    without = tuple(replace(known, extended_resource=None) for known in classes)
    world.belief.apply(Listed(DeviceClass, without))
    await attention.waits.round(lambda: 0.0)
    world.belief.apply(Listed(DeviceClass, classes if is_back else without))
    await attention.waits.round(lambda: LOOK_S)
    await rounds(attention, Habits().attempts)
    return world


@pytest.mark.parametrize("others", [(), ("a",)], ids=["alone", "beside a claim"])
async def test_r7_devices_of_a_pod_whose_class_goes_while_they_are_made_ready_are_freed(
    others: tuple[str, ...],
) -> None:
    """Nobody asks about the pod any more: without a class its resource is none of ours."""
    world = await class_gone(pod("p", *others, gpus=1), *map(claim, others))
    assert len(world.server.claims) == len(others) + 1
    assert all(known.allocation is None for known in world.server.claims.values())


async def test_r7_devices_of_a_pod_whose_class_is_replaced_are_kept() -> None:
    world = await class_gone(EXTENDED, is_back=True)
    assert [known.allocation is None for known in world.server.claims.values()] == [False]


async def test_r7_a_binding_that_did_not_begin_changes_nothing_about_devices_that_are_made_ready() -> None:
    world, wakes, order = waiting(), Wakes(), Order(POD.key, POD.uid, N1)
    attention = attention_of(world.belief, wakes, START)
    attention.waits.ended(order, NotBound("waiting", is_waiting=True))
    attention.waits.ended(order, NotBound(CROWDED, is_unbegun=True))
    reported(world, "attached")
    await attention.waits.ready()
    assert wakes.woken == [(POD.key.name, N1)]


def crowd_that_waits(monkeypatch: pytest.MonkeyPatch, pods: int) -> tuple[Attention, list[str]]:
    """Have *pods* wait for devices of one pool; return who is looked up to be contested, too."""
    everybody = [pod(f"p{number}", f"c{number}") for number in range(pods)]
    conditional = Traits(binding_conditions=("attached",))
    belief = belief_of(node("n1"), gpus("n1", pods, conditional), *everybody)
    for number, each in enumerate(everybody):
        had = held(claim(f"c{number}"), device("n1", number), by=each)
        assert had.allocation is not None
        devices = tuple(replace(item, binding_conditions=("attached",)) for item in had.allocation.devices)
        belief.apply(Changed(replace(had, allocation=replace(had.allocation, devices=devices))))
    attention, looked = attention_of(belief, Wakes(), START), list[str]()

    def contested(_belief: Belief, item: ResourceClaim) -> None:
        looked.append(item.key.name)

    monkeypatch.setattr(Belief, "contested", contested)
    for each in everybody:
        attention.waits.ended(Order(each.key, each.uid, N1), NotBound("waiting", is_waiting=True))
    return attention, looked


async def test_r7_whose_devices_are_made_ready_still_is_not_compared_with_all_others_of_the_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attention, looked = crowd_that_waits(monkeypatch, 100)
    for _ in range(2):
        await attention.waits.ready()
    assert looked == []


async def meanwhile(looked: list[str], looking: Awaitable[object]) -> set[int]:
    """Return how many had been looked up each time that others had their turn while somebody is *looking*."""
    turns = set[int]()

    async def another() -> None:
        while True:
            await asyncio.sleep(0)
            turns.add(len(looked))

    task = asyncio.create_task(another())
    await looking
    task.cancel()
    return turns


async def test_r7_others_have_their_turn_while_those_who_wait_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    attention, looked = crowd_that_waits(monkeypatch, 3)
    assert await meanwhile(looked, attention.waits.ready(is_thorough=True)) >= {1, 2}
    assert len(looked) == 3


async def test_o1_others_have_their_turn_while_it_is_looked_who_waits_as_one_takes_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attention, looked = crowd_that_waits(monkeypatch, 3)
    monkeypatch.setattr(module, "has_devices", lambda _pod, _belief: False)
    monkeypatch.setattr(Attention, "round", AsyncMock())
    assert await meanwhile(looked, attention.begin()) >= {1, 2}
    assert len(looked) == 3


async def test_o1_where_all_stands_still_for_a_while_those_behind_are_looked_at_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attention, _ = crowd_that_waits(monkeypatch, 3)
    clock = itertools.count(step=10)
    monkeypatch.setattr(module, "is_told", lambda _refusal: True)
    monkeypatch.setattr(Attention, "round", AsyncMock())
    attention._turns.now = lambda: float(next(clock))
    await attention.begin()
    assert all(item.uid in attention.waker for item in attention.belief.pods)


async def test_r7_a_pod_whose_claim_comes_to_be_in_the_way_while_it_is_made_ready_is_woken_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, wakes = waiting(), Wakes()
    attention = attention_of(world.belief, wakes, START)
    attention.waits.ended(Order(POD.key, POD.uid, N1), NotBound("waiting", is_waiting=True))
    await attention.waits.round(lambda: 0.0)
    monkeypatch.setattr(Belief, "contested", lambda _belief, _claim: device("n1", 0))
    await attention.waits.round(lambda: LOOK_S)
    assert wakes.woken == [(POD.key.name, N1)]


async def term(attention: Attention, seconds: int) -> None:
    """Lead for a while."""
    passed = iter(range(seconds))
    await attention.run(lambda: None, lambda: True, lambda: next(passed, None) is None)


async def test_o1_what_we_refused_before_another_led_frees_nothing_that_it_has_given_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("extender.service.attention.TICK_S", 0.001)
    world, wakes = waiting(), Wakes()
    attention = attention_of(world.belief, wakes, START, Steps(world))
    # As it was before: refused so often that its claim was about to be freed, and sent to another node.
    attention._refusals[POD.uid] = Habits().attempts
    attention._steers[POD.uid] = True
    attention.waits.ended(Order(POD.key, POD.uid, N2), NotBound("waiting", is_waiting=True))
    reported(world, "attached")
    await term(attention, 9)
    assert allocation_of(world.server, "a") is not None
    assert (wakes.woken, wakes.touched) == ([(POD.key.name, N1)], [])


async def test_r6_a_pod_whose_binding_was_never_asked_for_before_another_led_did_not_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("extender.service.attention.TICK_S", 0.001)
    world = world_of(claim("a"))
    attention = attention_of(world.belief, Wakes(), START, Steps(world))
    first = attention.waker.planner.plan(POD, [N1, N2], 0.0)
    await term(attention, 9)
    again = attention.waker.planner.plan(POD, [N1, N2], 0.0)
    assert isinstance(first, Offer)
    assert isinstance(again, Offer)
    assert again.nodes == first.nodes


async def test_a_pod_that_was_offered_a_node_meanwhile_is_not_steered() -> None:
    world, wakes = waiting(), Wakes()
    attention = attention_of(world.belief, wakes, START)
    attention._steers |= {POD.uid: False, OTHER.uid: False}
    steering = asyncio.create_task(attention._steer())
    await asyncio.sleep(0)
    attention.offered(OTHER)
    await steering
    assert wakes.woken == [(POD.key.name, N1)]


async def test_q3_pods_that_are_rejected_at_once_are_each_sent_to_devices_of_their_own() -> None:
    numbers, wakes = range(3), Wakes()
    fleet = [item for index in numbers for item in (node(f"n{index}"), gpus(f"n{index}", 1))]
    pods = [pod(f"p{index}", f"c{index}") for index in numbers]
    belief = belief_of(*fleet, *(claim(f"c{index}") for index in numbers), *pods)
    attention = attention_of(belief, wakes, START)
    for each in pods:
        plan = attention.waker.planner.plan(each, [], 0.0)
        assert isinstance(plan, Rejection)
        attention.rejected(each, plan)
    await attention._steer()
    assert {name for name, _ in wakes.woken} == {"p0", "p1", "p2"}
    assert {name for _, name in wakes.woken} == {"n0", "n1", "n2"}


async def test_q3_a_pod_is_steered_and_woken_only_where_it_may_run_and_has_room() -> None:
    tied = replace(pod("tied", "c0"), terms=Terms(labels=(("zone", "a"),)))
    big = replace(pod("big", "c1"), terms=Terms(amounts=(("cpu", 9000),)))
    belief = belief_of(node("n1", {"cpu": 4}), gpus("n1", 2), claim("c0"), claim("c1"), tied, big)
    belief.apply(Listed(Footprint, ()))
    attention = attention_of(belief, wakes := Wakes(), START)
    for each in (tied, big):
        plan = attention.waker.planner.plan(each, [], 0.0)
        assert isinstance(plan, Rejection)
        attention.rejected(each, replace(plan, elsewhere=N1))
    await attention._steer()
    assert (wakes.woken, wakes.touched) == ([], [])
    # The scheduler may have others make room for the big one.
    await attention._rouse()
    assert (wakes.woken, wakes.touched) == ([], ["big"])
    assert not list(belief.ledger)


async def test_who_was_woken_and_is_not_asked_about_in_time_loses_what_it_was_promised() -> None:
    item, unasked, moment = pod("p", "c"), list[str](), [0.0]
    belief = belief_of(node("n1"), gpus("n1", 1), claim("c"), item)
    attention = attention_of(belief, wakes := Wakes(), START)
    attention.now, attention.expiry.unasked = (lambda: moment[0]), unasked.append
    attention.waker.put(item.uid)
    await attention._rouse()
    assert wakes.woken == [("p", "n1")]
    for moment[0] in (UNASKED_S, UNASKED_S + 1):
        attention._expire()
    assert unasked == [item.uid]
    assert belief.ledger.of_pod(item.uid) is None


async def test_q3_a_pod_that_is_rejected_before_the_watch_shows_it_is_steered_as_soon_as_it_is_shown() -> None:
    item, wakes = pod("p", "c"), Wakes()
    belief = belief_of(node("n1"), gpus("n1", 1), claim("c"))
    attention = attention_of(belief, wakes, START)
    plan = attention.waker.planner.plan(item, [], 0.0)
    assert isinstance(plan, Rejection)
    attention.rejected(item, plan)
    await attention._steer()
    assert wakes.woken == []
    belief.apply(Changed(item))
    await attention._steer()
    assert wakes.woken == [("p", "n1")]


async def test_q3_a_pod_that_is_rejected_while_the_watch_is_silent_is_steered_however_late_it_is_shown() -> None:
    item, wakes = pod("p", "c"), Wakes()
    belief = belief_of(node("n1"), gpus("n1", 1), claim("c"))
    attention = attention_of(belief, wakes, START, Steps(waiting()))
    attention.waker.shown_until = lambda: 0.0
    plan = attention.waker.planner.plan(item, [], 0.0)
    assert isinstance(plan, Rejection)
    attention.rejected(item, plan)
    await rounds(attention, 20)
    belief.apply(Changed(item))
    await attention._steer()
    assert wakes.woken == [("p", "n1")]


async def test_r4_a_claim_of_an_earlier_attempt_that_is_held_meanwhile_is_freed_when_the_hold_ends() -> None:
    left = made(is_bare=True)
    world = world_of(left, subject=EXTENDED)
    attention, ledger = attention_of(world.belief, Wakes(), START, Steps(world)), world.belief.ledger
    plan = attention.waker.planner.plan(EXTENDED, [N1], 0.0)
    assert isinstance(plan, Rejection)
    attention.rejected(EXTENDED, plan)
    # A binding of before that nobody had an answer to finds out that its write may land still.
    hold = ClaimHold(left.uid, (Hold(device("n1", 0), Usage(dedicated=1)),))
    assert ledger.reserve(Promise(EXTENDED.uid, N1, (hold,)))
    ledger.tell_claim(left.uid, Event.UNANSWERED)
    await attention._free()
    attention._resume()
    assert EXTENDED.uid not in attention._steers
    assert left.key in world.server.claims
    ledger.tell_claim(left.uid, Event.OUTDATED)
    for _ in range(2):
        attention._freeing._counted -= TICK_S
        await attention._free()
    world.server.control()
    assert left.key not in world.server.claims
    assert list(attention._freeing.cleared) == [EXTENDED.uid]


def contested(*users: Pod) -> World:
    """A pod whose claim has what an earlier claim holds, as all other devices; *users* has the pods that use it."""
    everything = held(claim("x"), device("n1", 0), device("n1", 1), device("n2", 0), by=OTHER)
    claims = everything, held(claim("a", version=2), device("n1", 0))
    world = world_of(*claims)
    reserved = tuple(map(consumer_of, users))
    world.server.put(replace(world.server.claims[A], reserved_for=reserved))
    world.server.deliver(world.belief)
    return world


def refused(attention: Attention, subject: Pod = POD) -> None:
    plan = attention.waker.planner.plan(subject, [N1], 0.0)
    assert isinstance(plan, Rejection)
    attention.rejected(subject, plan)


async def test_r3_a_pod_that_fits_nowhere_is_told_so_once_its_contested_claim_is_freed() -> None:
    world, wakes = contested(POD), Wakes()
    attention = attention_of(world.belief, wakes, START, Steps(world))
    refused(attention)
    for _ in range(3):
        await attention.round()
    assert allocation_of(world.server, "a") is None
    assert (wakes.touched, wakes.woken) == ([POD.key.name], [])


async def test_r3_the_contested_claim_of_a_pod_that_the_watch_shows_later_is_freed_then() -> None:
    world = contested(POD)
    shown = world.belief.pods.with_uid(POD.uid)
    assert shown is not None
    world.belief.apply(Gone(Pod, POD.key))
    attention = attention_of(world.belief, Wakes(), START, Steps(world))
    refused(attention)
    await attention._free()
    world.belief.apply(Changed(shown))
    await attention._free()
    assert allocation_of(world.server, "a") is None


async def test_r3_a_pod_that_was_asked_about_since_its_claim_was_freed_is_not_told_again() -> None:
    world, wakes = contested(POD), Wakes()
    attention = attention_of(world.belief, wakes, START, Steps(world))
    refused(attention)
    await attention._free()
    refused(attention)
    await attention.round()
    assert (wakes.touched, wakes.woken) == ([], [])


async def test_r3_another_pod_of_a_contested_claim_that_is_freed_is_told_so_too() -> None:
    world, wakes, another = contested(POD), Wakes(), pod("another", "a")
    world.server.put(another)
    world.server.deliver(world.belief)
    attention = attention_of(world.belief, wakes, START, Steps(world))
    refused(attention)
    refused(attention, another)
    for _ in range(3):
        await attention.round()
    assert sorted(wakes.touched) == [another.key.name, POD.key.name]


async def test_r3_a_pod_that_has_another_claim_is_told_all_the_same_once_the_contested_one_is_freed() -> None:
    both, wakes = pod("p", "a", "c"), Wakes()
    everything = held(claim("x"), device("n1", 0), device("n2", 0), by=OTHER)
    world = world_of(
        everything, held(claim("a"), device("n1", 0), by=both), held(claim("c"), device("n1", 1)), subject=both
    )
    attention = attention_of(world.belief, wakes, START, Steps(world))
    refused(attention, both)
    for _ in range(3):
        await attention.round()
    assert allocation_of(world.server, "a") is None
    assert allocation_of(world.server, "c") is not None
    assert (wakes.touched, wakes.woken) == (["p"], [])


async def test_r3_a_pod_that_was_offered_a_node_while_its_claim_was_freed_is_left_alone() -> None:
    world, wakes = contested(POD), Wakes()

    class Offering(Steps):
        async def carry(self, work: Generator[Step, Outcome, bool], deadline: float) -> bool:
            is_done = await super().carry(work, deadline)
            attention.offered(POD)
            return is_done

    attention = attention_of(world.belief, wakes, START, Offering(world))
    refused(attention)
    await attention._free()
    await attention.round()
    assert allocation_of(world.server, "a") is None
    assert (wakes.touched, wakes.woken) == ([], [])


async def test_a_pod_that_was_told_of_a_node_is_not_sent_to_another() -> None:
    world, wakes = waiting(), Wakes()
    attention = attention_of(world.belief, wakes, START)
    hold = ClaimHold(claim("b").uid, (Hold(device("n2", 0), Usage(dedicated=1)),))
    assert world.belief.ledger.offer(Promise(OTHER.uid, NodeName("n2"), (hold,)))
    attention._steers |= {OTHER.uid: True}
    await attention._steer()
    assert (wakes.touched, wakes.woken) == ([], [])
    assert attention._steers == {}


async def test_r3_while_others_use_what_is_contested_its_pod_is_not_told_again_and_again() -> None:
    world, wakes = contested(POD, OTHER), Wakes()
    attention = attention_of(world.belief, wakes, START, Steps(world))
    for _ in range(3):
        refused(attention)
        await attention.round()
    assert (wakes.touched, wakes.woken) == ([], [])


async def test_r4_a_claim_that_is_deleted_is_given_up_once_by_a_pod_that_nobody_asks_about() -> None:
    world = world_of(replace(held(claim("a"), device("n1", 0), by=POD), is_deleting=True))
    world.is_prompt = False
    attention = attention_of(world.belief, Wakes(), START, Steps(world))
    await attention.begin()
    assert allocation_of(world.server, "a") is None
    await attention.round()  # which the watch has shown nothing before
    assert len([step for step in world.taken if isinstance(step, TouchPod)]) == 1


@pytest.mark.parametrize(
    ("refusal", "woken"),
    [
        (f"0/2 nodes are available: 1 Insufficient cpu, 1 {TEXTS[Word.IN_USE]}.", [("p", "n1")]),
        ("0/2 nodes are available: 2 Insufficient cpu.", []),
        ("", []),
    ],
    ids=["by us", "by others", "by nobody"],
)
async def test_a_pod_that_we_refused_before_we_began_is_woken_once_it_fits(
    refusal: str, woken: list[tuple[str, str]]
) -> None:
    subject, wakes = replace(pod("p", "c"), refusal=refusal), Wakes()
    holder = held(claim("x"), device("n1", 0))
    belief = belief_of(node("n1"), gpus("n1", 1), claim("c"), holder, subject)
    attention = attention_of(belief, wakes, START, Steps(waiting()))
    await attention.begin()
    assert wakes.woken == []
    belief.apply(Gone(ResourceClaim, holder.key))
    attention.now = lambda: TICK_S
    await attention.round()
    assert wakes.woken == woken


@pytest.mark.parametrize("is_offered", [True, False])
async def test_a_pod_that_is_postponed_is_tried_again_in_time_unless_it_was_offered_a_node(*, is_offered: bool) -> None:
    world, wakes = waiting(), Wakes()
    attention = attention_of(world.belief, wakes, START, Steps(world))
    attention.waits.postponed(POD.uid, TICK_S)
    await attention.round()
    assert wakes.touched == []
    if is_offered:
        attention.offered(POD)
    attention.now = lambda: TICK_S
    for _ in range(2):
        await attention.round()
    assert wakes.touched == ([] if is_offered else [POD.key.name])


async def test_a_pod_that_is_postponed_is_tried_until_that_is_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    world, wakes = waiting(), Wakes()
    attention = attention_of(world.belief, wakes, START, Steps(world))
    attention.waits.postponed(POD.uid, 0.0)

    async def silent(*_args: object) -> Outcome:
        return Unknown("no answer")

    with monkeypatch.context() as hanging:
        hanging.setattr(wakes, "annotate_pod", silent)
        await attention.waits.round(lambda: 0.0)
    for _ in range(2):
        await attention.waits.round(lambda: TICK_S)
    assert wakes.touched == [POD.key.name]


async def test_a_pod_that_is_offered_a_node_before_that_is_heard_of_is_not_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, wakes = waiting(), Wakes()
    attention = attention_of(world.belief, wakes, START, Steps(world))
    attention.waits.postponed(POD.uid, 0.0)

    async def silent(*_args: object) -> Outcome:
        attention.offered(POD)
        return Unknown("no answer")

    with monkeypatch.context() as hanging:
        hanging.setattr(wakes, "annotate_pod", silent)
        await attention.waits.round(lambda: 0.0)
    await attention.waits.round(lambda: TICK_S)
    assert wakes.touched == []


async def test_r4_what_could_not_be_given_up_is_tried_again_after_a_while() -> None:
    world = world_of(replace(held(claim("a"), device("n1", 0), by=POD), is_deleting=True))
    attention = attention_of(world.belief, Wakes(), START, Steps(world))
    with world.belief.alone_with(POD.uid):
        await attention.round()
        await attention.round()
    assert not world.taken
    attention.now = lambda: TICK_S
    await attention.round()
    assert allocation_of(world.server, "a") is None


async def test_r4_what_the_api_server_refuses_to_have_freed_is_tried_more_and_more_seldom_until_it_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = contested(POD)
    attention, do = attention_of(world.belief, Wakes(), START, Steps(world)), world.server.do

    def refusing(step: Step) -> Outcome:
        return Refused(Refusal.REJECTED, "not by you") if isinstance(step, Release) else do(step)

    def touches() -> int:
        return len([step for step in world.taken if isinstance(step, TouchPod)])

    monkeypatch.setattr(world.server, "do", refusing)
    for _ in range(120):
        refused(attention)  # for the scheduler, whom each touch has ask again
        await rounds(attention, 1)
    before = touches()
    assert 2 < before < 10
    world.server.put(world.server.claims[A])
    world.server.deliver(world.belief)
    await rounds(attention, 1)
    assert touches() == before + 1
    assert list(attention._freeing._vain) == [POD.uid]
    attention.offered(POD)
    await rounds(attention, 1)
    assert not attention._freeing._vain


class Failing(Steps):
    """Stands in for the carrier: has a bug, *often* times."""

    def __init__(self, often: float) -> None:
        self.often = often

    async def carry(self, work: Generator[Step, Outcome, bool], _deadline: float) -> bool:
        work.close()
        self.often -= 1
        if self.often >= 0:
            raise KeyError("something that nobody thought of")
        return False


@pytest.mark.parametrize(("often", "is_begun"), [(0, True), (2, True), (inf, False)])
async def test_nobody_is_answered_before_what_was_there_has_been_looked_after(
    monkeypatch: pytest.MonkeyPatch, often: float, *, is_begun: bool
) -> None:
    monkeypatch.setattr("extender.service.attention.TICK_S", 0.001)
    carrier, begun = Failing(often), list[float]()
    attention = attention_of(belief_of(), Wakes(), START, carrier)
    over = iter(range(50))
    await attention.run(lambda: begun.append(carrier.often), lambda: True, lambda: next(over, None) is None)
    assert bool(begun) == is_begun
    assert all(left < 0 for left in begun)


async def test_what_cannot_be_looked_after_is_told_and_keeps_nobody_from_looking_after_the_rest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wakes, item = Wakes(), pod("p", "c")
    belief = belief_of(node("n1"), gpus("n1", 1), claim("c"), item)
    attention = attention_of(belief, wakes, START, Failing(inf))
    attention._steers[item.uid] = False
    assert not await attention.round()
    assert wakes.woken == [("p", "n1")]
    assert {record.message for record in caplog.records} == {"a round of looking after pods failed"}


def unplanned(attention: Attention, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Have it crash to plan the pod *name*."""
    plan = attention.waker.planner.plan

    def planned(subject: Pod, *terms: Any, **others: Any) -> Plan:
        if subject.key.name == name:
            raise KeyError("something that nobody thought of")
        return plan(subject, *terms, **others)

    monkeypatch.setattr(Planner, "plan", lambda _self, *terms, **others: planned(*terms, **others))


async def test_a_pod_that_cannot_be_looked_after_keeps_nobody_from_looking_after_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pods, wakes = [pod("bad", "c0"), pod("p1", "c1"), pod("p2", "c2")], Wakes()
    belief = belief_of(node("n1"), gpus("n1", 3), *(claim(f"c{index}") for index in range(3)), *pods)
    attention = attention_of(belief, wakes, START, Failing(0))
    unplanned(attention, monkeypatch, "bad")
    for item in pods[:2]:
        attention._steers[item.uid] = False
    assert await attention.begin()
    assert wakes.woken == [("p1", "n1")]
    for item in (pods[0], pods[2]):
        attention.waker.put(item.uid)
    await attention.round()
    assert wakes.woken == [("p1", "n1"), ("p2", "n1")]


async def test_what_is_closed_while_nobody_is_looked_after_yet_stays_closed_in_a_first_term_alone() -> None:
    belief = believing()
    attention = attention_of(belief, Wakes(), 0.0)
    shown(belief, allocated(by="kube-scheduler"))
    for expected in (["n1"], []):
        await term(attention, 0)
        while belief.sealing.go_on():
            pass
        assert closed(belief) == expected


async def test_pods_that_lack_their_claims_where_a_webhook_hangs_hold_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("attention.TICK_S", "remaking.LOOK_S", "remaking.REMADE_WITHIN_S"):
        monkeypatch.setattr(f"extender.service.{name}", 0.0)
    template, wakes = PodClaim(name="c", template_name="t"), Wakes()
    lost = replace(pod("lost"), claims=(template,), claim_statuses=(PodClaimStatus(name="c", claim_name="gone"),))
    attention = attention_of(belief_of(node("n1"), gpus("n1", 1), claim("c"), lost), wakes, START, Failing(0))
    hangs, may_answer = asyncio.Event(), asyncio.Event()

    async def annotate_pod(*_asked: object) -> RequestOutcome:
        hangs.set()
        await may_answer.wait()
        return Succeeded({})

    monkeypatch.setattr(wakes, "annotate_pod", annotate_pod)
    leading = asyncio.create_task(attention.run(lambda: None, lambda: True, may_answer.is_set))
    async with asyncio.timeout(10):
        await hangs.wait()
        attention.belief.apply(Changed(waits := pod("p", "c")))
        attention._steers[waits.uid] = False
        attention.stir()
        while not wakes.woken:  # noqa: ASYNC110 - what is waited for happens in another task
            await asyncio.sleep(0)
        may_answer.set()
        await leading
    assert wakes.woken == [("p", "n1")]


def shown_in(world: World) -> Attention:
    return attention_of(world.belief, Wakes(), START, Steps(world))


async def test_who_was_rejected_waits_and_a_round_follows_at_once_and_who_was_offered_a_node_waits_no_longer() -> None:
    attention = shown_in(contested(POD))
    attention._steers[POD.uid] = True
    refused(attention)
    assert (attention._stirred.is_set(), POD.uid in attention.waker, attention._steers) == (True, True, {})
    attention._steers[POD.uid] = True
    attention.offered(POD)
    assert (POD.uid in attention.waker, attention._steers) == (False, {})


def test_only_who_is_about_to_be_sent_to_a_node_is_asked_about_again() -> None:
    attention = shown_in(waiting())
    attention._steers[OTHER.uid] = False
    assert [attention.asks_again(uid) for uid in (POD.uid, OTHER.uid)] == [False, True]
    assert attention._steers == {OTHER.uid: True}


async def test_a_round_follows_at_once_where_an_offer_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    attention = shown_in(waiting())
    for has_ended in (False, True):
        monkeypatch.setattr(type(attention.expiry), "round", lambda _expiry, _now, ended=has_ended: ended)
        attention._expire()
        assert attention._stirred.is_set() is has_ended


async def test_o1_who_has_devices_is_woken_by_who_begins_whatever_it_was_told_and_who_is_gone_is_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    had = held(claim("a"), device("n1", 0), by=POD)
    assert had.allocation is not None
    everywhere = replace(had, allocation=replace(had.allocation, node_selector=None))
    attention = shown_in(world_of(everywhere))
    for each in (pod("gone"), POD, OTHER):
        attention._remember(each.uid)
    assert [uid in attention.waker for uid in (POD.uid, OTHER.uid)] == [True, False]
    assert caplog.records == []


@pytest.mark.parametrize("is_over", [False, True])
async def test_nothing_is_looked_after_before_everything_is_known_or_once_it_is_over(
    monkeypatch: pytest.MonkeyPatch, *, is_over: bool
) -> None:
    monkeypatch.setattr("extender.service.attention.TICK_S", 0.001)
    attention, begun, known = shown_in(waiting()), list[bool](), iter([False] * 3)
    left = iter([False] * (3 if is_over else 9))
    is_known = (lambda: False) if is_over else (lambda: next(known, True))
    await attention.run(lambda: begun.append(next(known, True)), is_known, lambda: next(left, True))
    assert begun == ([] if is_over else [True])


async def test_what_had_no_answer_is_asked_about_again_after_a_while_and_what_had_one_in_each_round() -> None:
    asked, moment = list[float](), [0.0]

    class Silent(Steps):
        is_silent = True

        async def carry(self, work: Generator[Step, Outcome, bool], _deadline: float) -> bool:
            work.close()
            asked.append(moment[0])
            return claim("a").uid if self.is_silent else None  # type: ignore[return-value]  # as what settles does

    world = waiting()
    attention = attention_of(world.belief, Wakes(), START, silent := Silent(world))
    attention.now = lambda: moment[0]
    for moment[0] in (0.0, TICK_S / 2, TICK_S, 1.5 * TICK_S):
        await attention._settle()
    assert asked == [0.0, TICK_S]
    silent.is_silent = False
    for moment[0] in (2 * TICK_S, 2.1 * TICK_S):
        await attention._settle()
    assert asked[2:] == [2 * TICK_S, 2.1 * TICK_S]


async def test_r4_who_was_freed_of_something_is_told_once_the_watch_shows_that() -> None:
    world = world_of(held(claim("a"), device("n1", 0), by=POD))
    attention, known = shown_in(world), world.server.claims[A]
    cleared = attention._freeing.cleared
    cleared |= {pod("gone").uid: frozenset(), POD.uid: frozenset({(known.uid, known.resource_version)})}
    attention._resume()
    assert (set(cleared), POD.uid in attention._steers) == ({POD.uid}, False)
    world.server.put(known)
    world.server.deliver(world.belief)
    attention._resume()
    assert (cleared, attention._steers[POD.uid]) == ({}, True)


async def test_r4_what_was_made_and_is_to_be_deleted_is_in_the_way_until_it_is_and_what_lacks_is_not() -> None:
    left = made(is_bare=True)
    attention = shown_in(world_of(left, subject=EXTENDED))
    for uid in (EXTENDED.uid, OTHER.uid):
        attention._freeing.cleared[uid] = frozenset()
    attention._resume()
    assert (list(attention._freeing.cleared), attention._steers) == ([EXTENDED.uid], {OTHER.uid: True})
    attention.belief.apply(Gone(ResourceClaim, left.key))
    attention._resume()
    assert EXTENDED.uid in attention._steers


@pytest.mark.parametrize("is_answer", [True, False], ids=["answered", "binding"])
async def test_what_a_pod_is_promised_by_who_asks_while_a_wake_of_it_has_no_answer_is_kept(
    monkeypatch: pytest.MonkeyPatch, *, is_answer: bool
) -> None:
    item = pod("p", "c")
    belief, wakes = belief_of(node("n1"), gpus("n1", 1), claim("c"), item), Wakes()
    attention = attention_of(belief, wakes, START)

    async def silent(*_: object, **__: object) -> RequestOutcome:
        attention.offered(item)
        promise = belief.ledger.of_pod(item.uid)
        assert promise is not None
        if is_answer:
            assert isinstance(attention.waker.planner.plan(item, [N1], 0.0), Offer)
        else:
            assert belief.ledger.reserve(promise)
        return Unknown("no answer")

    monkeypatch.setattr(wakes, "nominate", silent)
    attention._steers[item.uid] = False
    await attention._steer()
    promise = belief.ledger.of_pod(item.uid)
    assert promise is not None
    assert (promise.is_answer, promise.is_binding) == (is_answer, not is_answer)


@pytest.mark.parametrize("is_asked", [True, False])
async def test_who_is_asked_about_before_it_is_heard_where_it_is_sent_is_not_sent_again(
    monkeypatch: pytest.MonkeyPatch, *, is_asked: bool
) -> None:
    item = pod("p", "c")
    belief, wakes = belief_of(node("n1"), gpus("n1", 1), held(claim("c"), device("n1", 0), by=item), item), Wakes()
    attention = attention_of(belief, wakes, START)

    async def silent(*_: object, **__: object) -> RequestOutcome:
        if is_asked:
            attention.offered(item)
        return Unknown("no answer")

    attention._steers[item.uid] = False
    with monkeypatch.context() as hanging:
        hanging.setattr(wakes, "nominate", silent)
        await attention._steer()
    await attention._steer()
    assert wakes.woken == ([] if is_asked else [("p", "n1")])


async def test_who_was_woken_and_rejected_is_sent_to_where_it_was_woken_for() -> None:
    item = pod("p", "c")
    belief, wakes = belief_of(node("n1"), gpus("n1", 1), claim("c"), item), Wakes()
    attention = attention_of(belief, wakes, START)
    assert isinstance(attention.waker.planner.plan(item, None, 0.0, is_answer=False), Offer)
    attention._steers[item.uid] = False
    await attention._steer()
    assert wakes.woken == [("p", "n1")]


async def test_who_is_promised_nothing_is_woken_again_where_that_had_no_answer(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = replace(pod("big", "c"), terms=Terms(amounts=(("cpu", 9000),)))
    belief, wakes = belief_of(node("n1", {"cpu": 4}), gpus("n1", 1), claim("c"), big), Wakes()
    belief.apply(Listed(Footprint, ()))
    attention, asked = attention_of(belief, wakes, START), list[str]()

    async def silent(subject: Pod, *_: object) -> RequestOutcome:
        asked.append(subject.key.name)
        return Unknown("no answer")

    monkeypatch.setattr(wakes, "annotate_pod", silent)
    attention.waker.put(big.uid)
    await attention._rouse()
    assert (asked, caplog.records) == (["big"], [])


async def test_who_is_gone_is_sent_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    attention = shown_in(waiting())
    attention._steers[pod("gone").uid] = False
    await attention._steer()
    assert (attention._steers, caplog.records) == ({}, [])
