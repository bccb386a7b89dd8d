"""Nobody is evicted for a pod that has but to wait, and nobody is left to wait whom nobody would wake."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from extender.allocation.snapshot import Snapshot
from extender.model.change import Changed, Gone, Listed
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Node, Pod
from extender.model.terms import Terms
from extender.scheduling.endings import NotBound, Order
from extender.scheduling.needs import Needs
from extender.scheduling.planner import STEERS, Offer
from extender.scheduling.rest import Rest
from extender.scheduling.veto import helped
from extender.service import preemption
from extender.service.attention import TICK_S
from extender.service.evictions import LASTING_S, PATIENCE_S, SHOWN_S
from extender.service.habits import Habits
from extender.service.preemption import ATTEMPT_S
from extender.service.waits import NUDGE_S, UNASKED
from extender.state.belief import READY_WITHIN_S
from extender.state.ledger import Event
from extender.web.verbs import Victims
from tests.scheduling.cast import belief_of, claim, consumer, device, gpus, held, names, node, pod
from tests.scheduling.stage import N1, N2, OTHER, POD, A
from tests.scheduling.test_counted import taker
from tests.scheduling.test_r7_conditions import START, reported, waiting
from tests.service.test_answers import answers
from tests.service.test_attention import Steps, Wakes, attention_of

HOLDER, HIGH = pod("low", "of-low"), pod("high", "c", priority=10)
LOW = taker("n1", gpu=0)
ATTEMPTS = Habits().attempts


class MadeReady:
    """POD, whose device on n1 is made ready still, is refused there: LOW, who is less important, has taken the room.

    *is_elsewhere*: whether n2, which has room, has a device for it.
    """

    def __init__(self, *, is_elsewhere: bool = False) -> None:
        self.now, self.wakes, self.world = 0.0, Wakes(), waiting()
        self.belief = self.world.belief
        if not is_elsewhere:
            self.belief.apply(Changed(held(claim("taken", version=7), device("n2", 0), by=pod("taker", "taken"))))
        self.belief.apply(Listed(Footprint, (LOW,)))
        self.attention = attention_of(self.belief, self.wakes, START + 1, Steps(self.world))
        self.attention.now = lambda: self.now
        self.answers = answers(self.belief, self.attention)
        journal: Any = SimpleNamespace(planned=lambda _pod, _plan: None)
        self.answers.journal, self.answers.evictions.now = journal, lambda: self.now
        self.attention.heed(self.answers.evictions)

    @property
    def pod(self) -> Pod:
        return self.belief.pods.with_uid(POD.uid) or POD

    @property
    def has_device(self) -> bool:
        return self.world.server.claims[A].allocation is not None

    def is_refused(self, *nodes: NodeName, subject: Pod | None = None) -> bool:
        return not self.answers.filter(subject or self.pod, nodes or (N2,)).names

    def may_go(self) -> bool:
        answered = self.answers.preempt(self.pod, {"n1": Victims((LOW.uid,))})
        assert isinstance(answered, dict)
        return bool(answered)

    def nominated(self, node: NodeName | None) -> None:
        self.world.server.put(replace(self.pod, nominated_node=node))
        self.world.server.deliver(self.belief)

    async def pass_ticks(self, count: int) -> None:
        for _ in range(count):
            self.now += TICK_S
            await self.attention._free()
            self.world.server.deliver(self.belief)


async def test_nobody_goes_for_a_pod_whose_device_is_made_ready_before_it_is() -> None:
    here = MadeReady()
    assert here.is_refused()
    assert not here.may_go()
    await here.attention.waits.ready()
    assert not here.wakes.woken
    reported(here.world, "attached")
    await here.attention.waits.ready()
    assert here.wakes.woken == [("p", "n1")]
    assert here.is_refused()
    assert here.may_go()


async def test_the_nomination_of_whom_filter_has_refused_is_not_taken_back() -> None:
    here, taken_back = MadeReady(), list[str]()
    here.attention.expiry.unasked = taken_back.append
    assert here.is_refused()
    assert not here.may_go()
    reported(here.world, "attached")
    for _ in range(3):
        here.now += NUDGE_S
        await here.attention.waits.round(lambda: here.now)
    assert (here.wakes.woken, taken_back) == ([("p", "n1")], [])


async def test_a_pod_that_is_left_to_wait_is_woken_although_no_binding_of_it_is_remembered() -> None:
    here = MadeReady()
    assert here.is_refused()
    assert not here.may_go()
    here.attention.wall = here.attention.waits.wall = lambda: START + READY_WITHIN_S + 1
    await here.attention.waits.ready()
    assert here.wakes.woken == [("p", "n1")]


def test_whom_other_plugins_alone_have_refused_nobody_could_wake_and_others_go_for_it_at_once() -> None:
    assert MadeReady().may_go()


class Full(MadeReady):
    """n1 has no CPU left: kube-scheduler has no need to ask filter to refuse the pod."""

    def __init__(self, *, nominates: bool = True) -> None:
        super().__init__()
        self.taken_back: list[str] = []
        self.attention.habits = Habits(nominates=nominates)
        self.attention.expiry.unasked = self.taken_back.append
        self.belief.apply(Changed(node("n1", {"cpu": 4})))
        self.belief.apply(Listed(Footprint, (replace(LOW, amounts=(("cpu", 4000),)),)))
        self.world.server.put(replace(self.pod, terms=Terms(amounts=(("cpu", 1000),))))
        self.world.server.deliver(self.belief)

    async def pass_time(self, seconds: float) -> None:
        self.now += seconds
        await self.attention.waits.round(lambda: self.now)


async def test_whom_a_full_node_alone_keeps_away_is_woken_by_a_nomination_that_is_taken_back() -> None:
    here = Full()
    assert not here.may_go()
    await here.pass_time(1.0)
    assert not here.wakes.woken
    reported(here.world, "attached")
    await here.pass_time(1.0)
    assert (here.wakes.woken, here.taken_back) == ([("p", "n1")], [])
    await here.pass_time(NUDGE_S)
    assert here.taken_back == [POD.uid]
    assert here.may_go()
    await here.pass_time(NUDGE_S)
    assert here.taken_back == [POD.uid]


def test_a_node_with_just_as_much_room_as_is_needed_keeps_nobody_away() -> None:
    here = Full()
    here.belief.apply(Listed(Footprint, (replace(LOW, amounts=(("cpu", 3000),)),)))
    assert here.may_go()


def test_room_that_is_not_known_keeps_nobody_away() -> None:
    here = Full()
    here.world.server.put(replace(here.pod, terms=Terms(amounts=(("example.com/unknown", 1),))))
    here.world.server.deliver(here.belief)
    assert here.may_go()
    here.belief.apply(Gone(Node, ObjectKey("", N1)))
    assert not here.answers.preemption._is_full(N1, here.pod)


async def test_who_was_let_wait_behind_a_full_node_is_woken_after_a_restart_too() -> None:
    here = Full()
    here.attention._remember(POD.uid)
    await here.pass_time(1.0)
    assert not here.wakes.woken
    reported(here.world, "attached")
    for _ in range(2):
        await here.pass_time(NUDGE_S)
    assert (here.wakes.woken, here.taken_back) == ([("p", "n1")], [POD.uid])


async def test_who_was_let_wait_behind_a_full_node_is_woken_even_if_its_devices_are_taken_from_it() -> None:
    here = Full()
    assert not here.may_go()
    here.world.server.put(replace(here.world.server.claims[A], allocation=None, reserved_for=()))
    here.world.server.deliver(here.belief)
    for _ in range(2):
        await here.pass_time(NUDGE_S)
    assert (here.wakes.woken, here.taken_back) == ([("p", "n1")], [POD.uid])


async def test_who_was_offered_a_node_meanwhile_keeps_its_nomination() -> None:
    here = Full()
    assert not here.may_go()
    reported(here.world, "attached")
    await here.pass_time(1.0)
    assert not here.is_refused(N1)
    await here.pass_time(NUDGE_S)
    assert here.taken_back == []


def test_where_pods_are_not_nominated_others_go_for_whom_a_full_node_alone_keeps_away() -> None:
    assert Full(nominates=False).may_go()


def test_a_refusal_counts_in_its_own_attempt_alone() -> None:
    here = MadeReady()
    assert here.is_refused()
    here.now = ATTEMPT_S + 0.1
    assert here.may_go()
    assert here.is_refused()
    here.belief.apply(Changed(claim("e")))
    assert here.is_refused(N2, subject=pod("other", "e"))
    assert here.may_go()
    assert here.is_refused()
    assert not here.is_refused(N2, subject=pod("another"))
    assert here.may_go()


def test_an_offer_ends_what_was_refused_before() -> None:
    here = MadeReady()
    assert here.is_refused()
    assert not here.is_refused(N1)
    assert here.may_go()


async def test_what_is_made_ready_is_given_up_where_there_is_something_elsewhere() -> None:
    here = MadeReady(is_elsewhere=True)
    assert here.is_refused()
    assert not here.may_go()
    await here.pass_ticks(ATTEMPTS)
    assert not here.has_device
    assert not here.is_refused()


async def test_what_is_made_ready_is_kept_where_there_is_nothing_elsewhere() -> None:
    here = MadeReady()
    assert here.is_refused()
    await here.pass_ticks(3 * ATTEMPTS)
    assert here.has_device
    here.belief.apply(Changed(claim("taken", version=8)))
    await here.pass_ticks(ATTEMPTS)
    assert not here.has_device


async def test_the_scheduler_is_answered_between_two_pods_that_may_have_to_stay() -> None:
    here, second = MadeReady(), pod("second", "e")
    allocation = here.world.server.claims[A].allocation
    assert allocation is not None
    items = (replace(allocation.devices[0], device=device("n1", 1)),)
    waits = held(claim("e"), device("n1", 1), by=second)
    here.belief.apply(Changed(replace(waits, allocation=replace(allocation, devices=items))))
    here.belief.apply(Changed(second))
    happened = list[str]()

    def looked(needs: Needs, _claims: object) -> bool:
        happened.append(needs.pod.key.name)
        return False

    here.attention._freeing.is_of_use = looked
    here.attention._refusals.update({POD.uid: ATTEMPTS, second.uid: ATTEMPTS})

    async def answered() -> None:
        while "second" not in happened:
            happened.append("answered")
            await asyncio.sleep(0)

    await asyncio.gather(here.pass_ticks(1), answered())
    assert "answered" in happened[happened.index("p") : happened.index("second")]


async def test_what_is_ready_is_not_given_up_before_others_could_be_evicted_there() -> None:
    here = MadeReady()
    assert here.is_refused()
    await here.pass_ticks(ATTEMPTS - 1)
    reported(here.world, "attached")
    await here.attention.waits.ready()
    assert here.is_refused()
    await here.pass_ticks(1)
    assert here.has_device
    await here.pass_ticks(ATTEMPTS)
    assert not here.has_device


async def test_what_is_ready_is_not_given_up_as_long_as_the_scheduler_may_be_about_to_ask() -> None:
    """It backs off for ten seconds from one attempt to the next."""
    here = MadeReady()
    assert here.is_refused()
    assert not here.may_go()
    await here.pass_ticks(ATTEMPTS)
    reported(here.world, "attached")
    await here.attention.waits.ready()
    await here.pass_ticks(UNASKED)
    assert here.has_device
    await here.pass_ticks(ATTEMPTS)
    assert not here.has_device


async def test_refusals_of_before_what_is_made_ready_was_ready_do_not_count() -> None:
    here = MadeReady(is_elsewhere=True)
    here.attention.waits.ended(Order(POD.key, POD.uid, N1), NotBound("waiting", is_waiting=True))
    assert here.is_refused()
    await here.pass_ticks(ATTEMPTS - 2)
    reported(here.world, "attached")
    await here.attention.waits.ready()
    assert here.is_refused()
    await here.pass_ticks(1)
    assert here.has_device


async def test_a_claim_is_kept_as_long_as_those_end_who_were_evicted_on_its_node() -> None:
    here = MadeReady(is_elsewhere=True)
    reported(here.world, "attached")
    assert here.is_refused()
    assert here.may_go()
    here.nominated(N1)
    await here.pass_ticks(3 * ATTEMPTS)
    assert here.is_refused()
    await here.pass_ticks(ATTEMPTS)
    assert here.has_device
    here.belief.apply(Listed(Footprint, ()))
    await here.pass_ticks(ATTEMPTS - 1)
    assert here.has_device
    await here.pass_ticks(1)
    assert not here.has_device


@pytest.mark.parametrize("why", ["sent elsewhere", "stuck", "failed"])
async def test_a_claim_is_not_kept_for_those_who_go_in_vain(why: str) -> None:
    here = MadeReady(is_elsewhere=True)
    reported(here.world, "attached")
    assert here.is_refused()
    assert here.may_go()
    here.nominated(N2 if why == "sent elsewhere" else N1)
    if why == "stuck":
        here.now += LASTING_S + 1
    if why == "failed":
        reported(here.world, "broken")
    await here.pass_ticks(ATTEMPTS)
    assert not here.has_device


async def test_where_bound_pods_are_not_known_refusals_count_as_ever() -> None:
    here = MadeReady(is_elsewhere=True)
    here.belief.apply(Listed(Footprint, ()))
    reported(here.world, "attached")
    assert here.is_refused()
    assert here.may_go()
    here.nominated(N1)
    await here.pass_ticks(ATTEMPTS)
    assert not here.has_device


async def test_nobody_goes_for_who_shares_what_has_failed_and_it_gives_up_its_part() -> None:
    here = MadeReady()
    shared = here.world.server.claims[A]
    here.world.server.put(replace(shared, reserved_for=(*shared.reserved_for, consumer(OTHER))))
    reported(here.world, "broken")
    assert not here.may_go()
    await here.pass_ticks(ATTEMPTS - 2)
    assert here.world.server.claims[A].reserved_for == (consumer(POD), consumer(OTHER))
    await here.pass_ticks(1)
    assert here.world.server.claims[A].reserved_for == (consumer(OTHER),)


def test_others_go_for_who_alone_has_what_has_failed_and_finds_the_same_again() -> None:
    here = MadeReady()
    reported(here.world, "broken")
    assert here.may_go()


class Sent:
    """HIGH is asked about without the nodes with free devices, as where kube-scheduler looks at some nodes alone.

    On n1 HOLDER has the only device; of the others n3 alone has none.
    """

    def __init__(self, *free: str, nominates: bool = True) -> None:
        self.wakes, self.now = Wakes(), 0.0
        fleet = [item for name in ("n1", *free) for item in (node(name), gpus(name, 1))]
        taken = held(claim("of-low"), device("n1", 0), by=HOLDER)
        self.belief = belief_of(*fleet, node("n3"), taken, claim("c"), claim("d"), HIGH)
        self.attention = attention_of(self.belief, self.wakes, 0.0)
        self.attention.wakes.nominates = nominates
        self.answers = answers(self.belief, self.attention)
        journal: Any = SimpleNamespace(planned=lambda _pod, _plan: None)
        self.answers.journal, self.answers.evictions.now = journal, lambda: self.now

    def is_refused(self) -> bool:
        return not self.answers.filter(HIGH, names("n3")).names

    def may_go(self, *nodes: str) -> list[str]:
        victims = {name: Victims((HOLDER.uid,)) for name in nodes or ("n1",)}
        answered = self.answers.preempt(HIGH, victims)
        assert isinstance(answered, dict)
        return list(answered)


@pytest.mark.parametrize("nominates", [True, False])
@pytest.mark.parametrize("is_quick", [False, True], ids=["before it is sent", "after it was sent"])
async def test_nobody_goes_for_a_pod_that_is_sent_to_free_devices(*, nominates: bool, is_quick: bool) -> None:
    here = Sent("n2", nominates=nominates)
    assert here.is_refused()
    if is_quick:
        await here.attention._steer()
    assert here.may_go() == []
    await here.attention._steer()
    assert (here.wakes.woken, here.wakes.touched) == (([("high", "n2")], []) if nominates else ([], ["high"]))


@pytest.mark.parametrize("nominates", [True, False])
async def test_others_go_for_a_pod_that_was_sent_to_free_devices_in_vain(*, nominates: bool) -> None:
    here, may_go = Sent("n2", "n4", "n5", "n6", nominates=nominates), list[list[str]]()
    for _ in range(STEERS + 1):
        assert here.is_refused()
        may_go.append(here.may_go())
        await here.attention._steer()
    assert may_go == [*[[]] * STEERS, ["n1"]]
    assert len(here.wakes.woken + [(name, "") for name in here.wakes.touched]) == STEERS


async def test_a_pod_for_which_nobody_went_is_asked_about_again_even_if_what_it_is_sent_to_is_taken_meanwhile() -> None:
    here = Sent("n2")
    assert here.is_refused()
    assert here.may_go() == []
    here.belief.apply(Changed(held(claim("d", version=9), device("n2", 0), by=pod("q", "d"))))
    await here.attention._steer()
    assert (here.wakes.woken, here.wakes.touched) == ([], ["high"])
    assert here.is_refused()
    assert here.may_go() == ["n1"]


def test_others_go_where_a_pod_is_sent_to_a_node_on_which_somebody_has_to_go_too() -> None:
    here = Sent("n2")
    assert here.is_refused()
    assert here.may_go("n1", "n2") == ["n1", "n2"]


def test_others_go_where_a_pod_is_woken_for_a_node_on_which_somebody_has_to_go_too() -> None:
    here = Sent()
    assert here.is_refused()
    here.belief.apply(Changed(node("n2")))
    here.belief.apply(Changed(gpus("n2", 1)))
    assert isinstance(here.answers.planner.plan(HIGH, None, 0.0, is_answer=False), Offer)
    assert here.may_go("n1", "n2") == ["n1", "n2"]


def test_only_those_are_remembered_to_go_who_are_of_use() -> None:
    here = Sent()
    assert here.may_go("n1", "n3") == ["n1"]
    victims = here.answers.evictions.victims
    assert (victims(HIGH.uid, N1), victims(HIGH.uid, NodeName("n3"))) == ((HOLDER.uid,), None)


def test_others_go_for_a_pod_that_was_woken_and_that_other_plugins_have_refused() -> None:
    here = Sent("n2")
    assert isinstance(here.answers.planner.plan(HIGH, None, 0.0, is_answer=False), Offer)
    assert here.may_go() == ["n1"]


def test_nobody_goes_for_a_pod_that_is_woken_for_free_devices_right_after_it_was_refused() -> None:
    here = Sent()
    assert here.is_refused()
    here.belief.apply(Changed(node("n2")))
    here.belief.apply(Changed(gpus("n2", 1)))
    assert isinstance(here.answers.planner.plan(HIGH, None, 0.0, is_answer=False), Offer)
    assert here.may_go() == []


class Two:
    """On n1 and n2 HOLDER and ANOTHER have the only device each. FIRST and then SECOND ask for one."""

    def __init__(self, *, priority: int = 10) -> None:
        self.now, self.first, self.second = 0.0, pod("first", "c", priority=priority), pod("second", "d", priority=10)
        fleet = [item for name in ("n1", "n2") for item in (node(name), gpus(name, 1))]
        taken = held(claim("of-low"), device("n1", 0), by=HOLDER), held(claim("a"), device("n2", 0), by=ANOTHER)
        self.belief = belief_of(*fleet, *taken, claim("c"), claim("d"), self.first, self.second)
        self.answers = answers(self.belief, attention_of(self.belief, Wakes(), 0.0))
        self.answers.evictions.now = lambda: self.now

    def may_go(self, subject: Pod, *nodes: str) -> list[str]:
        victims = {"n1": Victims((HOLDER.uid, LOW.uid)), "n2": Victims((ANOTHER.uid,))}
        asked = {name: victims[name] for name in nodes}
        answered = self.answers.preempt(subject, asked)
        assert isinstance(answered, dict)
        return list(answered)

    def nominated(self, node: str) -> None:
        self.first = replace(self.first, nominated_node=NodeName(node))
        self.belief.apply(Changed(self.first))


ANOTHER = pod("another", "a")


def test_nobody_else_goes_on_a_node_whose_devices_are_for_another() -> None:
    here = Two()
    assert here.may_go(here.first, "n1") == ["n1"]
    assert here.may_go(here.second, "n1", "n2") == ["n2"]
    here = Two()
    assert here.may_go(here.first, "n1", "n2") == ["n1", "n2"]
    here.nominated("n1")
    here.now = 60.0
    assert here.may_go(here.second, "n1") == []


def test_what_several_who_are_ahead_share_they_have_once() -> None:
    low, shared = pod("lower", "b"), ("s",)
    first, second, third = (
        pod(name, *claims, priority=10) for name, claims in (("f", shared), ("g", shared), ("h", "d"))
    )
    taken = held(claim("of-low"), device("n1", 0), by=HOLDER), held(claim("b"), device("n1", 1), by=low)
    belief = belief_of(node("n1"), gpus("n1", 2), *taken, claim("s"), claim("d"), first, second, third)
    answering = answers(belief, attention_of(belief, Wakes(), 0.0))
    for subject, victim in (first, HOLDER), (second, HOLDER), (third, low):
        assert answering.preempt(subject, {"n1": Victims((victim.uid,))})


def test_who_is_ahead_and_was_promised_something_is_not_counted_twice() -> None:
    low, first, second = pod("lower", "b"), pod("f", "c", priority=10), pod("h", "d", priority=10)
    taken = held(claim("of-low"), device("n1", 0), by=HOLDER), held(claim("b"), device("n1", 1), by=low)
    belief = belief_of(node("n1"), gpus("n1", 2), *taken, claim("c"), claim("d"), first, second)
    attention = attention_of(belief, Wakes(), 0.0)
    answering = answers(belief, attention)
    assert answering.preempt(first, {"n1": Victims((HOLDER.uid,))})
    belief.apply(Changed(claim("of-low", version=9)))
    assert isinstance(attention.waker.planner.plan(first, None, 0.0, is_answer=False), Offer)
    assert answering.preempt(second, {"n1": Victims((low.uid,))})


def test_a_node_is_for_another_only_as_long_as_it_is_known_to_be_chosen() -> None:
    here = Two()
    assert here.may_go(here.first, "n1", "n2") == ["n1", "n2"]
    # It may be either.
    assert here.may_go(here.second, "n1", "n2") == ["n1", "n2"]
    here.nominated("n2")
    assert here.may_go(here.second, "n1") == ["n1"]
    here = Two()
    assert here.may_go(here.first, "n1") == ["n1"]
    # The scheduler has taken it back, or has never chosen it.
    here.now = SHOWN_S + 0.1
    assert here.may_go(here.second, "n1") == ["n1"]


def test_a_node_is_for_nobody_who_is_less_important_or_on_his_way_or_gone() -> None:
    lesser = Two(priority=9)
    assert lesser.may_go(lesser.first, "n1") == ["n1"]
    assert lesser.may_go(lesser.second, "n1") == ["n1"]
    here = Two()
    assert here.may_go(here.first, "n1") == ["n1"]
    here.nominated("n1")
    here.belief.apply(Changed(replace(here.first, is_deleting=True)))
    assert here.may_go(here.second, "n1") == ["n1"]
    here.belief.apply(Changed(replace(here.first, node_name=NodeName("n2"))))
    assert here.may_go(here.second, "n1") == ["n1"]


class LetGo:
    """HOLDER, who had the only device of n1, has gone for HIGH, and perhaps *victim*; its claim is freed."""

    def __init__(self, *, victim: Footprint | Pod = HOLDER, nominated: str = "n1", is_freed: bool = True) -> None:
        self.now, high = 0.0, replace(HIGH, nominated_node=NodeName(nominated))
        taken = held(claim("of-low"), device("n1", 0), by=HOLDER)
        self.belief = belief_of(node("n1"), gpus("n1", 1), taken, claim("c"), claim("d"), HIGH)
        self.answers = answers(self.belief, attention_of(self.belief, Wakes(), 0.0))
        journal: Any = SimpleNamespace(planned=lambda _pod, _plan: None)
        self.answers.journal, self.answers.evictions.now = journal, lambda: self.now
        assert self.answers.preempt(HIGH, {"n1": Victims((HOLDER.uid, victim.uid))})
        self.belief.apply(Changed(high))
        if is_freed:
            self.belief.apply(Changed(claim("of-low", version=9)))

    def is_offered(self, subject: Pod) -> bool:
        return bool(self.answers.filter(subject, names("n1")).names)


@pytest.mark.parametrize(("priority", "is_offered"), [(0, False), (10, False), (11, True)])
def test_what_was_let_go_of_for_a_pod_goes_to_it_whoever_is_asked_about_first(
    priority: int, *, is_offered: bool
) -> None:
    here = LetGo()
    assert here.is_offered(pod("other", "d", priority=priority)) == is_offered
    assert here.is_offered(HIGH) != is_offered


def test_who_is_promised_what_was_let_go_of_is_woken_for_it_though_one_before_asks_the_same_in_vain() -> None:
    here, older = LetGo(is_freed=False), pod("older", "d", priority=10, created="2025-01-01T00:00:00Z")
    high = replace(HIGH, nominated_node=N1)
    for noun in older, claim("e"):
        here.belief.apply(Changed(noun))
    for subject in older, high:
        assert not here.is_offered(subject)
    here.belief.apply(Changed(claim("of-low", version=9)))
    assert not here.is_offered(pod("other", "e"))
    assert [wake.pod.key.name for wake in here.answers.attention.waker.round(1.0) if wake] == ["high"]


@pytest.mark.parametrize("rest", [Rest(-1.0, 1), Rest(-20.0, 3), Rest(-1.0, 1, is_unasked=True)])
def test_who_is_promised_what_was_let_go_of_is_woken_for_it_though_it_was_woken_in_vain_before(rest: Rest) -> None:
    here, other, high = LetGo(is_freed=False), pod("other", "e"), replace(HIGH, nominated_node=N1)
    for noun in other, claim("e", 2):
        here.belief.apply(Changed(noun))
    for subject in other, high:
        assert not here.is_offered(subject)
    waker = here.answers.attention.waker
    waker._waiting[HIGH.uid] = rest
    here.belief.apply(Changed(claim("of-low", version=9)))
    for woken in (["high"], []):
        assert [wake.pod.key.name for wake in waker.round(1.0) if wake] == woken
        here.belief.apply(Changed(claim("e", 2, version=9)))


def test_who_is_promised_what_was_let_go_of_once_its_turn_has_passed_is_woken_in_the_next_round() -> None:
    here, other, high = LetGo(is_freed=False), pod("other", "d"), replace(HIGH, nominated_node=N1)
    here.belief.apply(Changed(other))
    for subject in other, high:
        assert not here.is_offered(subject)
    waker = here.answers.attention.waker
    waker._waiting |= {HIGH.uid: Rest(-1.0, 1, is_unasked=True), other.uid: Rest(-20.0, 3)}
    here.belief.apply(Changed(claim("of-low", version=9)))
    assert [[wake.pod.key.name for wake in waker.round(now) if wake] for now in (1.0, 2.0, 3.0)] == [[], ["high"], []]
    # Nothing came of that: what is kept for it once more is not another reason.
    here.belief.ledger.tell(HIGH.uid, Event.EXPIRED)
    assert not here.is_offered(other)
    assert here.belief.ledger.of_pod(HIGH.uid)
    assert not any(waker.round(4.0))


@pytest.mark.parametrize(("priority", "is_first"), [(0, False), (10, False), (11, True)])
@pytest.mark.parametrize("way", ["woken", "sent ahead"])
def test_nobody_is_woken_or_sent_for_what_was_let_go_of_for_who_is_no_less_important(
    way: str, priority: int, *, is_first: bool
) -> None:
    """Of equals the one comes first that has waited for longer; where kube-scheduler nominates it keeps the room."""
    here, older = LetGo(is_freed=False), pod("older", "d", priority=priority, created="2025-01-01T00:00:00Z")
    high = replace(HIGH, nominated_node=N1)
    here.belief.apply(Changed(older))
    waker = here.answers.attention.waker
    for subject in older, high:
        assert not here.is_offered(subject)
    here.belief.apply(Changed(claim("of-low", version=9)))
    if way == "sent ahead":
        assert isinstance(waker.planner.plan(older, None, 0.0, is_answer=False), Offer) == is_first
    else:
        assert [wake.pod.key.name for wake in waker.round(1.0) if wake] == ["older" if is_first else "high"]
    assert here.is_offered(high) != is_first


@pytest.mark.parametrize("why", ["gone", "yet to go", "sent elsewhere", "shared"])
def test_what_was_let_go_of_is_kept_where_all_have_gone_for_whom_does_not_have_it_with_the_other(why: str) -> None:
    here = LetGo(victim=LOW, nominated="n2") if why == "sent elsewhere" else LetGo(victim=LOW)
    if why == "yet to go":
        here.belief.apply(Listed(Footprint, (LOW,)))
    assert here.is_offered(pod("other", "c" if why == "shared" else "d")) == (why != "gone")


@pytest.mark.parametrize(("later", "is_offered"), [(PATIENCE_S - 1, False), (PATIENCE_S, True)])
def test_what_is_let_go_of_late_is_kept_for_nobody(later: float, *, is_offered: bool) -> None:
    here, other = LetGo(is_freed=False), pod("other", "d")
    assert not here.is_offered(other)
    here.now = later
    here.belief.apply(Changed(claim("of-low", version=9)))
    assert here.is_offered(other) == is_offered


def test_what_is_let_go_of_is_kept_from_when_the_last_has_gone_though_that_was_bound_later() -> None:
    here, other = LetGo(victim=LOW, is_freed=False), pod("other", "d")
    assert not here.is_offered(other)
    here.belief.apply(Listed(Footprint, (LOW,)))
    assert not here.is_offered(other)
    here.now = 2 * PATIENCE_S
    here.belief.apply(Listed(Footprint, ()))
    here.belief.apply(Changed(claim("of-low", version=9)))
    assert not here.is_offered(other)


def test_hundreds_who_wait_for_what_is_let_go_of_are_each_looked_for_where_something_has_changed_alone() -> None:
    first = tuple(pod(f"first-{number}", f"of-first-{number}", priority=10) for number in range(200))
    here = LetGo(is_freed=False)
    for number, each in enumerate(first):
        name, victim = f"m{number}", pod(f"victim-{number}", f"had-{number}")
        taken = held(claim(f"had-{number}"), device(name, 0), by=victim)
        for noun in node(name), gpus(name, 1), taken, claim(f"of-first-{number}"):
            here.belief.apply(Changed(noun))
        assert here.answers.preempt(each, {name: Victims((victim.uid,))})
        here.belief.apply(Changed(replace(each, nominated_node=NodeName(name))))
    looked, place = list[tuple[str, str]](), here.answers.chooser.place

    def placed(needs: Needs, on: NodeName, snapshot: Snapshot | None = None) -> object:
        looked.append((needs.pod.key.name, on))
        return place(needs, on, snapshot)

    chooser: Any = SimpleNamespace(place=placed, taste=None)
    here.answers.preemption.chooser = chooser
    everything = tuple(here.belief.cluster.snapshot.nodes)
    for number in range(3):
        here.belief.apply(Changed(claim(f"e{number}")))
        assert not here.answers.filter(pod(f"other-{number}", f"e{number}"), everything).names
    assert len(looked) == len(set(looked)) == len(first) + 1
    looked.clear()
    here.belief.apply(Changed(claim("had-7", version=9)))
    assert not here.answers.filter(pod("other-3", "d"), everything).names
    assert looked == [("first-7", "m7")]


def test_what_was_promised_to_one_while_another_was_looked_for_goes_to_that_one_once_the_first_is_gone() -> None:
    here, second, victim = LetGo(is_freed=False), pod("second", "e", priority=10), pod("victim", "had")
    for noun in gpus("n1", 2), held(claim("had"), device("n1", 1), by=victim), claim("e"), second:
        here.belief.apply(Changed(noun))
    assert here.answers.preempt(second, {"n1": Victims((victim.uid,))})
    here.belief.apply(Changed(replace(second, nominated_node=N1)))
    here.belief.apply(Changed(claim("of-low", version=9)))
    assert not here.is_offered(pod("other", "d"))
    here.belief.apply(Gone(Pod, HIGH.key))
    assert not here.is_offered(pod("other", "d"))
    assert here.is_offered(second)


class Leaving:
    """The only device of n1 is HOLDER's, who is gone but where *is_there*; LOW has the CPU. HIGH needs both."""

    def __init__(self, *, is_there: bool = False, nominates: bool = True) -> None:
        self.now, self.wakes, self.taken_back = 0.0, Wakes(), list[str]()
        self.high = replace(HIGH, terms=Terms(amounts=(("cpu", 1000),)))
        taken = held(claim("of-low"), device("n1", 0), by=HOLDER)
        self.belief = belief_of(node("n1", {"cpu": 4}), node("n2"), gpus("n1", 1), taken, claim("c"), self.high)
        there = Footprint(key=HOLDER.key, uid=HOLDER.uid, node=N1, amounts=(("cpu", 0),))
        full = replace(LOW, amounts=(("cpu", 4000),))
        self.belief.apply(Listed(Footprint, (full, there) if is_there else (full,)))
        self.attention = attention_of(self.belief, self.wakes, 0.0)
        self.attention.habits = Habits(nominates=nominates)
        self.attention.expiry.unasked = self.taken_back.append
        self.answers = answers(self.belief, self.attention)
        journal: Any = SimpleNamespace(planned=lambda _pod, _plan: None)
        self.answers.journal, self.answers.evictions.now = journal, lambda: self.now

    def may_go(self) -> bool:
        answered = self.answers.preempt(self.high, {"n1": Victims((LOW.uid,))})
        assert isinstance(answered, dict)
        return bool(answered)

    async def pass_time(self, seconds: float) -> None:
        self.now += seconds
        await self.attention.waits.round(lambda: self.now)

    async def is_tried_again(self) -> bool:
        self.taken_back.clear()
        for _ in range(2):
            await self.pass_time(NUDGE_S)
        return self.taken_back == [HIGH.uid]


