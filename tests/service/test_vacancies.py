"""Who waits for room that was kept in vain is tried once its pod is bound elsewhere: kube-scheduler tells nobody."""

import asyncio
from dataclasses import replace

import pytest

from extender.kube.outcome import RequestOutcome, Unknown
from extender.model.change import Changed, Gone, Listed
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey
from extender.model.node import Node, Pod, PodClaim
from extender.model.terms import Terms
from extender.scheduling.endings import Bound, NotBound, Order, Result
from extender.scheduling.needs import Needs, Unplaceable, needs_of
from extender.service import vacancies
from extender.service.habits import Habits
from extender.service.vacancies import AGAIN, AGAIN_S
from extender.service.waits import NUDGE_S
from extender.state.belief import Belief
from tests.scheduling.cast import belief_of, node, pod
from tests.scheduling.stage import N1, N2
from tests.service.test_attention import Wakes, attention_of

FULL = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector."
FIRST = replace(pod("first", priority=5), nominated_node=N1)


def waiter(name: str = "second", priority: int = 0, cpu: int = 4000, refusal: str = FULL) -> Pod:
    return replace(pod(name, priority=priority), refusal=refusal, terms=Terms(amounts=(("cpu", cpu),)))


class Here:
    """FIRST is nominated for n1, and *waiters* were refused for that."""

    def __init__(self, *waiters: Pod, first: Pod = FIRST, nominates: bool = True) -> None:
        self.now, self.wakes, self.taken_back = 0.0, Wakes(), list[str]()
        self.belief = belief_of(node("n1", {"cpu": 4}), node("n2", {"cpu": 4}), first, *waiters)
        self.belief.apply(Listed(Footprint, ()))
        self.attention = attention_of(self.belief, self.wakes, 0.0)
        self.attention.wakes.nominates = nominates
        self.attention.expiry.unasked = self.taken_back.append
        self.first = first

    async def bound(self, on: NodeName, result: Result | None = None) -> list[tuple[str, str]]:
        """Have FIRST bound *on* a node; return who is woken for which."""
        self.attention.offered(self.first)
        self.attention.waits.ended(Order(self.first.key, self.first.uid, on), result or Bound(self.first))
        await self.pass_time(NUDGE_S)
        return self.wakes.woken

    async def pass_time(self, seconds: float) -> None:
        self.now += seconds
        await self.attention.waits.round(lambda: self.now)


async def test_who_waits_for_room_that_was_kept_in_vain_is_nominated_and_that_is_taken_back() -> None:
    here, second = Here(waiter()), waiter()
    assert await here.bound(N2) == [("second", "n1")]
    assert here.taken_back == []
    await here.pass_time(NUDGE_S)
    await here.pass_time(NUDGE_S)
    assert here.taken_back == [second.uid]
    await here.pass_time(AGAIN_S)
    assert here.wakes.woken == [("second", "n1")]


async def test_of_several_the_most_important_is_nominated_of_whose_taking_back_the_others_hear() -> None:
    here = Here(waiter("low"), waiter("high", 5), waiter("higher", 6))
    assert await here.bound(N2) == [("high", "n1")]


@pytest.mark.parametrize(
    "other",
    [
        waiter(cpu=5000),
        waiter(refusal="0/2 nodes are available: 2 too few matching devices are free"),
        waiter(refusal=""),
        replace(waiter(), nominated_node=N1),
        replace(waiter(), is_deleting=True),
        waiter(priority=6),
    ],
)
async def test_whom_that_room_does_not_help_is_left_alone(other: Pod) -> None:
    here = Here(other)
    assert await here.bound(N2) == []
    assert here.wakes.touched == []


async def test_who_is_woken_anyway_is_left_alone() -> None:
    here, second = Here(waiter()), waiter()
    here.attention.waker.put(second.uid)
    assert await here.bound(N2) == []


async def test_of_those_who_cannot_be_placed_at_all_none_takes_the_turn_of_the_next() -> None:
    nobodys = replace(waiter("high", 5), claims=(PodClaim(name="gpu", claim_name="not-made-yet"),))
    assert await Here(waiter(), nobodys).bound(N2) == [("second", "n1")]


async def test_of_several_who_are_bound_elsewhere_it_counts_who_was_the_most_important() -> None:
    for priorities in ((5, 3), (3, 5)):
        here = Here(waiter("high", 4))
        for priority in priorities:
            first = replace(pod(f"first-{priority}", priority=priority), nominated_node=N1)
            here.attention.offered(first)
            here.attention.waits.ended(Order(first.key, first.uid, N2), Bound(first))
        await here.pass_time(NUDGE_S)
        assert here.wakes.woken == [("high", "n1")]


