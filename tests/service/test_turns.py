"""Whom the API server has no answer for holds up nobody else."""

import asyncio
from collections.abc import Generator
from dataclasses import replace

import pytest

from extender.kube.answer import Unanswered
from extender.kube.outcome import RequestOutcome, Succeeded, Unknown, outcome_of
from extender.model.change import Changed
from extender.model.claim import ResourceClaim
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.endings import NotBound, Order
from extender.scheduling.planner import Offer
from extender.scheduling.steps import Outcome, Refusal, Refused, Step, TouchPod
from extender.scheduling.steps import Unknown as NoAnswer
from extender.scheduling.vocabulary import TEXTS, Word
from extender.scheduling.waking import Waker
from extender.service.attention import TICK_S, Attention
from extender.service.habits import Habits
from extender.service.turns import LAPSE_S, Turns, apart
from extender.state.belief import READY_WITHIN_S
from extender.telemetry.metrics import Metrics
from tests.scheduling.cast import belief_of, claim, device, gpus, held, node, planner_of, pod
from tests.scheduling.stage import N1, POD
from tests.scheduling.test_r7_conditions import START, waiting

ANSWER_S = 10.0
HUNG = "hung"
SILENCE: RequestOutcome = Unknown("no answer")
UNSENT: RequestOutcome = outcome_of(Unanswered(was_sent=False, why="no connection"))
SILENCES = pytest.mark.parametrize("silence", [SILENCE, UNSENT], ids=["unanswered", "unsent"])


class Hanging:
    """Stands in for writes and the carrier, and for a clock: for pods of one namespace there is no answer in time."""

    def __init__(self) -> None:
        self.now, self.hung, self.outcome = 1000.0, {HUNG}, SILENCE
        self.answer_s = ANSWER_S
        self.told: list[str] = []

    async def annotate_pod(self, pod: Pod, annotation: str, value: str) -> RequestOutcome:
        del annotation, value
        return self.answer(pod)

    async def nominate(self, pod: Pod, node: NodeName) -> RequestOutcome:
        del node
        return self.answer(pod)

    async def carry(self, work: Generator[Step, Outcome, object], _deadline: float) -> object:
        try:
            step = next(work)
            while True:
                assert isinstance(step, TouchPod)
                is_done = isinstance(self.answer(step.pod), Succeeded)
                step = work.send(Refused(Refusal.REJECTED) if is_done else NoAnswer())
        except StopIteration as end:
            return end.value

    def answer(self, pod: Pod) -> RequestOutcome:
        self.told.append(pod.key.name)
        if pod.key.namespace not in self.hung:
            return Succeeded({})
        self.now += self.answer_s
        return self.outcome

    async def after(self, work: Attention) -> list[str]:
        """Do a round; return for whom something was written."""
        before = len(self.told)
        self.now += TICK_S
        await work.round()
        return self.told[before:]


def moved(item: Pod) -> Pod:
    return replace(item, key=ObjectKey(HUNG, item.key.name))


def there(item: ResourceClaim) -> ResourceClaim:
    return replace(item, key=ObjectKey(HUNG, item.key.name))


def here(*nouns: Pod | ResourceClaim, devices: int = 8) -> tuple[Attention, Hanging]:
    api = Hanging()
    belief = belief_of(node("n1"), gpus("n1", devices), *nouns)
    parts = belief, Waker(belief, planner_of(belief)), api, api, Metrics()
    work = Attention(*parts, Habits(wakes_per_second=1e9), lambda: api.now, lambda: START)  # type: ignore[arg-type]  # only what is used
    return work, api