async def test_who_is_refused_for_devices_of_who_is_gone_is_tried_again_and_others_go_once_these_are_free() -> None:
    here = Leaving()
    assert not here.may_go()
    assert await here.is_tried_again()
    assert here.wakes.woken == [("high", "n1")]
    here.belief.apply(Changed(claim("of-low", version=9)))
    assert here.may_go()


async def test_devices_of_who_is_gone_are_not_waited_for_for_ever_but_for_those_of_who_goes_later() -> None:
    here = Leaving()
    assert not here.may_go()
    here.now = PATIENCE_S
    assert await here.is_tried_again()
    assert not here.may_go()
    assert not await here.is_tried_again()
    here.belief.apply(Changed(held(claim("of-low", version=9), device("n1", 0), by=ANOTHER)))
    assert not here.may_go()
    assert await here.is_tried_again()


@pytest.mark.parametrize("why", ["helped", "is there", "nowhere", "heard", "unheard"])
async def test_whom_that_does_not_help_or_who_hears_of_it_anyway_is_not_tried_again(why: str) -> None:
    here = Leaving(is_there=why == "is there", nominates=why != "unheard")
    if why == "nowhere":
        here.belief.apply(Changed(claim("c", 2, version=9)))
    if why == "heard":
        assert not here.answers.filter(here.high, names("n2")).names
    assert not here.may_go()
    assert await here.is_tried_again() == (why == "helped")


