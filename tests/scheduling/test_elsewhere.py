"""A pod whose claim is allocated where the scheduler does not offer a node is told just that, and is sent there."""

from dataclasses import replace

import pytest

from extender.allocation.eligibility import NODE_OPERATIONS
from extender.model.claim import ResourceClaim
from extender.model.names import NodeName
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.planner import Offer, Rejection
from extender.scheduling.vocabulary import Word
from tests.scheduling.cast import belief_of, claim, device, gpus, held, names, node, planner_of, pod

P = pod("p", "c")


def test_a_pod_whose_claim_is_on_a_node_that_is_not_offered_is_told_of_its_claim_and_sent_there() -> None:
    belief = belief_of(node("n1"), node("n2"), gpus("n1", 1), gpus("n2", 1), held(claim("c"), device("n1", 0)), P)
    plan = planner_of(belief).plan(P, names("n2"), 0.0)
    assert isinstance(plan, Rejection)
    assert (plan.word, plan.elsewhere) == (Word.CLAIM_ELSEWHERE, "n1")
    assert plan.detail == "claim c is allocated on node n1"


def lent(name: str, index: int, *, but: str) -> ResourceClaim:
    """Return a claim whose devices can be used on all nodes but one."""
    item = held(claim(name), device("n1", index))
    assert item.allocation is not None
    others = NodeSelectorTerm(fields=(Requirement(key="metadata.name", operator="NotIn", values=(but,)),))
    return replace(item, allocation=replace(item.allocation, node_selector=NodeSelector((others,))))


@pytest.mark.parametrize(
    ("claims", "asked", "detail"),
    [
        ([lent("c", 0, but="n3")], ["n3"], "claim c can be used on 2 nodes, such as n1"),
        # Each can be used on one of the nodes, so that neither is to be blamed alone.
        (
            [lent("c", 0, but="n1"), lent("d", 1, but="n2")],
            ["n1", "n2"],
            "a claim of the pod is allocated elsewhere",
        ),
    ],
)
def test_of_claims_that_several_nodes_can_use_the_one_is_named_that_none_of_the_offered_can(
    claims: list[ResourceClaim], asked: list[str], detail: str
) -> None:
    subject = pod("p", *(item.key.name for item in claims))
    belief = belief_of(*map(node, ("n1", "n2", "n3")), *claims, subject)
    plan = planner_of(belief).plan(subject, names(*asked), 0.0)
    assert isinstance(plan, Rejection)
    assert (plan.word, plan.detail) == (Word.CLAIM_ELSEWHERE, detail)


def test_a_pod_without_an_allocation_is_told_of_free_devices_that_were_not_offered() -> None:
    belief = belief_of(node("n1"), node("n2"), gpus("n1", 1), claim("c"), P)
    plan = planner_of(belief).plan(P, names("n2"), 0.0)
    assert isinstance(plan, Rejection)
    assert (plan.word, plan.elsewhere) == (Word.NOT_OFFERED, "n1")


def test_a_pod_is_not_sent_to_a_node_whose_device_plugin_serves_what_it_asks_for() -> None:
    subject = pod("p", gpus=1)
    belief = belief_of(node("n1", {"ex.com/gpu": 1}), node("n2"), subject)
    planner = planner_of(belief)
    plan = planner.plan(subject, names("n2"), 0.0)
    assert isinstance(plan, Rejection)
    assert (plan.word, plan.elsewhere) == (Word.NO_DEVICES, None)
    assert isinstance(planner.plan(subject, None, 0.0, is_answer=False), Rejection)
    assert isinstance(planner.plan(subject, names("n1", "n2"), 0.0), Offer)


def test_a_claim_whose_devices_skip_node_operations_is_used_only_on_nodes_that_declare_to_support_it() -> None:
    shared = held(claim("c"), device("n1", 0))
    assert shared.allocation is not None
    given = replace(shared.allocation.devices[0], skip_node_operations=("*",))
    shared = replace(shared, allocation=replace(shared.allocation, devices=(given,), node_selector=None))
    able = replace(node("n2"), declared_features=(NODE_OPERATIONS,))
    planner = planner_of(belief_of(node("n1"), able, shared, P))
    assert isinstance(planner.plan(P, names("n1"), 0.0), Rejection)
    assert isinstance(planner.plan(P, names("n1", "n2"), 0.0), Offer)
    needs = needs_of(P, planner.belief)
    assert isinstance(needs, Needs)
    assert planner.chooser.place(needs, NodeName("n1")) == "claim c is allocated on another node"