@pytest.mark.parametrize("answer_s", [ANSWER_S, 0.0])
async def test_one_write_without_an_answer_is_all_that_others_wait_for_where_claims_are_freed(answer_s: float) -> None:
    stuck = [moved(pod(f"p{number}", f"c{number}")) for number in range(3)]
    claims = [there(held(claim(f"c{number}"), device("n1", number), by=item)) for number, item in enumerate(stuck)]
    late = pod("late", "c")
    work, api = here(*stuck, *claims, late, held(claim("c"), device("n1", 5), by=late))
    work._refusals.update({item.uid: 3 for item in (*stuck, late)})
    api.answer_s = answer_s
    assert await api.after(work) == ["p0"]
    # What is of another namespace goes before, and so does whoever had no turn yet.
    assert await api.after(work) == ["late", "p1"]
    assert await api.after(work) == ["late", "p2"]


async def test_writes_that_take_long_hold_up_others_no_longer_than_those_without_an_answer() -> None:
    stuck = [moved(pod(f"p{number}")) for number in range(3)]
    work, api = here(*stuck, pod("late"))
    api.outcome = Succeeded({})
    for item in (*stuck, pod("late")):
        work.waits.postponed(item.uid, 0.0)
    assert [await api.after(work) for _ in range(3)] == [["p0"], ["late", "p1"], ["p2"]]


async def test_pods_that_are_steered_wait_for_one_write_without_an_answer_and_are_not_forgotten() -> None:
    stuck = [moved(pod(f"p{number}", f"c{number}")) for number in range(3)]
    work, api = here(*stuck, *(there(claim(f"c{number}")) for number in range(3)), pod("late", "c"), claim("c"))
    work._steers |= dict.fromkeys((item.uid for item in (*stuck, pod("late"))), False)
    assert await api.after(work) == ["p0"]
    assert await api.after(work) == ["late", "p1"]
    api.hung.clear()
    assert await api.after(work) == ["p2", "p0", "p1"]


@SILENCES
async def test_what_was_promised_to_a_pod_that_nobody_could_be_told_of_is_free_for_others(
    silence: RequestOutcome,
) -> None:
    work, api = here(moved(pod("p", "c")), there(claim("c")), pod("late", "d"), claim("d"), devices=1)
    api.outcome = silence
    work._steers |= {pod("p").uid: False, pod("late").uid: False}
    assert await api.after(work) == ["p"]
    assert await api.after(work) == ["late"]


async def test_pods_that_fit_now_are_woken_before_those_of_a_namespace_without_answers() -> None:
    stuck = [replace(moved(pod(f"p{number}", f"c{number}")), priority=9) for number in range(3)]
    late = pod("late", "c")
    work, api = here(*stuck, *(there(claim(f"c{number}")) for number in range(3)), late, claim("c"))
    for item in (*stuck, late):
        work.waker.put(item.uid)
    assert await api.after(work) == ["p0"]
    assert await api.after(work) == ["late", "p1"]


@SILENCES
async def test_a_wake_without_an_answer_is_tried_again_however_often_that_was_in_vain(silence: RequestOutcome) -> None:
    stuck = moved(pod("p", "c"))
    work, api = here(stuck, there(claim("c")))
    api.outcome = silence
    work.waker.put(stuck.uid)
    # In every other round it has had its turn in the last one.
    assert [await api.after(work) for _ in range(12)] == [["p"], []] * 6


async def test_an_important_pod_comes_first_again_soon_after_there_was_no_answer_for_its_namespace() -> None:
    important = replace(moved(pod("p", "c")), priority=9)
    work, api = here(important, there(claim("c")), pod("late", "d"), claim("d"), devices=1)
    work.waker.slow[HUNG] = api.now
    api.hung.clear()
    api.now += LAPSE_S
    for item in (important, pod("late")):
        work.waker.put(item.uid)
    assert await api.after(work) == ["p"]


async def test_in_one_round_a_namespace_holds_up_others_once() -> None:
    stuck = [moved(pod(f"p{number}", f"c{number}")) for number in range(3)]
    work, api = here(*stuck, *(there(claim(f"c{number}")) for number in range(3)))
    work._steers[stuck[0].uid] = False
    work.waits.postponed(stuck[1].uid, 0.0)
    work.waker.put(stuck[2].uid)
    assert await api.after(work) == ["p0"]


