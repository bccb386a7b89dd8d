"""Nodes of different sizes: the larger ones are kept for those that nobody else can have."""

import pytest

from extender.model.change import Changed
from extender.scheduling.planner import Offer
from extender.topology.document import Document
from tests.scheduling.cast import pod
from tests.scheduling.mixed import asks, cluster, gpus, planner_of, some

SIZES = {"a-eight": 8, "m-four": 4, "z-two": 2}


@pytest.mark.parametrize(("count", "node"), [(1, "z-two"), (2, "z-two"), (3, "m-four"), (4, "m-four"), (8, "a-eight")])
def test_of_empty_nodes_the_smallest_is_broken(count: int, node: str) -> None:
    belief = cluster(*(gpus(name, size) for name, size in SIZES.items()), nodes=list(SIZES))
    planner = planner_of(belief, Document())
    claim = asks("c", some(count))
    belief.apply(Changed(claim))
    plan = planner.plan(pod("p", claim.key.name), None, 0.0)
    assert isinstance(plan, Offer)
    assert plan.placement.node == node
