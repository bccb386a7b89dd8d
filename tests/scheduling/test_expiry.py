"""Offers end in time, and not while the scheduler is on its way: it waits for volumes, or for a plugin."""

from dataclasses import replace

import pytest

from extender.model.change import Changed, Gone
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.expiry import UNASKED_S, Expiry
from extender.scheduling.planner import Offer, Planner
from extender.scheduling.ranking import Answer, AnswerPolicy
from extender.scheduling.waking import Waker
from extender.state.ledger import Event
from tests.scheduling.cast import belief_of, chooser_of, claim, device, gpus, names, node, pod, promised

N1, N2 = names("n1", "n2")
OFFER_S, WAIT_S = 30.0, 600.0
FRESH = pod("p", "a")
WAITED = replace(FRESH, refusal="too few devices are free")


class Scene:
    """Two nodes with one device each; a pod that was offered both, and the device of the first."""

    def __init__(self, before: Pod = FRESH, *nodes: NodeName, known: Pod | None = None) -> None:
        self.belief = belief_of(node("n1"), node("n2"), gpus("n1", 1), gpus("n2", 1), claim("a"), before)
        self.names: tuple[NodeName, ...] = ()
        self.planner = Planner(self.belief, chooser_of(self.belief), AnswerPolicy(answer=Answer.ALL))
        waker = Waker(self.belief, self.planner)
        self.expiry = Expiry(self.belief, waker, OFFER_S, WAIT_S, lambda _pod, node: node in self.names)
        self.asked(known or before, 0.0, *nodes)
        assert promised(self.belief) == [device("n1", 0)]

    def asked(self, known: Pod, now: float, *nodes: NodeName) -> None:
        """Answer the scheduler, which knows the pod so."""
        plan = self.planner.plan(known, nodes or [N1, N2], now)
        assert isinstance(plan, Offer)
        self.names = plan.nodes
        self.expiry.offered(known)

    def shown(self, item: Pod) -> None:
        self.belief.apply(Changed(replace(item, resource_version=f"{item.refusal}{item.nominated_node}")))

    def ended(self, moment: float) -> bool:
        """Tell whether the pod's offer ends in a round then."""
        return list(self.expiry.round(moment)) == [FRESH.uid]

    def left(self, *moments: float) -> list[str]:
        """Return where the pod has a device after rounds at these *moments*."""
        for moment in moments:
            self.expiry.round(moment)
        return [key.pool for key in promised(self.belief)]


def at(node: NodeName | None, item: Pod = FRESH, refusal: str | None = None) -> Pod:
    return replace(item, nominated_node=node, refusal=item.refusal if refusal is None else refusal)


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        (FRESH, (), []),
        (FRESH, (at(N1),), ["n1"]),
        (WAITED, (at(N1, WAITED),), ["n1"]),
        (FRESH, (at(N2),), ["n2"]),
        (FRESH, (at(N1), at(None)), []),
        (FRESH, (at(N1), at(N1, refusal="another plugin's words")), []),
        (FRESH, (at(None, refusal="another plugin's words"),), []),
        (FRESH, (at(N1, refusal="another plugin's words"),), []),
        (FRESH, (at(N2, refusal="another plugin's words"),), []),
        (FRESH, (replace(at(N1), is_deleting=True),), []),
        (at(N1, WAITED), (), ["n1"]),
        (at(N1, WAITED), (at(N1, refusal="another plugin's words"),), []),
        (at(N2, WAITED), (), []),
        (at(N2, WAITED), (at(N1, WAITED),), ["n1"]),
    ],
    ids=[
        "nobody comes",
        "the scheduler waits",
        "it had refused the pod before",
        "it has taken the other node",
        "it has given up",
        "it has said why not",
        "it has said so at once",
        "it has given up at once, and the nomination has outlasted that",
        "it evicts others on the other node",
        "it waits in vain, for the pod is being deleted",
        "the pod was nominated, and it waits",
        "the pod was nominated, and it has said why not",
        "the pod was nominated for the other node, and nobody comes",
        "the pod was nominated for the other node, and it waits",
    ],
)
def test_an_offer_is_kept_as_long_as_the_scheduler_is_on_its_way(
    before: Pod, after: tuple[Pod, ...], left: list[str]
) -> None:
    scene = Scene(before)
    for second, item in enumerate(after, 1):
        scene.shown(item)
        scene.left(float(second))
    assert scene.left(OFFER_S + 10) == left


