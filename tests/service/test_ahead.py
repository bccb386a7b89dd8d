"""Pods sent to their nodes before the scheduler asks about them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from extender.kube.outcome import RequestOutcome, Succeeded, Unknown
from extender.model.change import Changed, Gone, Listed, Noun
from extender.model.claim import ResourceClaim
from extender.model.device import Counter, CounterConsumption, CounterSet, ResourceSlice, Traits
from extender.model.footprint import Footprint
from extender.model.names import NodeName, Uid
from extender.model.node import Pod, PodClaim
from extender.model.quantity import parse_quantity
from extender.model.taint import NO_SCHEDULE, Taint
from extender.model.terms import Terms
from extender.scheduling.needs import Needs, Unplaceable, needs_of
from extender.scheduling.planner import AHEAD, Offer, Plan, Planner
from extender.scheduling.suitable import Suitable
from extender.service.ahead import BATCH, MOST, Ahead
from extender.service.sending import ENOUGH, FEWEST_BEFORE, MINORS, Sending
from extender.state.belief import Belief
from extender.state.ledger import Event
from extender.telemetry import keys
from extender.telemetry.metrics import Metrics
from tests.scheduling.cast import THEIRS, belief_of, claim, device, gpus, names, node, planner_of, pod
from tests.scheduling.cast import held as given
from tests.scheduling.test_suitable import taker
from tests.telemetry.test_metrics import samples

N1, N2 = NodeName("n1"), NodeName("n2")
PART = CounterConsumption(counter_set="whole", counters=(Counter("parts", parse_quantity("1")),))
DONE = Succeeded({"metadata": {"resourceVersion": "9"}})


class Nominations:
    """Stands in for writes: remembers who was sent where."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, NodeName | None]] = []
        self.based_on: list[str] = []
        self.outcome: RequestOutcome = DONE

    async def nominate(self, pod: Pod, node: NodeName | None) -> RequestOutcome:
        self.sent.append((pod.key.name, node))
        self.based_on.append(pod.resource_version)
        return self.outcome


class Scene:
    """A cluster of two nodes, and pods that appear in it."""

    def __init__(self, *nouns: Noun, devices: int = 4, bound: Sequence[Footprint] = ()) -> None:
        self.belief = belief_of(node("n1"), gpus("n1", devices), node("n2"), gpus("n2", devices), *nouns)
        self.belief.apply(Listed(Footprint, tuple(bound)))
        self.writes, self.metrics = Nominations(), Metrics()
        self.planner = planner_of(self.belief)
        self.ahead = Ahead(
            self.belief,
            self.planner,
            Suitable(self.belief.loads),
            self.writes,  # type: ignore[arg-type]  # only nominations are asked for
            self.metrics,
            lambda: 0.0,
            sending=Sending("always", is_known=True),
        )

    def appear(self, *pods: Pod) -> None:
        for item in pods:
            self.tell(item)
            self.ahead.shown(item)

    def tell(self, *nouns: Noun) -> None:
        for noun in nouns:
            self.belief.apply(Changed(noun))
            if isinstance(noun, ResourceClaim):
                self.ahead.made(noun)

    async def settle(self) -> list[tuple[str, NodeName | None]]:
        """Let everything be done that there is to do; return who was sent where meanwhile."""
        before = len(self.writes.sent)
        self.ahead.stir()
        await turned(self.ahead.run, self.ahead._stirred.is_set)
        return self.writes.sent[before:]

    def guessed(self, result: str, count: int = 1) -> bool:
        line = f'dra_extender_nominations_ahead_total{{result="{result}"}} {count}.0'
        return line.encode() in self.metrics.exposition()[0]


async def turned(run: Callable[[], Coroutine[object, object, None]], is_busy: Callable[[], bool]) -> None:
    """Run until nothing is left to do but to wait."""
    task = asyncio.create_task(run())
    for _ in range(500):
        await asyncio.sleep(0)
    assert not is_busy()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def pods(count: int) -> list[Pod]:
    return [pod(f"p{number:03}", f"c{number:03}") for number in range(count)]


def claims(count: int) -> list[Noun]:
    return [claim(f"c{number:03}") for number in range(count)]


async def test_a_pod_is_written_for_while_others_are_still_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, planned = Scene(*claims(4)), list[int]()
    write = scene.writes.nominate

    async def noted(pod: Pod, node: NodeName | None) -> RequestOutcome:
        planned.append(len(scene.ahead._sent))
        return await write(pod, node)

    monkeypatch.setattr(scene.writes, "nominate", noted)
    scene.appear(*pods(4))
    assert len(await scene.settle()) == 4
    assert planned[0] < 4


