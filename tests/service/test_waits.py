"""Who waits for a time, or for devices that are made ready, is woken then: once, and nobody else."""

import asyncio
import logging
from dataclasses import replace

import pytest

from extender.kube.outcome import RequestOutcome, Succeeded, Unknown
from extender.model.change import Changed, Gone, Listed
from extender.model.claim import DeviceClass
from extender.model.names import NodeName, ObjectKey
from extender.model.node import Node, Pod, PodClaim
from extender.scheduling.endings import Bound, NotBound, Order, Result
from extender.service import waits as module
from extender.service.attention import TICK_S, Attention
from extender.service.habits import Habits
from extender.service.waits import LOOK_S, NUDGE_S, UNASKED
from tests.scheduling.cast import claim, device, held, pod
from tests.scheduling.server import World
from tests.scheduling.stage import N1, N2, OTHER, POD, A, bind, world_of
from tests.scheduling.test_r4_remedy import EXTENDED
from tests.scheduling.test_r7_conditions import START, WAITS, reported, waiting
from tests.service.test_attention import Steps, Wakes, attention_of, rounds

ORDER = Order(POD.key, POD.uid, N1)
WAITING = NotBound("waiting", is_waiting=True)


class Here:
    """POD waits for its devices on n1, which are made ready."""

    def __init__(self, world: World | None = None) -> None:
        self.world, self.wakes, self.now, self.taken_back = world or waiting(), Wakes(), 0.0, list[str]()
        self.attention: Attention = attention_of(self.world.belief, self.wakes, START, Steps(self.world))
        self.attention.expiry.unasked = self.taken_back.append
        self.waits, self.belief = self.attention.waits, self.world.belief

    def is_ready(self) -> None:
        reported(self.world, "attached")

    async def pass_time(self, seconds: float) -> None:
        self.now += seconds
        await self.waits.round(lambda: self.now)


@pytest.mark.parametrize("result", [NotBound("no"), Bound(POD)], ids=["not bound", "bound"])
async def test_r7_whose_binding_ended_otherwise_since_is_not_woken_for_its_devices(result: Result) -> None:
    here = Here()
    for each in (WAITING, result):
        here.waits.ended(ORDER, each)
    here.is_ready()
    await here.waits.ready()
    assert here.wakes.woken == []


async def test_r7_a_pod_that_is_gone_keeps_nobody_from_being_woken(caplog: pytest.LogCaptureFixture) -> None:
    here = Here()
    for subject in (pod("gone"), POD):
        here.waits.ended(Order(subject.key, subject.uid, N1), WAITING)
    here.is_ready()
    await here.waits.ready()
    assert here.wakes.woken == [("p", "n1")]
    assert caplog.records == []


async def test_r7_whose_binding_ends_while_another_is_woken_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Here()
    for subject in (OTHER, POD):
        here.waits.ended(Order(subject.key, subject.uid, N1), WAITING)
    here.belief.apply(Changed(held(claim("b"), device("n2", 0), by=OTHER)))
    here.is_ready()

    async def nominated(subject: Pod, _node: NodeName) -> RequestOutcome:
        here.wakes.woken.append((subject.key.name, ""))
        here.waits.ended(ORDER, NotBound("no"))
        return Succeeded({})

    monkeypatch.setattr(here.wakes, "nominate", nominated)
    await here.waits.ready()
    assert (here.wakes.woken, here.wakes.touched) == ([("q", "")], [])


async def test_r7_devices_that_are_ready_are_not_taken_for_such_that_cannot_be_made_so() -> None:
    here = Here()
    here.waits.ended(ORDER, WAITING)
    here.is_ready()
    await here.waits.ready()
    await rounds(here.attention, UNASKED + 2 * Habits().attempts)
    assert here.world.server.claims[A].allocation is not None
    assert not here.attention._refusals


async def test_r7_of_a_pod_from_before_it_is_known_where_its_devices_are_made_ready() -> None:
    world = world_of(claim("a"), traits=WAITS)
    assert isinstance(bind(world, N2, START), NotBound)
    here = Here(world)
    here.waits.remember(POD)
    here.is_ready()
    for _ in range(3):
        await here.pass_time(NUDGE_S)
    # Other plugins may be what it waits for: it hears of its nomination only once that is taken back.
    assert (here.wakes.woken, here.taken_back) == ([("p", "n2")], [POD.uid])


async def test_r7_who_waits_for_devices_on_one_node_is_not_woken_for_another_that_has_no_room_for_it() -> None:
    here = Here()
    here.waits.ended(ORDER, WAITING)
    here.waits.awaits(POD.uid, N2, is_unheard=False)
    here.is_ready()
    await here.waits.ready()
    assert here.wakes.woken == [("p", "n1")]


async def test_r7_a_pod_from_before_whose_node_is_gone_or_whose_other_claim_is_is_not_remembered() -> None:
    here = Here()
    for name in (N1, N2):
        here.belief.apply(Gone(Node, ObjectKey("", name)))
    here.waits.remember(POD)
    lacking = Here()
    lacking.waits.remember(replace(POD, claims=(*POD.claims, PodClaim(name="lacking", claim_name="nobodys"))))
    for each in (here, lacking):
        each.is_ready()
        await each.waits.ready()
        assert (each.wakes.woken, each.wakes.touched) == ([], [])


