"""R5: holds begin at filter. R6: a pod that comes back finds the node that it came back from last."""

from dataclasses import replace

import pytest

from extender.model.change import Changed, Gone
from extender.model.claim import OwnerReference, ResourceClaim
from extender.model.names import Uid
from extender.model.node import Pod
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from extender.model.taint import NO_SCHEDULE, Taint, Toleration
from extender.model.terms import Terms
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.planner import Offer, Plain, Planner, Rejection, Trouble
from extender.scheduling.ranking import Answer, AnswerPolicy
from extender.scheduling.vocabulary import Word
from extender.state.belief import Belief
from extender.state.ledger import Event
from tests.scheduling.cast import (
    belief_of,
    chooser_of,
    claim,
    device,
    given,
    gpus,
    held,
    names,
    node,
    planner_of,
    pod,
    promised,
    surveyed,
)

NODES = (node("n1"), node("n2"), node("n3"))
ALL = names("n1", "n2", "n3")
ONE = AnswerPolicy(Answer.ONE)
SHORTLIST = AnswerPolicy(Answer.SHORTLIST)
TWO = AnswerPolicy(Answer.SHORTLIST, 2)
EVERY = AnswerPolicy(Answer.ALL)


def fleet(*free: int) -> Belief:
    return belief_of(*NODES, *(gpus(f"n{index}", count) for index, count in enumerate(free, 1) if count))


def planned(planner: Planner, subject: Pod, now: float = 0.0) -> Offer:
    plan = planner.plan(subject, ALL, now)
    assert isinstance(plan, Offer)
    return plan


def racing(belief: Belief, count: int) -> list[Pod]:
    pods = [pod(f"p{index}", f"c{index}") for index in range(count)]
    for index in range(count):
        belief.apply(Changed(claim(f"c{index}")))
    return pods


@pytest.mark.parametrize("policy", [EVERY, TWO, ONE], ids=lambda item: item.answer)
def test_r5_pods_that_race_are_promised_different_devices_and_the_last_is_refused(policy: AnswerPolicy) -> None:
    belief = fleet(1, 2, 0)
    planner = planner_of(belief, policy)
    *lucky, last = racing(belief, 4)
    for subject in lucky:
        planned(planner, subject)
    assert sorted(promised(belief)) == [device("n1", 0), device("n2", 0), device("n2", 1)]
    plan = planner.plan(last, ALL, 0.0)
    assert isinstance(plan, Rejection)
    assert plan.word is Word.IN_USE


def test_r5_the_fullest_node_is_the_best() -> None:
    belief = fleet(3, 1, 2)
    (subject,) = racing(belief, 1)
    plan = planned(planner_of(belief, EVERY), subject)
    assert list(plan.nodes) == names("n2", "n3", "n1")
    assert plan.scores == dict(zip(plan.nodes, (10, 9, 8), strict=True))
    assert plan.placement.node == "n2"


@pytest.mark.parametrize(
    ("policy", "offered"),
    [
        (EVERY, 3),
        (TWO, 2),
        (AnswerPolicy(Answer.SHORTLIST, 9), 3),
        (ONE, 1),
    ],
)
def test_a_policy_says_how_many_nodes_are_offered(policy: AnswerPolicy, offered: int) -> None:
    belief = fleet(3, 1, 2)
    (subject,) = racing(belief, 1)
    assert len(planned(planner_of(belief, policy), subject).nodes) == offered


def test_only_nodes_that_were_asked_about_are_offered_each_once() -> None:
    belief = fleet(3, 1, 2)
    (subject,) = racing(belief, 1)
    plan = planner_of(belief, SHORTLIST).plan(subject, names("n3", "n3", "unknown", "n1"), 0.0)
    assert isinstance(plan, Offer)
    assert list(plan.nodes) == names("n3", "n1")


def test_r5_an_offer_lasts_until_the_next_filter_of_its_pod() -> None:
    belief = fleet(1, 0, 0)
    planner = planner_of(belief)
    first, second = racing(belief, 2)
    planned(planner, first)
    assert isinstance(planner.plan(second, ALL, 0.0), Rejection)
    assert isinstance(planner.plan(first, names("n2"), 0.0), Rejection)
    assert promised(belief) == []
    planned(planner, second)