@pytest.mark.parametrize(("outcome", "told"), [(DONE, "done"), (Unknown("no answer"), "failed")])
async def test_only_what_was_written_is_remembered_to_be_and_what_became_of_it_is_counted(
    outcome: RequestOutcome, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(*claims(1))
    scene.writes.outcome = outcome
    scene.appear(*pods(1))
    await scene.settle()
    (sent,) = scene.ahead._sent
    assert (sent.is_written, caplog.records) == (told == "done", [])
    counted = {
        dict(labels).get("result")
        for (name, labels), value in samples(scene.metrics).items()
        if value and "wakes" in name
    }
    assert counted == {told}


async def test_who_is_asked_about_while_it_is_written_for_is_on_its_way_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(*claims(1))

    async def asked(subject: Pod, _node: NodeName | None) -> RequestOutcome:
        scene.ahead.asked(subject, ["n1"])
        return DONE

    monkeypatch.setattr(scene.writes, "nominate", asked)
    scene.appear(*pods(1))
    await scene.settle()
    assert not list(scene.ahead._sent)


async def test_a_pod_that_another_has_nominated_since_it_was_shown_is_not_sent_ahead() -> None:
    scene = Scene(*claims(1))
    scene.appear(*pods(1))
    scene.tell(replace(pods(1)[0], nominated_node=N2, resource_version="2"))
    assert await scene.settle() == []


async def test_one_that_cannot_be_written_for_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, write = Scene(*claims(3)), Nominations()

    async def broken(pod: Pod, node: NodeName | None) -> RequestOutcome:
        if pod.key.name == "p000":
            raise RuntimeError
        return await write.nominate(pod, node)

    monkeypatch.setattr(scene.writes, "nominate", broken)
    scene.appear(*pods(3))
    await scene.settle()
    assert sorted(name for name, _ in write.sent) == ["p001", "p002"]


async def test_one_that_cannot_be_planned_leaves_the_others_of_its_round(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, usual = Scene(*claims(3)), Planner.plan

    def plan(planner: Planner, asked: Pod, *rest: Any, **how: Any) -> Plan:
        if asked.key.name == "p000":
            raise ArithmeticError
        return usual(planner, asked, *rest, **how)

    monkeypatch.setattr(Planner, "plan", plan)
    scene.appear(*pods(3))
    assert sorted(name for name, _ in await scene.settle()) == ["p001", "p002"]


class Held(Nominations):
    """Writes that take until *is_over*."""

    def __init__(self) -> None:
        super().__init__()
        self.is_over = asyncio.Event()

    async def nominate(self, pod: Pod, node: NodeName | None) -> RequestOutcome:
        outcome = await super().nominate(pod, node)
        await self.is_over.wait()
        return outcome


@asynccontextmanager
async def held(scene: Scene) -> AsyncIterator[Held]:
    """Have pods sent ahead, by writes that are not over."""
    scene.writes = scene.ahead.writes = Held()  # type: ignore[assignment]  # only nominations are asked for
    running = asyncio.create_task(scene.ahead.run())
    try:
        yield scene.writes
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def rested(scene: Scene, *, is_stirred: bool = True) -> None:
    if is_stirred:
        scene.ahead.stir()
    for _ in range(100):
        await asyncio.sleep(0)


async def test_pods_are_planned_and_written_for_while_others_still_are() -> None:
    scene = Scene(*claims(2))
    async with held(scene) as writes:
        for one in pods(2):
            scene.appear(one)
            await rested(scene)
        assert [name for name, _ in writes.sent] == ["p000", "p001"]


async def test_a_pod_that_is_being_written_for_is_sent_elsewhere_after_that() -> None:
    scene = Scene(*claims(1))
    async with held(scene) as writes:
        scene.appear(*pods(1))
        await rested(scene)
        ((_, first),) = writes.sent
        assert first is not None
        scene.tell(replace(node(first), is_unschedulable=True))
        await rested(scene)
        assert writes.sent == [("p000", first)]
        writes.is_over.set()
        await rested(scene, is_stirred=False)
    assert writes.sent == [("p000", first), ("p000", N2 if first == N1 else N1)]
    assert writes.based_on == ["1", "9"]


async def test_each_pod_is_sent_to_devices_of_its_own() -> None:
    scene = Scene(*claims(4), devices=2)
    scene.appear(*pods(4))
    assert sorted(node or "" for _, node in await scene.settle()) == ["n1", "n1", "n2", "n2"]


async def test_the_most_important_go_first_then_the_oldest() -> None:
    scene = Scene(*claims(3))
    young, old, important = pods(3)
    later = "2026-01-02T00:00:00Z"
    scene.appear(replace(young, created=later), old, replace(important, created=later, priority=5))
    assert [name for name, _ in await scene.settle()] == ["p002", "p001", "p000"]


async def test_of_equals_the_first_that_came_goes_first_however_late_it_is_let_through() -> None:
    scene = Scene(*claims(2))
    first, second = pods(2)
    scene.appear(replace(first, scheduling_gates=("kueue.x-k8s.io/admission",)), second, first)
    assert [name for name, _ in await scene.settle()] == ["p000", "p001"]


async def test_a_pod_waits_for_its_claims() -> None:
    scene = Scene()
    made_later = replace(pod("p"), claims=(PodClaim(name="c", template_name="t"),))
    scene.appear(made_later, pod("q", "c000"))
    assert await scene.settle() == []
    scene.tell(*claims(1))
    assert [name for name, _ in await scene.settle()] == ["q"]


async def test_who_waits_for_what_never_comes_is_not_looked_at_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, looked = Scene(), list[str]()

    def judged(asked: Pod, belief: Belief) -> Needs | Unplaceable:
        looked.append(asked.key.name)
        return needs_of(asked, belief)

    monkeypatch.setattr("extender.service.ahead.needs_of", judged)
    scene.appear(*pods(2), pod("both", "c000", "c001"))
    await scene.settle()
    scene.ahead._stirred.set()
    assert await scene.settle() == []
    assert looked == ["p000", "p001", "both"]
    scene.tell(*claims(1))
    assert [name for name, _ in await scene.settle()] == ["p000"]
    scene.tell(claim("c001"))
    assert [name for name, _ in await scene.settle()] == ["p001"]


async def test_who_has_waited_for_a_claim_goes_before_whoever_came_later() -> None:
    scene = Scene(claim("c001"))
    first, second = pods(2)
    scene.appear(first)
    assert await scene.settle() == []
    scene.appear(second)
    scene.tell(*claims(1))
    assert [name for name, _ in await scene.settle()] == ["p000", "p001"]


async def test_nobody_is_sent_where_kube_scheduler_would_not_let_them_be() -> None:
    full, sick = taker("n1", pods=1), replace(node("n2", {"pods": 9}), taints=(Taint(key="sick", effect=NO_SCHEDULE),))
    scene = Scene(node("n1", {"pods": 1}), *claims(1), bound=[full])
    one = replace(pods(1)[0].terms, amounts=(("pods", 1),))
    scene.tell(sick)
    scene.appear(replace(pods(1)[0], terms=one))
    assert await scene.settle() == []


@pytest.mark.parametrize(
    "why", ["no-claims", "others-decide", "nominated-already", "bound-pods-unknown", "another-leads", "another-serves"]
)
async def test_who_is_left_to_the_scheduler(why: str) -> None:
    scene = Scene(*claims(1))
    usual = pods(1)[0]
    scene.ahead.leads = lambda: why != "another-leads"
    if why == "bound-pods-unknown":
        scene.belief.loads.is_known = False
    scene.appear(
        {
            "no-claims": pod("p"),
            "others-decide": replace(usual, terms=replace(usual.terms, is_all=False)),
            "nominated-already": replace(usual, nominated_node=N2),
            "another-serves": replace(usual, scheduler=THEIRS),
        }.get(why, usual)
    )
    assert (await scene.settle(), len(scene.ahead._queue)) == ([], 0)


@pytest.mark.parametrize("what", ["another-leads", "deleted", "asked", "promised"])
async def test_what_happens_while_a_pod_is_in_line_leaves_it_to_the_scheduler(what: str) -> None:
    scene, (one,) = Scene(*claims(1)), pods(1)
    scene.appear(one)
    scene.ahead.leads = lambda: what != "another-leads"
    if what == "deleted":
        scene.tell(replace(one, is_deleting=True, resource_version="2"))
    if what == "asked":
        scene.ahead.asked(one, ())
    if what == "promised":
        assert isinstance(scene.planner.plan(one, None, 0.0, is_answer=False), Offer)
    assert await scene.settle() == []


async def test_a_pod_that_is_shown_where_we_sent_it_is_sent_elsewhere_all_the_same() -> None:
    scene, (one,) = Scene(*claims(1)), pods(1)
    scene.appear(one)
    ((_, first),) = await scene.settle()
    assert first is not None
    scene.appear(replace(one, nominated_node=first, resource_version="9"))
    scene.tell(replace(node(first), is_unschedulable=True))
    assert await scene.settle() == [("p000", N2 if first == N1 else N1)]


async def test_who_is_nominated_no_more_is_sent_ahead() -> None:
    scene, (one,) = Scene(*claims(1)), pods(1)
    scene.appear(replace(one, nominated_node=N2))
    assert await scene.settle() == []
    scene.appear(replace(one, resource_version="2"))
    assert await scene.settle() == [("p000", N1)]


async def test_no_more_are_on_their_way_than_the_scheduler_soon_takes() -> None:
    scene = Scene(*claims(MOST + 3), devices=MOST)
    scene.appear(*pods(MOST + 3))
    assert len(await scene.settle()) == MOST
    first, node_name = scene.writes.sent[0]
    assert node_name is not None
    scene.ahead.asked(pod(first), [node_name])
    assert scene.ahead._stirred.is_set()
    assert [name for name, _ in await scene.settle()] == [f"p{MOST:03}"]


def test_plans_are_remembered_of_more_pods_than_are_on_their_way_at_a_time() -> None:
    assert AHEAD >= 2 * MOST


async def test_one_that_cannot_be_planned_anew_keeps_no_other_where_it_cannot_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene, usual = Scene(*claims(2)), Planner.plan
    scene.appear(*pods(2))
    ((_, first), (_, second)) = await scene.settle()
    scene.tell(*(replace(node(str(name)), is_unschedulable=True) for name in {first, second}))
    scene.tell(node("n3"), gpus("n3", 4))

    def plan(planner: Planner, asked: Pod, *rest: Any, **how: Any) -> Plan:
        if asked.key.name == "p000":
            raise ArithmeticError
        return usual(planner, asked, *rest, **how)

    monkeypatch.setattr(Planner, "plan", plan)
    assert await scene.settle() == []
    ((name, where),) = await scene.settle()
    assert name == "p001"
    assert where not in {first, second}


async def test_who_was_asked_about_is_not_sent_any_more() -> None:
    scene = Scene(*claims(1))
    (one,) = pods(1)
    scene.ahead.asked(one, names("n1", "n2"))
    scene.appear(one)
    assert await scene.settle() == []


async def test_who_was_asked_about_while_in_line_is_not_sent_any_more() -> None:
    scene = Scene()
    (one,) = pods(1)
    scene.appear(one)
    assert await scene.settle() == []
    scene.ahead.asked(one, names("n1", "n2"))
    scene.tell(*claims(1))
    assert await scene.settle() == []


@pytest.mark.parametrize(
    ("outcome", "version", "asked", "result"),
    [
        pytest.param(DONE, "9", None, "right", id="asked about its node alone"),
        pytest.param(DONE, "9", ["n1", "n2"], "wrong", id="heard, and asked about others"),
        pytest.param(DONE, "8", ["n1", "n2"], "late", id="written, and not heard yet"),
        pytest.param(Unknown("late"), "8", ["n1", "n2"], "late", id="perhaps never written"),
    ],
)
async def test_what_became_of_a_guess_is_counted(
    outcome: RequestOutcome, version: str, asked: list[str] | None, result: str
) -> None:
    scene = Scene(*claims(1))
    scene.writes.outcome = outcome
    scene.appear(*pods(1))
    ((_, node_name),) = await scene.settle()
    scene.ahead.asked(replace(pods(1)[0], resource_version=version), asked or [str(node_name)])
    assert scene.guessed(result)


async def test_who_is_asked_about_too_early_is_not_written_for_and_others_are() -> None:
    scene, (first, early, last) = Scene(*claims(3)), pods(3)
    async with held(scene) as writes:
        scene.appear(first)
        await rested(scene)
        scene.appear(early)
        (writing,) = scene.ahead.hurry(early) or ()
        assert scene.ahead.hurry(early) is None
        scene.appear(last)
        await rested(scene)
        assert [name for name, _ in writes.sent] == ["p000", "p002"]
        writes.is_over.set()
        await writing


@pytest.mark.parametrize(
    ("shown", "is_early"),
    [
        pytest.param({}, True, id="not heard yet"),
        pytest.param({"nominated_node": N1}, False, id="heard of a node"),
        pytest.param({"nominated_node": N2}, False, id="heard of another node"),
        pytest.param({"resource_version": "9"}, False, id="heard of what was written"),
        pytest.param({"uid": Uid("other")}, True, id="not shown yet"),
        pytest.param({"uid": Uid("other"), "claims": ()}, False, id="not to be sent"),
    ],
)
async def test_who_is_asked_about_too_early(shown: dict[str, Any], *, is_early: bool) -> None:
    scene, (one, other) = Scene(*claims(2)), pods(2)
    scene.appear(one)
    await scene.settle()
    async with held(scene):
        scene.appear(other)
        await rested(scene)
        assert (scene.ahead.hurry(replace(one, **shown)) is not None) is is_early


async def test_who_was_asked_about_is_not_asked_about_too_early_again() -> None:
    scene, (one, other) = Scene(*claims(2)), pods(2)
    async with held(scene):
        scene.appear(one, other)
        await rested(scene)
        scene.ahead.asked(one, ())
        assert scene.ahead.hurry(one) is None


async def test_who_alone_is_written_for_has_nobody_to_wait_for() -> None:
    scene, (one,) = Scene(*claims(1)), pods(1)
    async with held(scene):
        scene.appear(one)
        await rested(scene)
        assert scene.ahead.hurry(one) is None


async def test_who_is_asked_about_while_others_are_written_for_first_is_written_for_no_more() -> None:
    scene, (one, other) = Scene(*claims(2)), pods(2)
    scene.ahead._gate = asyncio.Semaphore(1)
    async with held(scene) as writes:
        scene.appear(one, other)
        await rested(scene)
        assert scene.ahead.hurry(other)
        writes.is_over.set()
        await rested(scene)
    assert [name for name, _ in writes.sent] == ["p000"]


@asynccontextmanager
async def robbed(count: int) -> AsyncIterator[tuple[Scene, Held]]:
    """Have pods sent, the first of which is written for, and all of them lose their promise to a more important one."""
    scene = Scene(*claims(count), claim("all", count), devices=count)
    scene.tell(replace(node("n2"), is_unschedulable=True))
    scene.ahead._gate = asyncio.Semaphore(1)
    async with held(scene) as writes:
        scene.appear(*pods(count))
        await rested(scene)
        important = pod("important", "all", priority=5)
        scene.tell(important)
        assert isinstance(scene.planner.plan(important, ["n1"], 0.0), Offer)
        yield scene, writes


async def test_who_has_lost_its_promise_to_a_more_important_pod_is_not_written_for_any_more() -> None:
    async with robbed(2) as (scene, writes):
        writes.is_over.set()
        await asyncio.gather(*scene.ahead._written_for.values())
    assert [name for name, _ in writes.sent] == ["p000"]


async def test_all_who_have_lost_their_promises_take_nothing_of_their_node_from_the_next_round_on() -> None:
    async with robbed(BATCH + 2) as (scene, _):
        assert len(scene.ahead._sent) == BATCH + 2
        await rested(scene)
        assert not len(scene.ahead._sent)


async def test_who_is_to_go_elsewhere_and_loses_that_too_is_nominated_nowhere() -> None:
    scene, (one,) = Scene(*claims(1)), pods(1)
    scene.appear(one)
    ((_, first),) = await scene.settle()
    assert first is not None
    scene.ahead._gate = asyncio.Semaphore(0)
    async with held(scene) as writes:
        scene.tell(replace(node(first), is_unschedulable=True))
        await rested(scene)
        scene.planner.withdraw(one.uid)
        writes.is_over.set()
        scene.ahead._gate.release()
        await rested(scene)
    assert writes.sent == [("p000", None)]


@pytest.mark.parametrize("what", ["asked", "gone"])
async def test_who_is_to_go_nowhere_and_is_promised_something_since_or_gone_keeps_its_nomination(what: str) -> None:
    scene, (one,) = Scene(*claims(1)), pods(1)
    scene.appear(one)
    assert len(await scene.settle()) == 1
    scene.ahead._gate = asyncio.Semaphore(0)
    async with held(scene) as writes:
        scene.tell(*(replace(node(name), is_unschedulable=True) for name in ("n1", "n2")))
        await rested(scene)
        scene.tell(node("n1"))
        if what == "asked":
            scene.ahead.asked(one, ["n1"])
            assert isinstance(scene.planner.plan(one, ["n1"], 0.0), Offer)
        else:
            scene.belief.apply(Gone(Pod, one.key))
        scene.ahead._gate.release()
        await rested(scene)
    assert writes.sent == []


async def test_who_is_promised_another_node_before_it_is_written_for_is_not_nominated_for_the_first() -> None:
    scene, (one,) = Scene(*claims(1)), pods(1)
    scene.ahead._gate = asyncio.Semaphore(0)
    async with held(scene) as writes:
        scene.appear(one)
        await rested(scene)
        (sent,) = scene.ahead._sent
        other = "n2" if sent.node == N1 else "n1"
        assert isinstance(scene.planner.plan(one, [other], 0.0, is_answer=False), Offer)
        scene.ahead._gate.release()
        await rested(scene)
    assert writes.sent == []


async def test_where_its_own_node_is_written_the_scheduler_is_behind_though_nothing_else_is_written() -> None:
    scene, (one,) = Scene(*claims(1)), pods(1)
    scene.appear(one)
    assert len(await scene.settle()) == 1
    assert scene.ahead.hurry(one) == ()


async def test_of_what_is_not_written_nobody_can_have_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.service.sending.FEWEST_NODES", 1)
    scene, (one,) = Scene(*claims(1)), pods(1)
    scene.ahead.sending = Sending("auto", is_known=True)
    scene.appear(one)
    assert await scene.settle() == []
    assert scene.ahead.hurry(one) is None


async def test_who_is_asked_about_too_early_has_its_devices_before_who_came_later() -> None:
    scene, (early, last) = Scene(*claims(2), devices=1), pods(2)
    scene.belief.apply(Changed(replace(node("n2"), is_unschedulable=True)))
    scene.appear(early)
    scene.ahead.hurry(early)
    scene.appear(last)
    assert await scene.settle() == []
    assert scene.belief.ledger.of_pod(early.uid)
    assert scene.belief.ledger.of_pod(last.uid) is None


async def test_who_is_being_asked_about_is_left_alone_whatever_changes() -> None:
    scene, (one,) = Scene(*claims(1)), pods(1)
    scene.appear(one)
    ((_, node_name),) = await scene.settle()
    assert node_name is not None
    before = scene.belief.ledger.of_pod(one.uid)
    scene.ahead.hurry(one)
    scene.tell(replace(node(node_name), is_unschedulable=True))
    assert await scene.settle() == []
    assert scene.belief.ledger.of_pod(one.uid) is before
    scene.ahead.asked(one, names("n1", "n2"))
    assert scene.guessed("late")


async def test_the_scheduler_is_told_what_was_planned() -> None:
    scene = Scene(*claims(1))
    (one,) = pods(1)
    scene.appear(one)
    ((_, node_name),) = await scene.settle()
    assert node_name is not None
    before = scene.belief.ledger.of_pod(one.uid)
    scene.ahead.asked(one, [node_name])
    plan = scene.planner.plan(one, [node_name], 1.0)
    assert isinstance(plan, Offer)
    after = scene.belief.ledger.of_pod(one.uid)
    assert before is not None
    assert after == replace(before, since=1.0, is_answer=True)


async def test_a_pod_is_bound_in_the_version_to_which_it_was_brought() -> None:
    scene = Scene(*claims(1))
    (one,) = pods(1)
    scene.appear(one)
    await scene.settle()
    assert scene.belief.pods.current(one).resource_version == "9"
    by_others = replace(one, resource_version="5")
    assert scene.belief.pods.current(by_others) is by_others


async def test_a_pod_whose_node_is_cordoned_is_sent_elsewhere() -> None:
    scene = Scene(*claims(1))
    scene.appear(*pods(1))
    ((_, first),) = await scene.settle()
    scene.tell(replace(node(str(first)), is_unschedulable=True))
    ((_, second),) = await scene.settle()
    assert {first, second} == {N1, N2}
    assert scene.guessed("renewed")


async def test_a_pod_that_is_planned_anew_is_not_in_its_own_way_and_not_told_again_of_the_same_node() -> None:
    scene, (one,) = equipped(*claims(1)), roomy(1)
    scene.tell(replace(node("n2", {"cpu": 4}), is_unschedulable=True))
    scene.appear(one)
    assert await scene.settle() == [("p000", N1)]
    scene.tell(gpus("n1", 3))
    assert await scene.settle() == []
    assert scene.guessed("renewed")
    assert [sent.node for sent in scene.ahead._sent] == [N1]


async def test_a_pod_for_which_no_node_is_left_is_sent_nowhere() -> None:
    scene = Scene(*claims(1))
    scene.appear(*pods(1))
    await scene.settle()
    scene.tell(*(replace(node(name), is_unschedulable=True) for name in ("n1", "n2")))
    assert await scene.settle() == [("p000", None)]
    # Nobody who has changed the pod since is overruled.
    assert scene.writes.based_on == ["1", "9"]
    assert list(scene.belief.ledger) == []


async def test_a_pod_whose_promise_has_run_out_was_sent_nowhere_in_vain() -> None:
    scene = Scene(*claims(1))
    (one,) = pods(1)
    scene.appear(one)
    ((_, first),) = await scene.settle()
    scene.belief.ledger.tell(one.uid, Event.EXPIRED)
    assert await scene.settle() == []
    again = scene.planner.plan(one, None, 1.0, is_answer=False)
    assert isinstance(again, Offer)
    assert again.placement.node == first


async def test_a_pod_that_another_has_nominated_is_not_sent_elsewhere() -> None:
    scene = Scene(node("n3"), gpus("n3", 4), *claims(1))
    (one,) = pods(1)
    scene.appear(one)
    ((_, first),) = await scene.settle()
    (second, third) = {N1, N2, NodeName("n3")} - {first}
    scene.tell(replace(one, nominated_node=second, resource_version="12"))
    scene.tell(replace(node(str(first)), is_unschedulable=True))
    # What it was sent to first is taken back, if that is what it has still heard last.
    assert [node for _, node in await scene.settle()] == [None]
    assert scene.writes.based_on[-1] == "9"
    assert third not in [node for _, node in scene.writes.sent]


async def test_a_pod_that_another_has_nominated_to_the_same_node_is_not_sent_elsewhere() -> None:
    scene = Scene(*claims(1))
    scene.writes.outcome = Unknown("late")
    (one,) = pods(1)
    scene.appear(one)
    ((_, first),) = await scene.settle()
    scene.tell(replace(one, nominated_node=first, resource_version="12"))
    scene.tell(replace(node(str(first)), is_unschedulable=True))
    assert await scene.settle() == []


async def test_a_pod_that_was_asked_about_is_left_alone_whatever_changes() -> None:
    scene = Scene(*claims(1))
    scene.appear(*pods(1))
    ((_, first),) = await scene.settle()
    scene.ahead.asked(pods(1)[0], [str(first)])
    scene.tell(replace(node(str(first)), is_unschedulable=True))
    assert await scene.settle() == []


async def test_what_the_scheduler_was_told_meanwhile_is_not_taken_back() -> None:
    scene = Scene(*claims(1))
    scene.appear(*pods(1))
    ((_, first),) = await scene.settle()
    scene.tell(replace(node(str(first)), is_unschedulable=True))
    renewing = asyncio.create_task(scene.ahead._renew())
    await asyncio.sleep(0)
    (one,) = pods(1)
    scene.ahead.asked(one, ["n1", "n2"])
    assert isinstance(scene.planner.plan(one, ["n1", "n2"], 1.0), Offer)
    told, written = scene.belief.ledger.of_pod(one.uid), len(scene.writes.sent)
    await renewing
    assert scene.belief.ledger.of_pod(one.uid) is told is not None
    assert len(scene.writes.sent) == written


async def test_between_two_that_are_planned_anew_the_scheduler_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, turns, planned, usual = Scene(*claims(3)), [0], list[int](), Planner.plan
    scene.appear(*pods(3))
    await scene.settle()

    def plan(planner: Planner, *asked: Any, **how: Any) -> Plan:
        planned.append(turns[0])
        return usual(planner, *asked, **how)

    monkeypatch.setattr(Planner, "plan", plan)
    scene.tell(*(replace(node(name), is_unschedulable=True) for name in ("n1", "n2")))
    renewing = asyncio.create_task(scene.ahead._renew())
    while not renewing.done():
        await asyncio.sleep(0)
        turns[0] += 1
    assert len(planned) == len(set(planned)) == 3
    assert sorted(scene.writes.sent[3:]) == [("p000", None), ("p001", None), ("p002", None)]


async def test_a_pod_that_goes_while_others_are_planned_anew_is_promised_nothing() -> None:
    scene = Scene(*claims(2))
    scene.appear(*pods(2))
    ((_, first), (_, second)) = await scene.settle()
    scene.tell(*(replace(node(str(name)), is_unschedulable=True) for name in {first, second}))
    scene.tell(gpus("n3", 4), node("n3"))
    renewing = asyncio.create_task(scene.ahead._renew())
    await asyncio.sleep(0)
    scene.belief.apply(Gone(Pod, pods(2)[1].key))
    await renewing
    assert [promise.pod for promise in scene.belief.ledger] == [pods(2)[0].uid]


async def test_nothing_is_promised_to_a_pod_before_its_last_gate_is_gone() -> None:
    scene = Scene(*claims(1))
    (one,) = pods(1)
    scene.appear(replace(one, scheduling_gates=("kueue.x-k8s.io/admission",)))
    assert await scene.settle() == []
    assert list(scene.belief.ledger) == []
    scene.appear(one)
    assert [name for name, _ in await scene.settle()] == ["p000"]


async def test_a_pod_with_which_something_goes_wrong_keeps_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(*claims(2))
    first, second = pods(2)

    def judged(asked: Pod, belief: Belief) -> Needs | Unplaceable:
        if asked.uid == first.uid:
            raise ArithmeticError
        return needs_of(asked, belief)

    monkeypatch.setattr("extender.service.ahead.needs_of", judged)
    scene.appear(first)
    assert await scene.settle() == []
    scene.appear(second)
    assert [name for name, _ in await scene.settle()] == ["p001"]


async def test_what_changes_elsewhere_moves_nobody() -> None:
    scene = Scene(*claims(1))
    scene.appear(*pods(1))
    ((_, first),) = await scene.settle()
    other = N2 if first == N1 else N1
    scene.tell(gpus(other, 2), replace(node(other), is_unschedulable=True))
    assert await scene.settle() == []


@pytest.mark.parametrize(
    "traits",
    [Traits(), Traits(allow_multiple_allocations=True), Traits(consumes_counters=(PART,))],
    ids=["whole", "shared", "partitioned"],
)
async def test_only_what_is_published_for_its_own_node_has_a_pod_planned_anew(
    traits: Traits, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, planned, usual = Scene(*claims(1)), list[object](), Planner.plan
    scene.tell(published("n1", 4, traits), published("n2", 4, traits))
    scene.appear(*pods(1))
    ((_, first),) = await scene.settle()
    assert first is not None

    def plan(planner: Planner, *asked: Any, **how: Any) -> Plan:
        planned.append(asked[0])
        return usual(planner, *asked, **how)

    monkeypatch.setattr(Planner, "plan", plan)
    scene.tell(published(N2 if first == N1 else N1, 3, traits), gpus("another", 2))
    await scene.settle()
    assert planned == []
    scene.tell(published(first, 3, traits))
    await scene.settle()
    assert len(planned) == 1


def published(name: str, devices: int, traits: Traits) -> ResourceSlice:
    """Publish devices, each of which takes one of four where they are partitions."""
    four = CounterSet(name="whole", counters=(Counter("parts", parse_quantity("4")),))
    return replace(gpus(name, devices, traits), shared_counters=(four,) if traits.consumes_counters else ())


def roomy(count: int) -> list[Pod]:
    """Return pods of which each takes all the CPU of a node, which has devices for four."""
    return [replace(item, terms=Terms(amounts=(("cpu", 4000),))) for item in pods(count)]


async def answered(scene: Scene, subject: Pod) -> NodeName:
    """Have a pod be sent, asked about and offered its node; return that."""
    scene.appear(subject)
    ((_, sent),) = await scene.settle()
    assert sent is not None
    scene.ahead.asked(subject, [sent])
    assert isinstance(scene.planner.plan(subject, [sent], 0.0), Offer)
    scene.ahead.answered(subject, sent)
    return sent


def equipped(*nouns: Noun) -> Scene:
    scene = Scene(*nouns)
    scene.tell(node("n1", {"cpu": 4}), node("n2", {"cpu": 4}))
    return scene


async def test_the_cpu_of_a_pod_is_taken_from_the_answer_until_it_is_bound() -> None:
    scene, (first, second, third) = equipped(*claims(3)), roomy(3)
    taken = await answered(scene, first)
    assert await answered(scene, second) != taken
    scene.appear(third)
    assert await scene.settle() == []
    shown = replace(first, node_name=taken)
    scene.belief.apply(Changed(replace(taker(taken, cpu=4000), uid=first.uid)))
    scene.tell(shown)
    assert not scene.ahead._sent.promised.of("cpu", scene.belief.cluster.snapshot.layout)[int(taken == N2)]


@pytest.mark.parametrize("is_written", [False, True])
async def test_of_a_pod_that_was_not_bound_in_time_nothing_is_taken(*, is_written: bool) -> None:
    scene, (first, second, third) = equipped(*claims(3)), roomy(3)
    node_name = await answered(scene, first)
    await answered(scene, second)
    if is_written:
        scene.tell(device_claim(first, node_name))
    scene.belief.ledger.tell(first.uid, Event.EXPIRED)
    scene.appear(third)
    # Of who has its devices the scheduler is on its way.
    assert await scene.settle() == ([] if is_written else [("p002", node_name)])


def device_claim(subject: Pod, node_name: NodeName) -> ResourceClaim:
    """Return the claim of a pod, with a device."""
    name = subject.claims[0].claim_name
    assert name is not None
    return given(claim(name, version=2), device(node_name, 0), by=subject)


@pytest.mark.parametrize("why", ["nobody-is-sent", "gone"])
def test_an_answer_that_no_round_would_forget_is_not_remembered(why: str) -> None:
    scene, (one,) = equipped(*claims(1)), roomy(1)
    scene.tell(one)
    if why == "gone":
        scene.belief.apply(Gone(Pod, one.key))
    else:
        scene.ahead.sending = Sending("never", is_known=True)
    scene.ahead.answered(one, N1)
    assert not scene.ahead._sent._answered


async def test_whoever_sends_ahead_finds_out_first_whether_that_is_worth_it() -> None:
    scene, (one,) = Scene(*claims(1)), pods(1)
    scene.ahead.sending = Sending("always")
    assert await scene.settle() == []
    scene.appear(one)
    assert await scene.settle() == [("p000", N1)]


async def test_of_a_pod_that_is_asked_about_anew_nothing_is_taken() -> None:
    scene, (one,) = equipped(*claims(1)), roomy(1)
    node_name = await answered(scene, one)
    scene.ahead.asked(one, ())
    assert not scene.ahead._sent.promised.of("cpu", scene.belief.cluster.snapshot.layout)[int(node_name == N2)]


async def test_who_is_where_who_was_answered_takes_the_room_is_sent_elsewhere() -> None:
    scene, (first, second) = Scene(*claims(2)), roomy(2)
    scene.tell(node("n1", {"cpu": 8}), replace(node("n2", {"cpu": 8}), is_unschedulable=True))
    assert await answered(scene, first) == N1
    scene.appear(second)
    assert await scene.settle() == [("p001", N1)]
    scene.tell(node("n1", {"cpu": 4}), node("n2", {"cpu": 8}))
    assert await scene.settle() == [("p001", N2)]


async def test_a_scheduler_that_heeds_no_nominations_is_sent_nobody_any_more() -> None:
    scene = Scene(*claims(ENOUGH + 1), devices=ENOUGH)
    scene.appear(*pods(ENOUGH))
    for name, node_name in await scene.settle():
        scene.ahead.asked(replace(pod(name), nominated_node=node_name), names("n1", "n2"))
    scene.appear(pods(ENOUGH + 1)[-1])
    assert await scene.settle() == []


@pytest.mark.parametrize("asked", [["n3"], ["n3", "n4"], []], ids=["another", "others", "preemption"])
async def test_a_scheduler_whose_plugins_refuse_the_nodes_is_sent_more_all_the_same(asked: list[str]) -> None:
    scene = Scene(*claims(ENOUGH + 1), devices=ENOUGH)
    scene.appear(*pods(ENOUGH))
    for name, node_name in await scene.settle():
        scene.ahead.asked(replace(pod(name), nominated_node=node_name), asked)
    assert scene.guessed("wrong", ENOUGH)
    scene.appear(pods(ENOUGH + 1)[-1])
    assert [name for name, _ in await scene.settle()] == [f"p{ENOUGH:03}"]


async def test_a_scheduler_that_hears_late_is_sent_more_all_the_same() -> None:
    scene = Scene(*claims(ENOUGH + 1), devices=ENOUGH)
    scene.appear(*pods(ENOUGH))
    for name, _ in await scene.settle():
        scene.ahead.asked(pod(name), names("n1", "n2"))
    scene.appear(pods(ENOUGH + 1)[-1])
    assert [name for name, _ in await scene.settle()] == [f"p{ENOUGH:03}"]


async def test_who_is_asked_about_at_once_is_planned_and_not_written_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.service.sending.FEWEST_NODES", 1)
    scene = Scene(*claims(FEWEST_BEFORE + 1), devices=FEWEST_BEFORE + 1)
    scene.ahead.sending = Sending("auto", is_known=True)
    every = pods(FEWEST_BEFORE + 1)
    scene.appear(*every)
    assert [name for name, _ in await scene.settle()] == [every[-1].key.name]
    assert all(scene.belief.ledger.of_pod(item.uid) for item in every)


async def test_who_has_heard_of_another_node_is_told_though_it_is_asked_about_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("extender.service.sending.FEWEST_NODES", 1)
    every = pods(FEWEST_BEFORE + 1)
    scene = Scene(*claims(len(every)), replace(node("n2"), is_unschedulable=True), devices=len(every))
    scene.ahead.sending = Sending("auto", is_known=True)
    scene.appear(*every)
    last = every[-1].key.name
    assert await scene.settle() == [(last, N1)]
    scene.ahead.asked(every[0], ())
    scene.tell(node("n2"), replace(node("n1"), is_unschedulable=True))
    assert await scene.settle() == [(last, N2)]


@pytest.mark.parametrize(
    ("minor", "said"),
    [
        (MINORS[0], []),
        (99, ["Kubernetes 1.99 was not tried"]),
        (None, ["the API server does not tell its version"]),
    ],
)
async def test_pods_are_sent_ahead_only_where_that_was_seen_to_work(
    minor: int | None, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def told() -> int | None:
        return minor

    sending = Sending("auto", told)
    await sending.find_out()
    assert sending.pays(10_000) is (not said)
    assert not sending.pays(10)
    assert [getattr(record, keys.REASON) for record in caplog.records] == said