async def test_where_the_room_is_taken_or_kept_still_nobody_is_nominated() -> None:
    assert await Here(waiter()).bound(N1) == []
    assert await Here(waiter()).bound(N2, NotBound("no")) == []
    assert await Here(waiter(), first=replace(FIRST, nominated_node=None)).bound(N2) == []
    taken_back = Here(waiter())
    taken_back.attention.offered(FIRST)
    taken_back.first = replace(FIRST, nominated_node=None)
    assert await taken_back.bound(N2) == []
    gone = Here(waiter())
    gone.belief.apply(Gone(Node, ObjectKey("", N1)))
    assert await gone.bound(N2) == []
    for node_taken, woken in ((N1, []), (N2, [("second", "n1")])):
        taken, on = Here(waiter()), replace(pod("other"), node_name=node_taken)
        footprint = Footprint(key=on.key, uid=on.uid, node=node_taken, amounts=(("cpu", 1000),))
        taken.belief.apply(Changed(footprint))
        assert await taken.bound(N2) == woken


async def test_who_is_offered_a_node_meanwhile_keeps_it() -> None:
    here, second = Here(waiter()), waiter()
    await here.bound(N2)
    here.attention.offered(second)
    await here.pass_time(NUDGE_S)
    await here.pass_time(NUDGE_S)
    assert here.taken_back == []


async def test_where_pods_are_not_nominated_nobody_is_and_nothing_is_remembered() -> None:
    assert Habits().nominates
    here = Here(waiter(), nominates=False)
    assert await here.bound(N2) == []
    assert here.wakes.touched == []


async def test_of_those_who_ask_the_same_one_is_looked_at_and_after_each_others_have_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked, turns = list[str](), 0

    def needs(item: Pod, belief: Belief) -> Needs | Unplaceable:
        looked.append(item.key.name)
        return needs_of(item, belief)

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(vacancies, "needs_of", needs)
    same = [waiter(f"same-{number}", cpu=5000) for number in range(20)]
    here = Here(*same, *(waiter(f"w-{number}", cpu=6000 + number) for number in range(20)), waiter("a-small"))
    beside = asyncio.create_task(other())
    try:
        assert await here.bound(N2) == [("a-small", "n1")]
    finally:
        beside.cancel()
    assert len(looked) == 1 + 20 + 1
    assert turns > 20


class Unheard(Here):
    """Of no nomination there is an answer."""

    def __init__(self, *waiters: Pod) -> None:
        super().__init__(*waiters)
        self.asked = list[str]()
        self.wakes.nominate = self.silent  # type: ignore[method-assign]  # whoever asks is not answered

    async def silent(self, pod: Pod, node: NodeName) -> RequestOutcome:
        self.asked.append(f"{pod.key.name} {node}")
        return Unknown("no answer")


async def test_where_there_is_no_answer_somebody_is_nominated_again_some_time_later_and_not_for_ever() -> None:
    here = Unheard(waiter())
    await here.bound(N2)
    for tries in range(1, AGAIN + 1):
        await here.pass_time(AGAIN_S - NUDGE_S)
        assert here.asked == ["second n1"] * tries
        await here.pass_time(NUDGE_S)
    for _ in range(10):
        await here.pass_time(AGAIN_S)
    assert here.asked == ["second n1"] * (1 + AGAIN)


async def test_a_nomination_that_has_landed_without_an_answer_is_taken_back() -> None:
    here = Unheard(waiter())
    await here.bound(N2)
    here.belief.apply(Changed(replace(waiter(), nominated_node=N1)))
    for _ in range(2):
        await here.pass_time(NUDGE_S)
    assert here.taken_back == [waiter().uid]
    await here.pass_time(AGAIN_S)
    assert here.asked == ["second n1"]


async def test_a_nomination_whose_answer_was_slow_is_taken_back_too() -> None:
    here = Here(waiter())
    here.attention._turns.patience_s = -1.0
    assert await here.bound(N2) == [("second", "n1")]
    for _ in range(2):
        await here.pass_time(NUDGE_S)
    assert here.taken_back == [waiter().uid]


async def test_where_there_is_no_answer_the_other_nodes_have_the_next_round(monkeypatch: pytest.MonkeyPatch) -> None:
    here, unheard = Here(waiter()), list[str]()

    async def silent(_pod: Pod, on: NodeName) -> RequestOutcome:
        unheard.append(on)
        return Unknown("no answer")

    monkeypatch.setattr(here.wakes, "nominate", silent)
    for number, on in enumerate((N1, N2)):
        other = replace(pod(f"other-{number}", priority=5), nominated_node=on)
        here.attention.offered(other)
        here.attention.waits.ended(Order(other.key, other.uid, NodeName("n3")), Bound(other))
    for nodes in (["n1"], ["n1", "n2"], ["n1", "n2"]):
        await here.pass_time(NUDGE_S)
        assert unheard == nodes
