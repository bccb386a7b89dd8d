"""What is recorded of decisions: of a bound pod the devices that it has, and what speaks for these."""

from dataclasses import replace

import pytest

from extender.model.change import Changed
from extender.model.device import NodeSelection, Traits
from extender.model.names import DriverName, NodeName
from extender.model.node import Container, Pod
from extender.model.quantity import parse_quantity
from extender.scheduling.account import note_of, of_plan, of_result
from extender.scheduling.decision import Decision
from extender.scheduling.endings import Bound, NotBound
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.planner import Offer, Planner, Rejection
from extender.state.belief import Belief
from extender.state.ledger import Event
from tests.scheduling.cast import belief_of, claim, gpus, held, names, node, planner_of, pod
from tests.scheduling.machines import fleet, gpu, planner_with_taste, wanted

(A,) = names("a")
POD = pod("p", "c")
GPUS = {count: (("ex.com/gpu", parse_quantity(str(count))),) for count in (1, 2, 3)}
BEST, WORSE = "links 25+25 GB/s of best 50", "links 25 GB/s of best 50"


def offered(belief: Belief, planner: Planner) -> Decision:
    belief.apply(Changed(wanted("c", 2)))
    belief.apply(Changed(POD))
    plan = planner.plan(POD, None, 0.0)
    assert isinstance(plan, Offer)
    return of_plan(POD, plan, 1, 0.0)


def bound(belief: Belief, planner: Planner, offer: Decision) -> tuple[Decision, Placement]:
    needs = needs_of(POD, belief)
    assert isinstance(needs, Needs)
    placement = planner.chooser.again(needs, A)
    assert isinstance(placement, Placement)
    return of_result(POD, Bound(POD, placement), A, offer, 1.0), placement


def test_a_bound_pod_is_explained_by_what_it_was_offered_where_it_got_that() -> None:
    belief = fleet({"a": "dgx-1v"}, {"a": (1, 2, 4, 5, 6, 7)})
    planner = planner_with_taste(belief)
    offer = offered(belief, planner)
    decision, _ = bound(belief, planner, offer)
    assert (decision.given, decision.best, decision.basis) == (offer.given, offer.best, offer.basis)
    assert BEST in note_of(decision)


@pytest.mark.parametrize(
    ("selection", "traits"),
    [
        (NodeSelection(all_nodes=True), Traits()),
        (None, Traits(selection=NodeSelection(node_name=NodeName("a")))),
    ],
    ids=["all nodes", "by device"],
)
def test_devices_that_several_nodes_may_see_are_not_counted_as_free_on_one(
    selection: NodeSelection | None, traits: Traits
) -> None:
    own = replace(gpus("a", 2), name="own", driver=DriverName("nic.example.com"))
    shared = replace(gpus("shared", 2, traits), selection=selection)
    belief = belief_of(node("a"), own, shared, claim("c"), POD)
    plan = planner_of(belief).plan(POD, None, 0.0)
    assert isinstance(plan, Offer)
    assert [item.free_devices for item in plan.best] == [None]
    assert "free" not in note_of(of_plan(POD, plan, 1, 0.0))


TWO = (Container(name="main", requests=GPUS[1]), Container(name="other", requests=GPUS[3]))
RIVALS = (Container(name="main", requests=GPUS[1]), Container(name="other", requests=GPUS[2]))


@pytest.mark.parametrize(
    ("subject", "told"),
    [
        (pod("p", gpus=3), "ex.com/gpu of container main needs 3 free devices, has 2: no other matches"),
        (
            replace(POD, claims=(), containers=TWO),
            "ex.com/gpu of container other needs 3 free devices, has 2: no other matches",
        ),
        (pod("p", "c", gpus=3), "ex.com/gpu of container main needs 3 free devices, has 2: no other matches"),
        (
            replace(POD, claims=(), containers=RIVALS),
            "ex.com/gpu of container main and ex.com/gpu of container other need 3 free devices together, has 2",
        ),
    ],
    ids=["one container", "two containers", "a claim beside it", "two that exclude each other"],
)
def test_a_pod_with_extended_resources_is_told_of_these_and_not_of_a_claim_that_nobody_wrote(
    subject: Pod, told: str
) -> None:
    belief = belief_of(node("a"), gpus("a", 2), claim("c"), subject)
    planner = planner_of(belief)
    plan = planner.plan(subject, None, 0.0)
    assert isinstance(plan, Rejection)
    decision = of_plan(subject, plan, 1, 0.0)
    assert (decision.detail, [tally.message for tally in decision.rejected]) == (told, [told])
    assert f"{told} (1 node, such as a)" in note_of(decision)


def test_nodes_that_lack_extended_resources_are_told_of_beside_an_offer_and_a_bind_that_failed() -> None:
    subject = pod("p", gpus=2)
    belief = belief_of(node("a"), gpus("a", 1), node("b"), gpus("b", 2), subject)
    plan = planner_of(belief).plan(subject, None, 0.0)
    assert isinstance(plan, Offer)
    told = "ex.com/gpu of container main needs 2 free devices, has 1: no other matches"
    assert [tally.message for tally in of_plan(subject, plan, 1, 0.0).rejected] == [told]
    failed = NotBound("claim p-extended-resources, request container-0-request-0: there is no class gpu")
    detail = of_result(subject, failed, A, None, 1.0).detail
    assert detail == "ex.com/gpu of container main: there is no class gpu"


def test_a_bound_pod_is_explained_by_its_devices_where_others_have_taken_those_that_it_was_offered() -> None:
    belief = fleet({"a": "dgx-1v"}, {"a": (2, 4, 5, 6, 7)})
    planner = planner_with_taste(belief)
    offer = offered(belief, planner)
    assert [item.device for item in offer.given] == [gpu("a", 0), gpu("a", 3)]
    belief.ledger.tell(POD.uid, Event.EXPIRED)
    belief.apply(Changed(held(wanted("other", 1), gpu("a", 3))))
    decision, placement = bound(belief, planner, offer)
    assert [item.device for item in decision.given] == [gpu("a", 0), gpu("a", 1)]
    assert placement.appraisal is not None
    (best,) = decision.best
    assert (best.value, best.parts) == (placement.appraisal.value, placement.appraisal.parts)
    assert (best.node, best.score) == (offer.best[0].node, offer.best[0].score)
    assert BEST in note_of(offer)
    assert WORSE in note_of(decision)
