"""Scores are remembered between filter and prioritize."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from extender.model.change import Changed, Gone, Listed
from extender.model.claim import ResourceClaim
from extender.model.footprint import Footprint
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.service.answers import Answers
from extender.service.attention import Attention
from extender.service.evictions import LASTING_S, PATIENCE_S, SOON_S
from extender.service.offered import OfferedNodes
from extender.service.preemption import ATTEMPT_S
from extender.service.scores import REMEMBERED
from extender.state.belief import Belief
from extender.web.verbs import Victims
from tests.scheduling.cast import belief_of, chooser_of, claim, device, held, names, node, planner_of, pod
from tests.scheduling.cast import gpus as devices
from tests.scheduling.test_counted import GPU, asking, cluster, gpus, taker

ALL = names("rest", "whole")


def answers(belief: Belief | None = None, attention: Any = None) -> Answers:
    belief = belief or cluster(*gpus("rest", 8, 2), *gpus("whole", 8, 8))
    nobody: Any = None  # who is not asked about pods that need no devices of us
    looks_after: Any = attention or SimpleNamespace(wall=lambda: 0.0)
    return Answers(
        belief=belief,
        planner=attention.waker.planner if isinstance(attention, Attention) else planner_of(belief),
        chooser=chooser_of(belief),
        binds=nobody,
        journal=nobody,
        attention=looks_after,
        offered=OfferedNodes(),
        catching_up=nobody,
        missing=lambda: (),
        now=lambda: 0.0,
    )


def scored(answering: Answers, name: str = "p") -> object:
    """Ask as the scheduler does; return what prioritize answers."""
    pod = asking(name, gpu=2)
    assert answering.filter(pod, ALL).names == ALL
    return answering.prioritize(pod, ALL)


def test_every_node_passes_and_the_better_one_has_the_better_score() -> None:
    assert scored(answers()) == [10, 9]


def test_scores_of_an_earlier_answer_do_not_last() -> None:
    answering = answers()
    scored(answering)
    for name in ALL:
        answering.belief.apply(Changed(taker(name, gpu=8)))
    assert scored(answering) is None


def test_as_many_pods_are_remembered_as_there_is_room_for() -> None:
    answering = answers()
    for number in range(REMEMBERED + 1):
        scored(answering, f"p{number}")
    first, last = asking("p0", gpu=2), asking(f"p{REMEMBERED}", gpu=2)
    assert answering.prioritize(first, ALL) is None
    assert answering.prioritize(last, ALL) == [10, 9]


def test_nodes_that_come_between_filter_and_prioritize_have_no_score() -> None:
    answering = answers()
    scored(answering)
    answering.belief.apply(Changed(node("new", {GPU: 8})))
    answering.belief.apply(Listed(Footprint, ()))
    assert answering.prioritize(asking("p", gpu=2), [*ALL, "new"]) == [10, 9, 0]


def test_a_pod_for_which_others_are_to_be_evicted_has_been_asked_about() -> None:
    answering, told = answers(), list[tuple[object, ...]]()
    answering.asked = lambda pod, names: told.append((pod.key.name, *names))
    answering.preempt(asking("p", gpu=2), {"rest": Victims(())})
    assert told == [("p",)]


@pytest.mark.parametrize(("victims", "told"), [({"rest": Victims(())}, ["uid-p"]), ({}, [])])
def test_others_are_evicted_for_a_pod_only_where_that_helps_it(victims: dict[str, Victims], told: list[str]) -> None:
    answering, evicting = answers(), list[str]()
    answering.evicting = evicting.append
    answering.preempt(asking("p", gpu=2), victims)
    assert evicting == told


def test_a_node_is_left_out_where_somebody_of_another_node_would_have_to_go_with_the_others() -> None:
    answering, told = answers(), list[object]()
    answering.evicting = told.append
    for name in ALL:
        answering.belief.apply(Changed(taker(name, gpu=1)))
    first, second = (taker(name, gpu=1).uid for name in ALL)
    victims = {"rest": Victims((first, Uid("unknown"))), "whole": Victims((second, first))}
    assert answering.preempt(asking("p", gpu=2), victims) == {"rest": victims["rest"]}
    assert answering.preempt(asking("p", gpu=2), {"whole": victims["whole"]}) == {}
    assert told == ["uid-p"]


class Preempting:
    """Two nodes, the only device of each of which a pod has; and who asks for one, for whom others may go."""

    def __init__(self, subject: Pod) -> None:
        self.subject, self.now, self.postponed = subject, 0.0, list[float]()
        self.low = {name: pod(f"low-{name}", f"of-{name}") for name in ("n1", "n2")}
        taken = [held(claim(f"of-{name}"), device(name, 0), by=low) for name, low in self.low.items()]
        fleet = [item for name in self.low for item in (node(name), devices(name, 1))]
        self.belief = belief_of(*fleet, *taken, claim("c"), subject)
        attention = SimpleNamespace(
            waits=SimpleNamespace(postponed=lambda _pod, at: self.postponed.append(at)),
            offered=lambda _pod: None,
            rejected=lambda _pod, _plan: None,
            wall=lambda: 0.0,
        )
        self.answers = answers(self.belief, attention)
        self.answers.journal = SimpleNamespace(planned=lambda _pod, _plan: None)  # type: ignore[assignment]  # nobody reads it
        self.answers.now = self.answers.evictions.now = lambda: self.now

    def may_go(self, *nodes: str) -> list[str]:
        """Ask for whom on *nodes* the others may be evicted; return the nodes that are left."""
        victims = {name: Victims((self.low[name].uid,)) for name in nodes}
        answered = self.answers.preempt(self.subject, victims)
        assert isinstance(answered, dict)
        return list(answered)

    def waits(self, name: str) -> Pod:
        """Have who is on a node be promised its device only, as while its volumes are made; return that pod."""
        low = self.low[name]
        self.belief.apply(Changed(low))
        self.belief.apply(Changed(claim(f"of-{name}", version=2)))
        assert self.answers.filter(low, names(name)).names
        return low

    def promised(self, to: Pod) -> str | None:
        """Name the node of which something is promised to a pod."""
        promise = self.belief.ledger.of_pod(to.uid)
        return promise.node if promise else None

    def refused(self, *nodes: str) -> bool:
        """Ask where the pod can go; tell whether nowhere."""
        return not self.answers.filter(self.subject, names(*nodes)).names


def test_nobody_else_goes_while_devices_of_who_has_gone_are_let_go_of() -> None:
    here = Preempting(pod("p", "c"))
    assert here.may_go("n1", "n2") == ["n1", "n2"]
    assert here.may_go("n2") == []
    here.now = PATIENCE_S - 1
    assert here.may_go("n2") == []
    assert here.postponed == [PATIENCE_S, PATIENCE_S]


def test_others_go_after_all_where_the_devices_are_not_let_go_of_in_time() -> None:
    here = Preempting(pod("p", "c"))
    for at, left in ((0.0, ["n1", "n2"]), (1.0, []), (1.0 + PATIENCE_S, ["n2"])):
        here.now = at
        assert here.may_go(*(left or ["n2"])) == left


class Ending(Preempting):
    """Those who may be evicted are known to be bound, and are there until they have gone."""

    def __init__(self, subject: Pod) -> None:
        super().__init__(subject)
        self.bound()

    def bound(self, *gone: str) -> None:
        """Have the watch of bound pods show all who are there but those on nodes from which they have *gone*."""
        there = {name: low for name, low in self.low.items() if name not in gone}
        shown = (replace(taker(name, gpu=0), key=low.key, uid=low.uid) for name, low in there.items())
        self.belief.apply(Listed(Footprint, tuple(shown)))


def test_nobody_else_goes_as_long_as_who_was_evicted_ends_and_once_he_has_for_as_long_as_ever() -> None:
    here = Ending(pod("p", "c"))
    assert here.may_go("n1") == ["n1"]
    for here.now in (1.0, 2 * PATIENCE_S, 100 * PATIENCE_S):
        assert here.refused("n1")
        assert here.may_go("n2") == []
        assert here.postponed.pop() == here.now + PATIENCE_S
    here.bound("n1")
    for since, left in ((0.0, []), (PATIENCE_S - 1, []), (PATIENCE_S, ["n2"])):
        here.now = 100 * PATIENCE_S + since
        assert here.refused("n1")
        assert here.may_go("n2") == left


@pytest.mark.parametrize("why", ["stuck", "let through no more", "refused by others alone", "uncertain", "unknown"])
def test_others_go_after_all_where_who_was_evicted_may_never_end(why: str) -> None:
    here, asked = Ending(pod("p", "c")), ("n3",) if why == "let through no more" else ("n1",)
    assert here.may_go("n1", *(["n2"] if why == "uncertain" else [])) != []
    if why == "unknown":
        here.bound("n1", "n2")
    if why == "stuck":
        here.now = LASTING_S + 1
    begin = here.now
    for since, left in ((1.0, []), (1.0 + PATIENCE_S, ["n2"])):
        here.now = begin + since
        assert why == "refused by others alone" or here.refused(*asked)
        assert here.may_go("n2") == left


def test_only_where_the_pod_is_nominated_who_was_evicted_ends() -> None:
    here = Ending(replace(pod("p", "c"), nominated_node=NodeName("n1")))
    assert here.may_go("n1", "n2") == ["n1", "n2"]
    here.now = 2 * PATIENCE_S
    assert here.refused("n1")
    assert here.may_go("n2") == []


def test_others_go_where_the_devices_have_gone_to_somebody_else() -> None:
    here = Preempting(pod("p", "c"))
    assert here.may_go("n1", "n2") == ["n1", "n2"]
    here.belief.apply(Gone(ResourceClaim, claim("of-n1").key))
    here.belief.apply(Changed(held(claim("other", version=9), device("n1", 0), by=pod("other", "other"))))
    assert here.may_go("n2") == ["n2"]


def test_others_go_where_the_devices_are_free_and_something_else_is_missing() -> None:
    here = Preempting(pod("p", "c"))
    assert here.may_go("n1", "n2") == ["n1", "n2"]
    here.belief.apply(Gone(ResourceClaim, claim("of-n1").key))
    assert here.may_go("n2") == ["n2"]


def test_nobody_else_goes_where_the_devices_were_let_go_of_right_after_the_pod_was_refused() -> None:
    here = Preempting(pod("p", "c"))
    assert here.may_go("n1", "n2") == ["n1", "n2"]
    assert here.refused("n1")
    here.belief.apply(Gone(ResourceClaim, claim("of-n1").key))
    assert here.may_go("n2") == []
    assert here.postponed == [SOON_S]
    assert not here.refused("n1")
    assert here.may_go("n2") == ["n2"]


def test_where_the_devices_are_let_go_of_before_the_last_has_ended_the_pod_is_tried_again_soon() -> None:
    here = Ending(pod("p", "c"))
    assert here.may_go("n1") == ["n1"]
    assert here.refused("n1")
    here.belief.apply(Gone(ResourceClaim, claim("of-n1").key))
    assert here.may_go("n2") == []
    assert here.postponed == [SOON_S]
    here.now = PATIENCE_S
    assert here.may_go("n2") == ["n2"]


def test_that_a_pod_was_refused_in_an_attempt_before_keeps_nobody_waiting_for_who_ends() -> None:
    here = Ending(pod("p", "c"))
    assert here.may_go("n1") == ["n1"]
    assert here.refused("n1")
    for since, left in ((ATTEMPT_S + 1, []), (ATTEMPT_S + 1 + PATIENCE_S, ["n2"])):
        here.now = since
        assert here.may_go("n2") == left


def test_nobody_goes_for_a_pod_that_lacks_a_claim() -> None:
    assert Preempting(pod("p", "nobodys")).may_go("n1") == []


def test_a_node_is_waited_for_only_where_nobody_has_yet_to_go_even_if_it_is_left_out() -> None:
    here, other = Preempting(pod("p", "c")), taker("n2", gpu=1)
    assert here.may_go("n1", "n2") == ["n1", "n2"]
    here.belief.apply(Listed(Footprint, (other,)))
    victims = {"n1": Victims((here.low["n1"].uid, other.uid)), "n2": Victims((here.low["n2"].uid,))}
    assert here.answers.preempt(here.subject, victims) == {"n2": victims["n2"]}


def test_where_the_pod_is_nominated_says_who_has_gone() -> None:
    here = Preempting(replace(pod("p", "c"), nominated_node=NodeName("n2")))
    assert here.may_go("n1", "n2") == ["n1", "n2"]
    assert here.may_go("n2") == ["n2"]
    assert here.may_go("n1") == []


def test_a_victim_that_waits_for_volumes_leaves_its_devices_to_the_pod_as_soon_as_that_is_asked_about() -> None:
    here = Preempting(pod("p", "c"))
    low = here.waits("n1")
    assert here.refused("n1")
    assert here.may_go("n1") == ["n1"]
    assert here.promised(low) == "n1"
    # It was not asked about that node yet: the victim may be there still.
    assert here.refused("n2")
    assert here.promised(low) == "n1"
    here.now = 1.0
    assert not here.refused("n1")
    assert here.promised(low) is None
    assert here.promised(here.subject) == "n1"


def test_who_would_have_gone_on_another_node_than_the_one_that_was_chosen_keeps_its_devices() -> None:
    here = Preempting(pod("p", "c"))
    first, second = here.waits("n1"), here.waits("n2")
    assert here.may_go("n1", "n2") == ["n1", "n2"]
    here.subject = replace(here.subject, nominated_node=NodeName("n1"))
    assert not here.refused("n1", "n2")
    assert here.promised(first) is None
    assert here.promised(second) == "n2"


def test_what_a_victim_is_promised_after_it_has_gone_stays_its_own() -> None:
    here = Preempting(pod("p", "c"))
    low = here.waits("n1")
    assert here.may_go("n1") == ["n1"]
    here.now = 1.0
    here.answers.filter(low, names("n1"))
    assert here.refused("n1")
    assert here.promised(low) == "n1"


def test_a_victim_whose_devices_are_being_written_keeps_them() -> None:
    here = Preempting(pod("p", "c"))
    low = here.waits("n1")
    assert here.may_go("n1") == ["n1"]
    promise = here.belief.ledger.of_pod(low.uid)
    assert promise is not None
    assert here.belief.ledger.reserve(promise)
    assert here.refused("n1")
    assert here.promised(low) == "n1"


def test_of_pods_that_need_no_devices_and_of_those_that_are_gone_no_eviction_is_remembered() -> None:
    plain, gone = Preempting(pod("plain")), Preempting(pod("p", "c"))
    assert plain.may_go("n1", "n2") == ["n1", "n2"]
    assert plain.may_go("n2") == ["n2"]
    assert gone.may_go("n1", "n2") == ["n1", "n2"]
    gone.belief.apply(Gone(Pod, gone.subject.key))
    assert not gone.answers.evictions._known