def test_an_offer_is_not_kept_for_ever() -> None:
    scene = Scene()
    scene.shown(at(N1))
    assert scene.left(1.0, WAIT_S) == ["n1"]
    assert scene.ended(WAIT_S + 1)
    assert scene.left(WAIT_S + 1) == []
    assert not scene.expiry._said


def test_of_devices_that_are_gone_on_the_node_that_was_taken_nothing_is_promised() -> None:
    scene = Scene()
    other = pod("q", "b")
    for item in (claim("b"), other):
        scene.belief.apply(Changed(item))
    assert isinstance(scene.planner.plan(other, [N2], 0.5), Offer)
    scene.shown(at(N2))
    # What it has on the other node it may need, if this comes to nothing.
    assert scene.left(1.0) == ["n1", "n2"]
    assert scene.left(OFFER_S + 1) == []


def test_what_was_promised_to_a_pod_that_is_gone_is_not_waited_for() -> None:
    scene = Scene()
    scene.shown(at(N1))
    scene.belief.apply(Gone(Pod, FRESH.key))
    assert scene.left(1.0) == []
    assert not scene.expiry._said


def test_the_node_that_was_not_offered_is_not_where_the_scheduler_goes() -> None:
    scene = Scene(FRESH, N1)
    scene.shown(at(N2))
    assert scene.left(1.0) == ["n1"]
    assert scene.left(OFFER_S + 1) == []


def test_r6_a_pod_that_comes_back_finds_the_node_last_that_the_scheduler_had_taken() -> None:
    scene = Scene()
    scene.shown(at(N2))
    scene.left(1.0)
    scene.asked(FRESH, 2.0)
    assert scene.left(3.0) == ["n1"]


def test_where_others_are_evicted_for_the_pod_is_not_where_the_scheduler_goes() -> None:
    scene = Scene()
    scene.shown(at(N2, refusal="others have to go"))
    assert scene.left(1.0) == ["n1"]


@pytest.mark.parametrize(("shown", "known"), [(FRESH, WAITED), (WAITED, FRESH)], ids=["our watch", "the scheduler's"])
def test_what_was_said_before_it_asked_is_no_news_once_the_watch_that_is_behind_has_it(shown: Pod, known: Pod) -> None:
    scene = Scene(at(N1, shown), known=at(N1, known))
    scene.shown(at(N1, WAITED))
    assert scene.left(1.0, OFFER_S + 1) == ["n1"]


def test_where_we_sent_the_pod_too_late_is_not_where_the_scheduler_goes() -> None:
    scene = Scene(at(N2), known=FRESH)
    assert scene.left(1.0) == ["n1"]
    assert scene.left(OFFER_S + 1) == []


def test_a_nomination_that_outlasts_each_attempt_does_not_keep_devices_for_ever() -> None:
    scene = Scene(at(N1))
    for moment in (200.0, 400.0, WAIT_S - 10):
        assert scene.left(moment) == ["n1"]
        scene.asked(at(N1), moment, N1)
    assert scene.left(WAIT_S) == ["n1"]
    assert scene.left(WAIT_S - 10 + OFFER_S + 1) == []


