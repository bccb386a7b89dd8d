"""Nodes of which partitions are asked for are packed and spread like others."""

import json
from itertools import count

import pytest

from extender.allocation.solve import FIRST
from extender.model.change import Changed
from extender.model.claim import DeviceClass, Selector
from extender.model.device import ResourceSlice
from extender.model.names import ClassName
from extender.model.parse import parse_slice
from extender.scheduling.advice import Advice, Advisor
from extender.scheduling.commons import Commons
from extender.scheduling.planner import Offer, Planner
from extender.scheduling.taste import Taste
from extender.state.belief import Belief
from extender.topology.document import Document
from extender.topology.policies import Policies
from tests.scheduling.cast import belief_of, node, pod
from tests.scheduling.machines import NVIDIA
from tests.scheduling.mixed import asks, planner_of, some
from tests.topology.mig import RAW

SMALL = ClassName("small")
PROFILE = f"device.attributes['{NVIDIA}'].type == 'mig' && device.attributes['{NVIDIA}'].profile == '1g.5gb'"
SMALL_CLASS = DeviceClass(name=SMALL, selectors=(Selector(PROFILE),))
NUMBERS = count()


def chips_on(name: str) -> list[ResourceSlice]:
    """Publish one A100 that can be cut on a node."""
    text = json.dumps(RAW["slices"]).replace("mig-a100", name)
    parsed = [parse_slice(one) for one in json.loads(text)]
    return [one for one in parsed if isinstance(one, ResourceSlice)]


def cluster(nodes: int) -> Belief:
    names = [f"n{index:02}" for index in range(nodes)]
    slices = [one for name in names for one in chips_on(name)]
    return belief_of(SMALL_CLASS, *map(node, names), *slices)


def placed(belief: Belief, planner: Planner) -> str:
    """Return the node of the next pod that asks for a small partition."""
    name = f"c{next(NUMBERS)}"
    belief.apply(Changed(asks(name, some(1, SMALL))))
    plan = planner.plan(pod(name, name), None, 0.0)
    assert isinstance(plan, Offer)
    return plan.placement.node


@pytest.mark.parametrize(("policy", "nodes"), [("pack", 1), ("protect", 1), ("spread", 4)])
def test_partitions_are_packed_and_spread_over_nodes(policy: str, nodes: int) -> None:
    belief = cluster(4)
    planner = planner_of(belief, Document(policies=Policies(default=policy)))
    assert len({placed(belief, planner) for _ in range(4)}) == nodes


def test_partitions_are_spread_over_more_nodes_than_are_looked_at_closely() -> None:
    belief = cluster(30)
    planner = planner_of(belief, Document(policies=Policies(default="spread")))
    assert len({placed(belief, planner) for _ in range(30)}) == 30


def test_partitions_are_not_counted_as_free_which_cannot_all_be_given() -> None:
    belief = cluster(2)
    placed(belief, planner_of(belief, Document()))
    belief.apply(Changed(asks("c", some(1, SMALL))))
    offer, advised = planner_of(belief, Document()).plan(pod("p", "c"), None, 0.0), advice(belief)
    assert isinstance(offer, Offer)
    for best in (offer.best, advised.best):
        assert [item.free_devices for item in best] == [None, None]
        assert not any("free" in item.words for item in best)


def advice(belief: Belief) -> Advice:
    taste = Taste(Document(), belief.learning.mix_for, Commons(belief.loads))
    names = tuple(str(name) for name in belief.cluster.snapshot.layout.nodes)
    found = Advisor(belief, lambda: "share", FIRST, taste).advise(pod("p", "c"), names)
    assert isinstance(found, Advice)
    return found
