"""The scheduler hears of claims and pods before us: what it asks waits for these, and not for ever."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine, Sequence
from dataclasses import replace
from typing import cast
from unittest.mock import AsyncMock

import pytest

from extender.demo.apiserver.kinds import POD
from extender.model.change import Changed
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod, PodClaim, PodClaimStatus
from extender.scheduling.endings import Order
from extender.service import catching_up as module
from extender.service.binds import Binds
from extender.service.catching_up import PATIENCE_S, REST_S, SLOW_S, CatchingUp, left_of
from tests import kube_objects
from tests.scheduling.cast import belief_of, claim, pod
from tests.service.door import SCHEDULER, Door, Json, opened


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with opened(["n0", "n1"]) as found:
        yield found


def early(door: Door) -> Json:
    """Return a pod whose claim is not there."""
    spec = {"schedulerName": SCHEDULER, "resourceClaims": [{"name": "c", "resourceClaimName": "late"}]}
    made: Json = door.server.registry.create(POD, "default", kube_objects.pod("p", **spec))
    return made


def make(door: Door) -> None:
    door.server.registry.create(door.kind("resourceclaims"), "default", kube_objects.claim("late"))


class Told:
    """Tells that somebody is about to wait."""

    def __init__(self, catching_up: CatchingUp) -> None:
        self._catching_up, self.begun = catching_up, asyncio.Event()
        self.met: list[Order] = []

    async def hear(self, pod: Pod) -> None:
        self.begun.set()
        await self._catching_up.hear(pod)

    async def keep_pace(self, pod: Pod) -> None: ...

    async def meet(self, order: Order) -> None:
        self.met.append(order)


async def test_a_pod_whose_claim_is_shown_a_moment_later_is_not_sent_away(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 60)
    told = Told(door.service.answers.catching_up)
    door.service.answers.catching_up = cast("CatchingUp", told)
    question = asyncio.create_task(door.filter(early(door)))
    await told.begun.wait()
    make(door)
    assert len((await question)["NodeNames"]) == 1


async def test_a_pod_whose_claim_does_not_come_is_to_be_asked_about_again(door: Door) -> None:
    assert (await door.filter(early(door)))["Error"] == "there is no claim late"


async def test_nobody_waits_for_who_is_answered_nothing_anyway(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 3600)
    monkeypatch.setattr(CatchingUp, "keep_pace", keeping := AsyncMock())
    door.service.answers.leading = lambda: "somebody else leads"
    assert (await door.filter(early(door)))["Error"] == "somebody else leads"
    assert not keeping.called


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def begun(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
    """Begin *work*, which waits for something."""
    task = asyncio.create_task(work)
    await asyncio.sleep(0)
    assert not task.done()
    return task


def waiting(name: str) -> Pod:
    return pod(name, name)


async def test_after_waiting_in_vain_nobody_is_waited_for_during_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, belief = Clock(), belief_of()
    catching_up = CatchingUp(belief, clock)
    monkeypatch.setattr(module, "PATIENCE_S", 0.01)
    await catching_up.hear(waiting("a"))
    monkeypatch.setattr(module, "PATIENCE_S", 3600)
    clock.now = REST_S - 0.1
    await catching_up.hear(waiting("b"))
    clock.now = REST_S
    waits = await begun(catching_up.hear(waiting("b")))
    belief.apply(Changed(claim("other")))
    catching_up.stir()
    await asyncio.sleep(0)
    assert not waits.done()
    belief.apply(Changed(claim("b")))
    catching_up.stir()
    await waits


async def test_a_claim_that_has_come_at_the_last_moment_was_not_waited_for_in_vain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    clock, belief = Clock(), belief_of()
    catching_up = CatchingUp(belief, clock)
    asyncio.get_running_loop().call_soon(belief.apply, Changed(claim("a")))
    await catching_up.hear(waiting("a"))
    monkeypatch.setattr(module, "PATIENCE_S", 3600)
    waits = await begun(catching_up.hear(waiting("b")))
    waits.cancel()


async def test_who_asks_too_early_is_answered_once_others_are_written_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRITTEN_S", 3600)
    catching_up, written = CatchingUp(belief_of(), Clock()), asyncio.Event()
    writing = asyncio.create_task(only(written.wait()))
    catching_up.hurry = lambda asked: (writing,) if asked == waiting("early") else None
    await catching_up.keep_pace(waiting("other"))
    waits = await begun(catching_up.keep_pace(waiting("early")))
    written.set()
    await waits


async def test_where_writes_take_long_nobody_waits_for_them_during_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRITTEN_S", 0.01)
    clock = Clock()
    catching_up, writing = CatchingUp(belief_of(), clock), asyncio.create_task(only(asyncio.sleep(3600)))
    catching_up.hurry = lambda _pod: (writing,)
    await catching_up.keep_pace(waiting("a"))
    monkeypatch.setattr(module, "WRITTEN_S", 3600)
    clock.now = SLOW_S - 0.1
    await catching_up.keep_pace(waiting("b"))
    clock.now = SLOW_S
    waits = await begun(catching_up.keep_pace(waiting("c")))
    writing.cancel()
    await waits


async def test_what_is_written_is_heard_before_the_next_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARD_S", 1)
    monkeypatch.setattr(asyncio, "sleep", AsyncMock())
    clock = Clock()
    catching_up, asked = CatchingUp(belief_of(), clock, _stroll_s=2), list[Pod]()

    def hurry(pod: Pod) -> Sequence[asyncio.Task[None]] | None:
        asked.append(pod)
        return None if pod == waiting("a") else ()

    catching_up.hurry = hurry
    await catching_up.keep_pace(waiting("a"))
    for clock.now in (0.0, 1.9, 2.0, 5.9, 6.0):
        await catching_up.keep_pace(waiting("b"))
    assert asked == [waiting("a"), *[waiting("b")] * 3]
    # It has heard of something meanwhile.
    await catching_up.keep_pace(replace(waiting("c"), nominated_node=NodeName("n1")))
    for clock.now in (14.0, 15.9, 16.0):
        await catching_up.keep_pace(waiting("d"))
    assert asked[4:] == [waiting("d")] * 2


async def only(work: Awaitable[object]) -> None:
    await work


async def test_a_binding_that_waits_for_a_pod_hears_that_it_is_bound(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 3600)
    spec = {"schedulerName": SCHEDULER, "nodeName": "n0"}
    made = door.server.registry.create(POD, "default", kube_objects.pod("p", **spec))
    order = Order(ObjectKey("default", "p"), Uid(made["metadata"]["uid"]), NodeName("n0"))
    async with asyncio.timeout(60):
        await door.service.answers.catching_up.meet(order)


MADE = PodClaimStatus(name="t", claim_name="made")
BARE = replace(pod("p"), claims=(PodClaim(name="t", template_name="template"),))
WHOLE = replace(BARE, claim_statuses=(MADE,))
ORDER = Order(WHOLE.key, WHOLE.uid, NodeName("n0"))


@pytest.mark.parametrize(
    "before", [(), (BARE,), (replace(WHOLE, scheduling_gates=("later",)),)], ids=["unknown", "no claim", "gated"]
)
async def test_a_binding_waits_until_the_pod_is_shown_as_the_scheduler_let_it_in(
    before: Sequence[Pod], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 3600)
    belief = belief_of(*before)
    catching_up = CatchingUp(belief, Clock())
    waits = asyncio.create_task(catching_up.meet(ORDER))
    await asyncio.sleep(0)
    catching_up.stir()
    await asyncio.sleep(0)
    assert not waits.done()
    belief.apply(Changed(WHOLE))
    catching_up.stir()
    async with asyncio.timeout(60):
        await waits
        await catching_up.meet(ORDER)


async def test_a_pod_that_is_never_shown_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.01)
    await CatchingUp(belief_of(), Clock()).meet(ORDER)


async def test_a_pod_that_is_known_to_be_bound_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 3600)
    belief = belief_of()
    belief.apply(Changed(Footprint(key=WHOLE.key, uid=WHOLE.uid, node=ORDER.node, amounts=(("pods", 1),))))
    async with asyncio.timeout(60):
        await CatchingUp(belief, Clock()).meet(ORDER)


async def test_so_many_bindings_wait_at_a_time_and_others_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 3600)
    monkeypatch.setattr(module, "MOST_MEETING", 2)
    belief = belief_of()
    catching_up = CatchingUp(belief, Clock())
    waits = [asyncio.create_task(catching_up.meet(ORDER)) for _ in range(2)]
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await catching_up.meet(ORDER)
        belief.apply(Changed(WHOLE))
        catching_up.stir()
        await asyncio.gather(*waits)
        again = asyncio.create_task(catching_up.meet(replace(ORDER, uid=Uid("another"))))
        await asyncio.sleep(0)
    assert not again.done()
    again.cancel()


async def test_a_binding_that_nobody_may_begin_any_more_once_its_pod_was_met_is_refused(door: Door) -> None:
    answers = door.service.answers
    made = await door.pod("p")

    class Deposed:
        async def hear(self, pod: Pod) -> None: ...

        async def meet(self, _order: Order) -> bool:
            answers.leading = lambda: "somebody else leads"
            return True

    node = (await door.filter(made))["NodeNames"][0]
    answers.catching_up = cast("CatchingUp", Deposed())
    before = door.held()
    assert await door.bind(made, node) == "somebody else leads"
    assert door.held() == before


async def test_a_binding_begins_once_its_pod_was_met(door: Door) -> None:
    told = Told(door.service.answers.catching_up)
    door.service.answers.catching_up = cast("CatchingUp", told)
    made = await door.pod("p")
    await door.bind(made, "n0")
    assert [order.uid for order in told.met] == [made["metadata"]["uid"]]


async def test_who_asks_again_for_a_pod_that_is_being_bound_does_not_wait_for_it(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(door.service.answers.catching_up)
    door.service.answers.catching_up = cast("CatchingUp", told)
    made = await door.pod("p")
    monkeypatch.setattr(Binds, "is_under_way", lambda _binds, pod: pod == made["metadata"]["uid"])
    await door.bind(made, "n0")
    assert told.met == []


@pytest.mark.parametrize("seconds", [0.1, 2 * PATIENCE_S, 20.0])
def test_waiting_for_its_pod_and_binding_it_take_no_longer_than_a_binding_may(seconds: float) -> None:
    assert seconds / 2 <= left_of(seconds) < seconds
    assert left_of(seconds) + PATIENCE_S <= seconds or seconds < 2 * PATIENCE_S