@pytest.mark.parametrize("is_heard", [False, True], ids=["it goes there now", "it had been sent there before"])
def test_a_nomination_for_another_node_is_waited_for_as_long_as_the_first(*, is_heard: bool) -> None:
    scene = Scene(at(N1))
    scene.shown(at(N2 if is_heard else N1))
    scene.asked(at(N1), WAIT_S - 10, N2)
    scene.shown(at(N2))
    assert scene.left(WAIT_S + OFFER_S + 1, 2 * WAIT_S - 10) == ["n2"]
    assert scene.left(2 * WAIT_S) == []


def test_after_each_wait_for_volumes_that_came_to_nothing_the_next_is_as_long() -> None:
    scene = Scene()
    for begin in (0.0, WAIT_S):
        scene.shown(at(N1))
        assert scene.left(begin + 1, begin + WAIT_S - 1) == ["n1"]
        scene.shown(at(None))
        scene.asked(FRESH, begin + WAIT_S, N1)
    assert scene.left(2 * WAIT_S + OFFER_S + 1) == []


def test_what_a_pod_is_only_woken_for_goes_nowhere_else_and_is_not_waited_for() -> None:
    scene = Scene()
    scene.planner.withdraw(FRESH.uid)
    assert isinstance(scene.planner.plan(FRESH, [N1], 0.5, is_answer=False), Offer)
    scene.shown(at(N2))
    assert scene.left(1.0) == ["n1"]
    scene.shown(at(N1))
    assert scene.left(2.0, OFFER_S + 1) == []


def test_of_a_pod_that_is_promised_nothing_nothing_is_remembered() -> None:
    scene = Scene()
    scene.belief.ledger.tell(FRESH.uid, Event.EXPIRED)
    scene.expiry.offered(FRESH)
    assert not scene.expiry._said


def test_once_the_scheduler_has_given_up_the_offer_is_as_old_as_it_is() -> None:
    scene = Scene()
    scene.shown(at(N1))
    assert scene.left(OFFER_S - 1) == ["n1"]
    scene.shown(at(None))
    assert scene.left(OFFER_S + 1) == []


def test_a_pod_one_of_whose_claims_is_not_there_is_not_waited_for() -> None:
    scene = Scene()
    scene.shown(replace(at(N1), claims=pod("p", "a", "gone").claims))
    assert scene.left(1.0, OFFER_S + 1) == []


@pytest.mark.parametrize("is_woken", [True, False], ids=["woken", "sent ahead"])
def test_what_a_woken_pod_is_promised_ends_where_the_scheduler_does_not_ask_within_its_back_off(
    *, is_woken: bool
) -> None:
    belief = belief_of(node("n1"), gpus("n1", 1), claim("a"), FRESH)
    planner = Planner(belief, chooser_of(belief))
    unasked: list[Uid] = []
    waker = Waker(belief, planner)
    expiry = Expiry(belief, waker, OFFER_S, WAIT_S, unasked=unasked.append)
    assert isinstance(planner.plan(FRESH, None, 0.0, is_answer=False), Offer)
    if is_woken:
        waker.put(FRESH.uid)
    assert list(expiry.round(UNASKED_S)) == []
    assert list(expiry.round(UNASKED_S + 1)) == ([FRESH.uid] if is_woken else [])
    assert unasked == ([FRESH.uid] if is_woken else [])
    assert list(expiry.round(OFFER_S + 1)) == ([] if is_woken else [FRESH.uid])
    assert not promised(belief)
    # It was sent there in vain: others come first.
    assert planner.trips.of(FRESH.uid).vain == {N1}


def test_what_is_asked_for_in_time_is_kept_as_any_offer() -> None:
    belief = belief_of(node("n1"), gpus("n1", 1), claim("a"), FRESH)
    planner = Planner(belief, chooser_of(belief))
    expiry = Expiry(belief, Waker(belief, planner), OFFER_S, WAIT_S)
    expiry.waker.put(FRESH.uid)
    assert isinstance(planner.plan(FRESH, None, 0.0, is_answer=False), Offer)
    assert isinstance(planner.plan(FRESH, [N1], 10.0), Offer)
    assert list(expiry.round(UNASKED_S + 11)) == []
