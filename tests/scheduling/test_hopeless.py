"""A pod that fits nowhere is told so again for the price of a look-up, until it or the cluster changes."""

from dataclasses import replace

from extender.model.change import Changed, Gone
from extender.model.node import Pod
from extender.scheduling.choosing import Chooser
from extender.scheduling.planner import Offer, Planner, Rejection
from loadtests.bench.plan import HOPELESS, SPECS, belief, pod


def test_a_hopeless_pod_is_answered_from_memory_until_the_cluster_changes() -> None:
    known = belief(2)
    planner = Planner(known, Chooser(known, lambda: "share"))
    names = list(known.cluster.snapshot.layout.nodes)
    lost = pod(known, HOPELESS)
    first = planner.plan(lost, names, 0.0)
    assert isinstance(first, Rejection)
    assert planner.plan(lost, names, 1.0) is first
    offer = planner.plan(pod(known, SPECS["one device"]), names, 1.0)
    assert isinstance(offer, Offer)
    again = planner.plan(lost, names, 2.0)
    assert isinstance(again, Rejection)
    assert again is not first


def test_a_hopeless_pod_whose_claim_asks_for_less_now_is_answered_anew() -> None:
    known = belief(2)
    planner = Planner(known, Chooser(known, lambda: "share"))
    lost = pod(known, HOPELESS)
    assert isinstance(planner.plan(lost, None, 0.0), Rejection)
    claim = next(claim for claim in known.cluster.claims if claim.key.name == lost.claims[0].claim_name)
    known.apply(Changed(replace(claim, spec=SPECS["one device"], resource_version="2")))
    assert isinstance(planner.plan(lost, None, 1.0), Offer)


def test_of_a_hopeless_pod_that_is_gone_nothing_is_remembered() -> None:
    known = belief(2)
    planner = Planner(known, Chooser(known, lambda: "share"))
    lost = pod(known, HOPELESS)
    known.apply(Changed(lost))
    assert isinstance(planner.plan(lost, None, 0.0), Rejection)
    assert list(planner._hopeless.rejections) == [lost.uid]
    known.apply(Gone(Pod, lost.key))
    assert not planner._hopeless.rejections
