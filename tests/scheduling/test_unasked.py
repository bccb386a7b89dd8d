"""Who asks about a pod of which nothing is remembered is told what is known of it."""

from dataclasses import replace

import pytest

from extender.model.change import Changed
from extender.model.claim import ResourceClaim
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.unasked import UNKNOWN, WAITS, unasked
from tests.scheduling.cast import belief_of, claim, device, held, pod

POD = pod("p", "a")


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ((POD,), "there is no claim a"),
        ((POD, replace(claim("a"), is_deleting=True)), "claim a is being deleted"),
        ((replace(POD, scheduling_gates=("a", "b")), claim("a")), "it is held back by scheduling gates: a, b"),
        ((replace(POD, refusal="0/3 nodes"), claim("a")), "kube-scheduler says of it: 0/3 nodes"),
        ((POD, claim("a")), WAITS),
        ((replace(POD, scheduler="another"),), UNKNOWN),
        ((), UNKNOWN),
    ],
    ids=["no claim", "a claim that goes", "gates", "refused by itself", "nothing", "of another scheduler", "unknown"],
)
def test_what_keeps_the_scheduler_from_asking_is_told(known: tuple[Pod | ResourceClaim, ...], told: str) -> None:
    assert unasked(POD.key, belief_of(*known)) == told


def test_of_a_pod_that_is_bound_its_node_is_told() -> None:
    belief = belief_of()
    bound = Footprint(key=ObjectKey("ns", "p"), uid=Uid("u"), node=NodeName("n1"), amounts=(("pods", 1),))
    belief.apply(Changed(bound))
    assert unasked(bound.key, belief) == "it is on node n1"


def test_of_a_pod_that_was_bound_before_we_came_its_devices_are_told() -> None:
    had, others = held(claim("a"), device("n1", 0), device("n1", 1), by=POD), held(claim("b"), device("n1", 2))
    belief = belief_of(had, others)
    amounts = (("pods", 1),)
    belief.apply(Changed(Footprint(key=POD.key, uid=POD.uid, node=NodeName("n1"), amounts=amounts, claims="a b gone")))
    assert unasked(POD.key, belief) == "it is on node n1 with gpu=gpu.example.com/n1/d0, gpu=gpu.example.com/n1/d1"


def test_a_claim_that_a_bound_pod_names_twice_is_told_once() -> None:
    belief = belief_of(held(claim("a"), device("n1", 0), by=POD))
    bound = Footprint(key=POD.key, uid=POD.uid, node=NodeName("n1"), amounts=(("pods", 1),), claims="a a")
    belief.apply(Changed(bound))
    assert unasked(POD.key, belief) == "it is on node n1 with gpu=gpu.example.com/n1/d0"