def test_r5_a_pod_that_cannot_be_placed_any_more_is_promised_nothing() -> None:
    belief = fleet(1, 0, 0)
    planner = planner_of(belief)
    (subject,) = racing(belief, 1)
    planned(planner, subject)
    belief.apply(Gone(ResourceClaim, claim("c0").key))
    assert isinstance(planner.plan(subject, ALL, 0.0), Trouble)
    assert promised(belief) == []


def test_r5_a_second_pod_of_a_claim_that_is_promised_waits() -> None:
    belief = fleet(2, 0, 0)
    planner = planner_of(belief)
    belief.apply(Changed(claim("shared")))
    planned(planner, pod("p", "shared"))
    plan = planner.plan(pod("q", "shared"), ALL, 0.0)
    assert isinstance(plan, Rejection)
    assert plan.word is Word.CLAIM_IN_FLIGHT


def test_r5_a_second_pod_of_a_claim_shares_its_result() -> None:
    belief = fleet(2, 2, 0)
    belief.apply(Changed(held(claim("shared"), device("n2", 0), by=pod("p", "shared"))))
    plan = planned(planner_of(belief), pod("q", "shared"))
    assert list(plan.nodes) == names("n2")
    assert promised(belief) == []


def test_r5_a_claim_that_a_pod_names_twice_is_allocated_once() -> None:
    belief = fleet(2, 0, 0)
    belief.apply(Changed(claim("c")))
    plan = planned(planner_of(belief), pod("p", "c", "c"))
    assert [item.key.name for item, _ in plan.placement.claims] == ["c"]
    belief.apply(Gone(ResourceClaim, claim("c").key))
    assert promised(belief) == []


def test_a_pod_whose_claims_are_being_written_is_neither_offered_nor_refused() -> None:
    belief = fleet(2, 0, 0)
    planner = planner_of(belief)
    (subject,) = racing(belief, 1)
    offer = planned(planner, subject)
    assert belief.ledger.reserve(offer.placement.promise(surveyed(offer).needs, 0.0))
    assert isinstance(planner.plan(subject, ALL, 0.0), Trouble)
    assert len(promised(belief)) == 1


def owned_by(kind: str) -> dict[str, object]:
    return {"owners": (OwnerReference(kind=kind, uid=Uid("o")),)}


WARY = Taint(key="wary", effect="PreferNoSchedule")


@pytest.mark.parametrize(
    ("of_pod", "taints", "offered"),
    [
        ({}, (), ["n2"]),
        ({"terms": Terms(is_all=False)}, (), ["n2", "n3", "n1"]),
        (owned_by("ReplicaSet"), (), ["n2", "n3", "n1"]),
        (owned_by("StatefulSet"), (), ["n2", "n3", "n1"]),
        (owned_by("Job"), (), ["n2"]),
        ({}, (WARY,), ["n2", "n3", "n1"]),
        ({"terms": Terms(tolerations=(Toleration(key="wary", operator="Exists"),))}, (WARY,), ["n2"]),
        ({}, (replace(WARY, effect=NO_SCHEDULE),), ["n2"]),
    ],
)
def test_the_best_node_is_offered_alone_where_the_scheduler_would_weigh_nothing_else(
    of_pod: dict[str, object], taints: tuple[Taint, ...], offered: list[str]
) -> None:
    belief = fleet(3, 1, 2)
    belief.apply(Changed(replace(node("n2"), taints=taints)))
    (subject,) = racing(belief, 1)
    plan = planned(planner_of(belief), replace(subject, **of_pod))  # type: ignore[arg-type]  # by name
    assert list(plan.nodes) == offered == list(plan.scores)
    assert plan.placement.node == "n2"
    assert [best.node for best in plan.best] == ["n2", "n3"]


def test_a_taint_that_puts_off_says_nothing_for_the_best_node_where_another_has_it() -> None:
    belief = fleet(3, 1, 2)
    belief.apply(Changed(replace(node("n3"), taints=(WARY,))))
    (subject,) = racing(belief, 1)
    assert list(planned(planner_of(belief), subject).nodes) == ["n2"]


def test_where_no_devices_are_kept_the_scheduler_has_its_say() -> None:
    belief = fleet(2, 2, 0)
    allocation = replace(given(device("n1", 0)), node_selector=None)
    belief.apply(Changed(replace(claim("network"), allocation=allocation)))
    plan = planned(planner_of(belief), pod("p", "network"))
    assert sorted(plan.nodes) == ["n1", "n2", "n3"]
    assert promised(belief) == []


