"""What a pod was offered is what it gets, without another search, until something speaks against it."""

import gc
from dataclasses import replace
from weakref import ref

import pytest

from extender.model.change import Change, Changed, Gone
from extender.model.device import ResourceSlice, Traits
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Node
from extender.scheduling.choosing import Chooser
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.planner import Offer, Planner
from extender.scheduling.ranking import Answer, AnswerPolicy
from extender.state.belief import Belief
from extender.state.ledger import Event
from tests.scheduling.cast import (
    belief_of,
    chooser_of,
    claim,
    device,
    gpus,
    held,
    names,
    node,
    planner_of,
    pod,
    surveyed,
)

N1 = NodeName("n1")
CLAIM = claim("c")
POD = pod("p", "c")


def world() -> Belief:
    return belief_of(node("n1"), gpus("n1", 4), node("n2"), gpus("n2", 4), CLAIM, claim("other"), POD)


def needs(belief: Belief) -> Needs:
    found = needs_of(POD, belief)
    assert isinstance(found, Needs)
    return found


def placed(chooser: Chooser) -> Placement:
    found = chooser.place(needs(chooser.belief), N1)
    assert isinstance(found, Placement)
    return found


def test_what_was_found_is_had_again() -> None:
    chooser = chooser_of(world())
    assert chooser.kept(needs(chooser.belief), N1) is None
    first = placed(chooser)
    assert chooser.again(needs(chooser.belief), N1) is first


@pytest.mark.parametrize(
    "change",
    [
        Changed(held(claim("other"), device("n1", 0))),
        Changed(replace(node("n1"), labels=(("zone", "b"),))),
        Changed(gpus("n1", 3)),
        Changed(replace(CLAIM, resource_version="2")),
    ],
    ids=["device-taken", "node-changed", "devices-changed", "claim-changed"],
)
def test_nothing_is_kept_that_something_speaks_against(change: Change) -> None:
    belief = world()
    chooser = chooser_of(belief)
    placed(chooser)
    belief.apply(change)
    assert chooser.kept(needs(belief), N1) is None


def test_what_others_take_beside_it_does_not_matter() -> None:
    belief = world()
    chooser = chooser_of(belief)
    first = placed(chooser)
    belief.apply(Changed(held(claim("other"), device("n1", 3))))
    assert chooser.kept(needs(belief), N1) is first


@pytest.mark.parametrize(
    "changes",
    [
        (Changed(gpus("n2", 3)),),
        # One that comes before those of the node, so that each device has another row.
        (Changed(gpus("a", 2)),),
        (Changed(node("a")), Changed(gpus("a", 2))),
        (Gone(ResourceSlice, ObjectKey("", "n2-gpus")),),
    ],
    ids=["changed", "of-no-node", "of-a-new-node", "gone"],
)
def test_what_is_published_elsewhere_does_not_matter(changes: tuple[Change, ...]) -> None:
    belief = world()
    chooser = chooser_of(belief)
    first = placed(chooser)
    for change in changes:
        belief.apply(change)
    assert chooser.kept(needs(belief), N1) is first
    # Its device is looked for where it is now.
    (mine,) = (result.device for _, given in first.claims for result in given.devices)
    belief.apply(Changed(held(claim("other"), mine)))
    assert chooser.kept(needs(belief), N1) is None


def test_what_others_were_promised_is_not_kept_and_what_the_pod_itself_was_promised_is() -> None:
    belief = world()
    chooser = chooser_of(belief)
    first = placed(chooser)
    assert belief.ledger.offer(first.promise(needs(belief), 0.0))
    assert chooser.kept(needs(belief), N1) is first
    belief.ledger.tell(POD.uid, Event.EXPIRED)
    mine = first.promise(needs(belief), 0.0)
    theirs = tuple(replace(hold, claim=Uid("theirs")) for hold in mine.claims)
    assert belief.ledger.offer(replace(mine, pod=Uid("another"), claims=theirs))
    assert chooser.kept(needs(belief), N1) is None


def test_shared_devices_are_not_kept() -> None:
    shared = gpus("n1", 2, Traits(allow_multiple_allocations=True))
    chooser = chooser_of(belief_of(node("n1"), shared, CLAIM, POD))
    placed(chooser)
    assert chooser.kept(needs(chooser.belief), N1) is None


def test_a_node_that_is_gone_has_nothing() -> None:
    belief = world()
    chooser = chooser_of(belief)
    placed(chooser)
    belief.apply(Gone(Node, ObjectKey("", "n1")))
    assert chooser.kept(needs(belief), N1) is None


def ahead(planner: Planner) -> Offer:
    plan = planner.plan(POD, None, 0.0, is_answer=False)
    assert isinstance(plan, Offer)
    return plan


def test_who_asks_about_the_node_of_a_plan_alone_is_told_that_plan() -> None:
    planner = planner_of(world())
    before = ahead(planner)
    plan = planner.plan(POD, [before.placement.node], 1.0)
    assert isinstance(plan, Offer)
    assert plan.placement is before.placement
    assert plan.nodes == (before.placement.node,)
    promise = planner.belief.ledger.of_pod(POD.uid)
    assert promise is not None
    assert promise.is_answer


def test_who_asks_about_all_nodes_before_hearing_of_the_plan_is_told_it() -> None:
    planner = planner_of(world())
    before = ahead(planner)
    plan = planner.plan(POD, names("n1", "n2"), 1.0)
    assert isinstance(plan, Offer)
    assert plan.placement is before.placement
    assert plan.nodes == (before.placement.node,)


def test_who_is_to_be_offered_all_nodes_has_them_looked_at() -> None:
    planner = planner_of(world(), AnswerPolicy(Answer.ALL))
    before = ahead(planner)
    plan = planner.plan(POD, names("n1", "n2"), 1.0)
    assert isinstance(plan, Offer)
    assert plan.placement is not before.placement
    assert sorted(plan.nodes) == ["n1", "n2"]


def test_who_asks_about_other_nodes_alone_has_them_looked_at() -> None:
    planner = planner_of(world())
    node = ahead(planner).placement.node
    (other,) = {*names("n1", "n2")} - {node}
    plan = planner.plan(POD, [other], 1.0)
    assert isinstance(plan, Offer)
    assert plan.placement.node == other


def test_a_plan_whose_devices_went_elsewhere_is_made_anew() -> None:
    belief = world()
    planner = planner_of(belief)
    before = ahead(planner)
    (taken,) = (result.device for _, given in before.placement.claims for result in given.devices)
    belief.apply(Changed(held(claim("other"), taken)))
    plan = planner.plan(POD, [before.placement.node], 1.0)
    assert isinstance(plan, Offer)
    (other,) = (result.device for _, given in plan.placement.claims for result in given.devices)
    assert other != taken


def test_a_plan_that_is_kept_says_what_it_said_and_keeps_no_node_as_it_was_judged() -> None:
    planner = planner_of(world())
    before = ahead(planner)
    told, judged = (before.fitting, before.rejected), ref(surveyed(before).fits)
    del before
    gc.collect()
    assert judged() is None
    plan = planner.plan(POD, names("n1"), 1.0)
    assert isinstance(plan, Offer)
    assert (plan.fitting, plan.rejected) == told
    assert told[0] > 0
