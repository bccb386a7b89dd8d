"""Trips are remembered for the pods that were sent anywhere last."""

from dataclasses import replace
from typing import Any

import pytest

from extender.model.change import Changed, Gone, Listed
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling import trips
from extender.scheduling.endings import NotBound, Order
from extender.scheduling.planner import Offer
from extender.scheduling.trips import Travellers
from tests.scheduling.cast import claim, planner_of
from tests.scheduling.stage import POD, world_of

N1, N2 = NodeName("n1"), NodeName("n2")


def test_only_where_the_scheduler_was_told_a_pod_comes_back_from_a_node() -> None:
    known = Travellers()
    known.of(Uid("p")).begin(N1, is_answer=False)
    known.end(Uid("p"))
    assert not known.of(Uid("p")).came_back
    assert known.of(Uid("p")).vain == {N1}
    known.of(Uid("p")).begin(N2, is_answer=True)
    assert known.of(Uid("p")).vain == set()
    known.end(Uid("p"))
    known.end(Uid("p"))
    assert known.of(Uid("p")).vain == {N2}


@pytest.mark.parametrize(("is_unbegun", "left"), [(True, set()), (False, {N1})], ids=["not tried", "tried"])
def test_r6_only_from_where_its_binding_was_tried_a_pod_comes_back(*, is_unbegun: bool, left: set[NodeName]) -> None:
    known = Travellers()
    known.of(POD.uid).begin(N1, is_answer=True)
    known.ended(Order(POD.key, POD.uid, N1), NotBound("no", is_unbegun=is_unbegun))
    known.end(POD.uid)
    assert known.of(POD.uid).came_back == left


def test_of_too_many_pods_the_first_are_forgotten() -> None:
    known = Travellers()
    for number in range(trips.REMEMBERED + 1):
        known.of(Uid(f"p{number}")).steered_at = 1.0
    assert known.steered_at(Uid("p0")) is None
    assert known.steered_at(Uid("p1")) == 1.0


@pytest.mark.parametrize(
    "change",
    [Changed(replace(POD, node_name=N1)), Gone(Pod, POD.key), Listed(Pod, ()), Changed(replace(POD, uid=Uid("next")))],
    ids=["bound", "gone", "not listed", "another"],
)
def test_nothing_is_remembered_of_a_pod_that_waits_no_longer(change: Any) -> None:
    world = world_of(claim("a"))
    planner = planner_of(world.belief)
    assert isinstance(planner.plan(POD, [N1], 0.0), Offer)
    assert len(planner.trips._trips) == len(planner.chooser._recall._kept) == 1
    world.belief.apply(change)
    assert len(planner.trips._trips) == len(planner.chooser._recall._kept) == 0