async def test_the_nomination_of_who_was_offered_a_node_since_is_not_taken_back() -> None:
    here = Here()
    here.waits.awaits(POD.uid, N1, is_unheard=True)
    here.attention.offered(POD)
    here.is_ready()
    for _ in range(3):
        await here.pass_time(NUDGE_S)
    assert (here.wakes.woken, here.taken_back) == ([("p", "n1")], [])


async def test_the_nomination_of_whom_filter_has_refused_since_is_not_taken_back_again() -> None:
    here = Here()
    here.is_ready()
    for is_unheard in (True, False):
        here.waits.awaits(POD.uid, N1, is_unheard=is_unheard)
        for _ in range(3):
            await here.pass_time(NUDGE_S)
    assert (here.wakes.woken, here.taken_back) == ([("p", "n1")] * 2, [POD.uid])


def test_r4_it_counts_once_that_something_keeps_a_pod_away_and_only_where_something_does() -> None:
    here = Here()
    here.attention.waits.refused(OTHER)
    assert OTHER.uid not in here.attention._refusals
    for before in (2, -UNASKED):
        here.attention._refusals[POD.uid] = before
        here.attention.waits.refused(POD)
        assert here.attention._refusals[POD.uid] == before


async def test_r7_devices_of_a_pod_whose_class_is_away_for_a_moment_are_kept() -> None:
    world = world_of(traits=WAITS, subject=EXTENDED)
    assert isinstance(bind(world, now=START, subject=EXTENDED), NotBound)
    here = Here(world)
    classes = tuple(world.belief.cluster.snapshot.classes.values())
    await here.pass_time(0.0)
    world.belief.apply(Listed(DeviceClass, tuple(replace(known, extended_resource=None) for known in classes)))
    await here.pass_time(LOOK_S / 3)
    await here.pass_time(LOOK_S / 3)
    world.belief.apply(Listed(DeviceClass, classes))
    await here.pass_time(LOOK_S / 3)
    assert not here.attention._refusals


async def test_what_was_counted_before_is_not_forgotten_when_all_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Here()
    monkeypatch.setattr(module.Waits, "_is_left", lambda _waits, subject: subject.uid == POD.uid)
    for count in (None, None, 7):
        if count:
            here.attention._refusals[POD.uid] = count
        await here.pass_time(LOOK_S)
    assert here.attention._refusals == {POD.uid: 7}


@pytest.mark.parametrize("is_unheard", [True, False])
async def test_r7_whose_devices_are_free_again_is_woken_only_where_other_plugins_keep_it(*, is_unheard: bool) -> None:
    here = Here()
    here.waits.awaits(POD.uid, N1, is_unheard=is_unheard)
    here.belief.apply(Changed(claim("a", version=99)))
    await here.waits.ready()
    assert here.wakes.woken == [("p", "n1")] * is_unheard


async def test_r7_whose_waking_is_not_answered_is_woken_again_and_is_not_counted_for_what_was_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = Here()
    outcomes: list[RequestOutcome] = [Unknown("late"), Succeeded({})]

    async def nominated(subject: Pod, node: NodeName) -> RequestOutcome:
        here.wakes.woken.append((subject.key.name, node))
        return outcomes.pop(0)

    monkeypatch.setattr(here.wakes, "nominate", nominated)
    here.waits.ended(ORDER, WAITING)
    here.attention._refusals[POD.uid] = 7
    here.is_ready()
    for _ in range(3):
        await here.waits.ready()
    assert here.wakes.woken == [("p", "n1")] * 2
    assert here.attention._refusals[POD.uid] == -UNASKED


async def test_whom_nothing_was_made_for_is_not_counted_when_all_are_looked_at() -> None:
    here = Here()
    for _ in range(3):
        await here.pass_time(LOOK_S)
    assert not here.attention._refusals


async def test_r7_between_pieces_of_those_who_wait_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 1)
    here, looked, turns = Here(), list[str](), set[int]()

    def left(_waits: object, subject: Pod) -> bool:
        looked.append(subject.key.name)
        return False

    def awaited(_waits: object, uid: str) -> bool:
        looked.append(uid)
        return True

    monkeypatch.setattr(module.Waits, "_is_left", left)
    monkeypatch.setattr(module.Waits, "_is_awaited", awaited)

    async def other() -> None:
        while True:
            turns.add(len(looked))
            await asyncio.sleep(0)

    for subject in (POD, OTHER):
        here.waits.awaits(subject.uid, N1, is_unheard=False)
    beside = asyncio.create_task(other())
    await here.waits.ready()
    await here.waits._look()
    beside.cancel()
    assert len(looked) == 4
    assert turns >= {1, 2, 3}


async def test_whom_another_attempt_overtakes_while_one_is_tried_again_is_left_alone_and_so_is_who_is_gone(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here()
    for subject in (OTHER, POD, pod("gone")):
        here.waits.postponed(subject.uid, TICK_S)

    async def annotate(subject: Pod, *_: object) -> RequestOutcome:
        here.wakes.touched.append(subject.key.name)
        for each in (POD, OTHER):
            here.attention.offered(each)
        return Succeeded({})

    monkeypatch.setattr(here.wakes, "annotate_pod", annotate)
    with caplog.at_level(logging.ERROR):
        await here.pass_time(TICK_S)
    assert here.wakes.touched == ["q"]
    assert caplog.records == []