def test_of_thousands_who_are_gone_those_are_looked_at_who_had_devices_of_the_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, asked = Leaving(), list[dict[NodeName, tuple[Uid, ...]]]()
    for number in range(30):
        taken = held(claim(f"m{number}"), device(f"m{number}", 0), by=pod(f"gone-{number}", f"m{number}"))
        here.belief.apply(Changed(taken))

    def counted(subject: Pod, victims: dict[NodeName, tuple[Uid, ...]], *others: Any) -> object:
        asked.append(victims)
        return helped(subject, victims, *others)

    monkeypatch.setattr(preemption, "helped", counted)
    assert not here.answers.preempt(here.high, {"n1": Victims((LOW.uid,)), "n2": Victims((OTHER.uid,))})
    assert asked == [{N1: (LOW.uid,), N2: (OTHER.uid,)}, {N1: (LOW.uid, HOLDER.uid)}]


@pytest.mark.parametrize("why", ["in a network", "with the pod"])
async def test_who_is_gone_counts_on_every_node_with_what_is_of_none_or_shared_with_the_pod(why: str) -> None:
    here = Leaving()
    taken = held(claim("of-low", version=9), device("n1", 0), by=HOLDER)
    if why == "in a network":
        assert taken.allocation is not None
        here.belief.apply(Changed(replace(taken, allocation=replace(taken.allocation, node_selector=None))))
    else:
        here.belief.apply(Changed(claim("of-low", version=9)))
        here.belief.apply(Changed(held(claim("c", version=9), device("n2", 0), by=HOLDER)))
    assert not here.may_go()
    assert await here.is_tried_again()


async def test_who_is_gone_elsewhere_does_not_have_devices_waited_for_that_nobody_frees() -> None:
    here = Leaving()
    assert not here.may_go()
    here.now = PATIENCE_S
    assert await here.is_tried_again()
    here.belief.apply(Changed(held(claim("other"), device("n2", 0), by=ANOTHER)))
    assert not here.may_go()
    assert not await here.is_tried_again()


async def test_devices_that_nobody_frees_are_not_waited_for_for_ever_though_attempts_are_about_other_nodes() -> None:
    here, others = Leaving(), (LOW, taker("n2"))
    for noun in node("n2", {"cpu": 4}), gpus("n2", 1), held(claim("other"), device("n2", 0), by=ANOTHER):
        here.belief.apply(Changed(noun))
    here.belief.apply(Listed(Footprint, tuple(replace(each, amounts=(("cpu", 4000),)) for each in others)))
    tried = list[bool]()
    for low in others * 3:
        assert not here.answers.preempt(here.high, {low.node: Victims((low.uid,))})
        tried.append(await here.is_tried_again())
        here.now += PATIENCE_S / 2
    assert tried == [True] * 3 + [False] * 3
