"""Pods go where devices are ready, before nodes on which they must be made ready first."""

import pytest

from extender.model.change import Changed
from extender.model.device import Traits
from extender.scheduling.planner import Offer
from extender.topology.policies import Policies
from tests.scheduling.cast import pod
from tests.scheduling.mixed import asks, cluster, gpus, planner_by, some

ATTACHED = Traits(binds_to_node=True, binding_conditions=("attached",))


@pytest.mark.parametrize("count", [1, 2])
def test_a_node_with_ready_devices_comes_before_one_whose_devices_must_be_attached(count: int) -> None:
    others = [gpus(f"a{index}", count, traits=ATTACHED) for index in range(40)]
    belief = cluster(*others, gpus("b", 8), nodes=["b", *(f"a{index}" for index in range(40))])
    belief.apply(Changed(asks("c", some(count))))
    plan = planner_by(belief, Policies()).plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Offer)
    assert plan.placement.node == "b"