def test_a_pod_that_came_back_from_the_one_node_that_it_was_offered_is_offered_several() -> None:
    belief = fleet(3, 1, 2)
    planner = planner_of(belief)
    (subject,) = racing(belief, 1)
    assert list(planned(planner, subject).nodes) == ["n2"]
    assert list(planned(planner, subject).nodes) == ["n3", "n1"]


@pytest.mark.parametrize("policy", [ONE, TWO], ids=lambda item: item.answer)
def test_r6_a_pod_that_came_back_is_offered_other_nodes_while_there_are_any(policy: AnswerPolicy) -> None:
    belief = fleet(1, 2, 0)
    planner = planner_of(belief, policy)
    (subject,) = racing(belief, 1)
    assert planned(planner, subject).placement.node == "n1"
    assert list(planned(planner, subject).nodes) == names("n2")
    assert set(planned(planner, subject).nodes) <= set(names("n1", "n2"))


def test_r6_where_all_nodes_are_offered_the_one_it_came_back_from_is_last_without_a_score() -> None:
    belief = fleet(1, 2, 3)
    planner = planner_of(belief, EVERY)
    (subject,) = racing(belief, 1)
    planned(planner, subject)
    plan = planned(planner, subject)
    assert list(plan.nodes) == names("n2", "n3", "n1")
    assert plan.scores[names("n1")[0]] == 0


def test_r6_a_pod_comes_back_even_after_its_hold_has_expired() -> None:
    belief = fleet(1, 2, 0)
    planner = planner_of(belief, ONE)
    (subject,) = racing(belief, 1)
    planned(planner, subject)
    belief.ledger.tell(subject.uid, Event.EXPIRED)
    assert planned(planner, subject).placement.node == "n2"


def usable_everywhere(item: ResourceClaim) -> ResourceClaim:
    assert item.allocation is not None
    return replace(item, allocation=replace(item.allocation, node_selector=None))


def test_r6_a_pod_comes_back_although_nothing_had_to_be_held_for_it() -> None:
    belief = fleet(1, 1, 0)
    belief.apply(Changed(usable_everywhere(held(claim("c"), device("n1", 0)))))
    planner = planner_of(belief, ONE)
    first = planned(planner, pod("p", "c")).nodes
    assert planned(planner, pod("p", "c")).nodes != first


def test_r6_a_pod_that_was_only_woken_for_a_node_did_not_come_back_from_it() -> None:
    belief = fleet(1, 2, 0)
    planner = planner_of(belief, ONE)
    (subject,) = racing(belief, 1)
    plan = planner.plan(subject, None, 0.0, is_answer=False)
    assert isinstance(plan, Offer)
    assert planned(planner, subject).placement.node == plan.placement.node == "n1"


def test_a_pod_without_claims_is_none_of_our_business() -> None:
    assert planner_of(fleet(1, 0, 0)).plan(pod("p"), ALL, 0.0) == Plain()


def test_devices_are_chosen_on_nodes_that_are_known_only() -> None:
    belief = fleet(1, 0, 0)
    (subject,) = racing(belief, 1)
    needs = needs_of(subject, belief)
    assert isinstance(needs, Needs)
    assert chooser_of(belief).place(needs, names("nowhere")[0]) == "node nowhere is not known"


SELECTORS = [
    (Requirement(key="metadata.name", operator="In", values=("n2",)), ["n2"]),
    (Requirement(key="metadata.name", operator="In", values=("n0",)), []),
    (Requirement(key="metadata.name", operator="In", values=("n9",)), []),
    (Requirement(key="metadata.name", operator="In", values=("n1", "n3")), ["n1", "n3"]),
    (Requirement(key="metadata.name", operator="NotIn", values=("n1",)), ["n2", "n3"]),
]


@pytest.mark.parametrize(("condition", "nodes"), SELECTORS)
def test_an_allocated_claim_is_usable_where_its_selector_says(condition: Requirement, nodes: list[str]) -> None:
    belief = fleet(1, 1, 1)
    item = held(claim("c"), device("n1", 0))
    assert item.allocation is not None
    selector = NodeSelector((NodeSelectorTerm(fields=(condition,)),))
    belief.apply(Changed(replace(item, allocation=replace(item.allocation, node_selector=selector))))
    plan = planner_of(belief, EVERY).plan(pod("p", "c"), ALL, 0.0)
    assert sorted(plan.nodes if isinstance(plan, Offer) else ()) == nodes