@SILENCES
async def test_pods_whose_time_has_come_are_tried_again_until_there_is_an_answer(silence: RequestOutcome) -> None:
    stuck = [moved(pod(f"p{number}")) for number in range(2)]
    work, api = here(*stuck, pod("late"))
    api.outcome = silence
    for item in (*stuck, pod("late")):
        work.waits.postponed(item.uid, 0.0)
    assert [await api.after(work) for _ in range(2)] == [["p0"], ["late", "p1"]]
    api.hung.clear()
    assert await api.after(work) == ["p0", "p1"]
    assert await api.after(work) == []


@SILENCES
async def test_a_pod_whose_devices_are_ready_is_woken_until_there_is_an_answer(silence: RequestOutcome) -> None:
    world, (work, api) = waiting(), here()
    api.outcome = silence
    work.waits.belief = world.belief
    work.waits.wall = lambda: START + READY_WITHIN_S + 1
    api.hung.add(POD.key.namespace)
    work.waits.ended(Order(POD.key, POD.uid, N1), NotBound("waiting", is_waiting=True))
    assert [await api.after(work) for _ in range(2)] == [["p"], ["p"]]
    api.hung.clear()
    assert [await api.after(work) for _ in range(2)] == [["p"], []]


async def test_a_namespace_that_had_no_answer_when_our_last_term_ended_is_looked_after_in_the_next() -> None:
    work, api = here(moved(pod("stuck")), devices=1)
    work.waits.postponed(moved(pod("stuck")).uid, 0.0)
    assert await api.after(work) == ["stuck"]
    refused = replace(moved(pod("late", "c")), refusal=TEXTS[Word.NO_DEVICES])
    for noun in (refused, there(claim("c"))):
        work.belief.apply(Changed(noun))
    assert await work.begin()
    assert refused.uid in work.waker


async def test_what_goes_wrong_with_one_pod_is_told_and_keeps_no_other_from_its_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pods, done = [pod("a"), pod("b")], list[str]()
    turns = Turns(belief_of(*pods), lambda: 0.0, 1.0)
    turns.begin()

    async def work(uid: Uid) -> bool:
        if uid != pods[1].uid:
            raise ValueError
        done.append(uid)
        return True

    await turns.each([Uid("unknown"), *(item.uid for item in pods)], work)
    assert done == [pods[1].uid]
    with apart("c"):
        raise ValueError
    assert [record.message for record in caplog.records] == ["looking after a pod failed"] * 3
    assert [vars(record)["pod"] for record in caplog.records] == ["unknown", str(pods[0].key), "c"]


@pytest.mark.parametrize(("is_answered", "is_slow"), [(None, True), (True, False)], ids=["nothing asked", "answered"])
async def test_a_namespace_comes_last_until_it_answers(*, is_answered: bool | None, is_slow: bool) -> None:
    turns = Turns(belief_of(moved(pod("p"))), lambda: 0.0, 1.0, {HUNG: 0.0})

    async def work() -> bool | None:
        return is_answered

    assert not await turns.holds_up(pod("p").uid, work())
    assert (HUNG in turns.slow) is is_slow


async def test_offers_end_in_time_while_a_write_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.service.attention.TICK_S", 0.01)
    offered, other = pod("offered", "c"), pod("other", "d")
    work, api = here(offered, claim("c"), other, claim("d"))
    belief, begun = work.belief, asyncio.Event()

    async def hang(*_: object, **__: object) -> RequestOutcome:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(api, "nominate", hang)
    assert isinstance(work.waker.planner.plan(offered, None, api.now), Offer)
    running = asyncio.create_task(work.run(lambda: work._steers.update({other.uid: False}), lambda: True))
    await begun.wait()
    api.now += work.habits.offer_s + 1
    async with asyncio.timeout(10):
        while belief.ledger.of_pod(offered.uid):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)
    running.cancel()
