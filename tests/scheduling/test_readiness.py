"""Pods go where devices are ready, before nodes on which they must be made ready first."""

from dataclasses import replace

import pytest

from extender.model.change import Changed
from extender.model.claim import RequestSlot, Selector
from extender.model.device import PLAIN, ResourceSlice, Traits
from extender.model.names import PoolName
from extender.scheduling.placement import Placement
from extender.scheduling.planner import Offer, Trouble
from extender.state.belief import Belief
from extender.topology.document import Document, document_of
from extender.topology.policies import Policies
from tests.scheduling.cast import pod
from tests.scheduling.machines import NVIDIA
from tests.scheduling.mixed import H100, NIC, asks, cluster, gpus, nics, one, planner_by, planner_of, published, some

ATTACHED = Traits(binds_to_node=True, binding_conditions=("attached",))
OTHER = "Another GPU"


def placed(belief: Belief, *requests: RequestSlot) -> Placement:
    belief.apply(Changed(asks("c", *requests)))
    plan = planner_by(belief, Policies()).plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Offer)
    return plan.placement


def beside(item: ResourceSlice) -> ResourceSlice:
    """Put devices beside others of their node and driver."""
    return replace(item, name=f"{item.name}-beside", pool=PoolName(f"{item.pool}-beside"))


@pytest.mark.parametrize("count", [1, 2])
def test_a_node_with_ready_devices_comes_before_one_whose_devices_must_be_attached(count: int) -> None:
    others = [gpus(f"a{index}", count, traits=ATTACHED) for index in range(40)]
    belief = cluster(*others, gpus("b", 8), nodes=["b", *(f"a{index}" for index in range(40))])
    assert placed(belief, some(count)).node == "b"


def test_of_too_few_ready_devices_all_are_given_before_others_that_would_be_better() -> None:
    """Two that must be attached share a NUMA node; the one that is ready is on another."""
    ready, attached = gpus("a", 1), beside(gpus("a", 4, traits=ATTACHED))
    kept = replace(attached, devices=attached.devices[2:])
    placement = placed(cluster(ready, kept, nics("a", 4)), some(2), some(1, NIC, "nic"))
    given = [item.device for _, allocation in placement.claims for item in allocation.devices]
    assert sorted(device.pool for device in given if device.driver == NVIDIA) == ["a", "a-beside"]


def test_a_node_is_not_hidden_by_what_its_first_alternative_would_need() -> None:
    """Both requests would have its only H100, which must be attached; one is content with another, which is ready."""
    big, small = (
        replace(one(1), name=name, selectors=(Selector(f"device.attributes['{NVIDIA}'].productName == '{product}'"),))
        for name, product in (("big", H100), ("small", OTHER))
    )
    names = [f"a{index:03}" for index in range(200)]
    worse = [gpus(name, 2 + index % 7, traits=ATTACHED) for index, name in enumerate(names)]
    best = gpus("b", 1, traits=ATTACHED), beside(published("b", NVIDIA, 1, product=OTHER, traits=PLAIN))
    either = RequestSlot(name="either", first_available=(big, small))
    belief = cluster(*best, *worse, nodes=["b", *names])
    assert placed(belief, either, RequestSlot(name="one", exactly=replace(big, name="one"))).node == "b"


def test_a_strict_policy_has_what_there_is_though_most_sets_of_what_is_ready_are_none_of_its() -> None:
    """Eight linked with each other, eight more, and two: seven and eight of them fit, and six must be attached."""
    links = [[a, b] for a in range(18) for b in range(a + 1, 18) if a // 8 == b // 8]
    product = {"product": H100, "count": 18, "linkWeight": 25, "links": links}
    document = document_of({"deviceTopology": [{"match": {"driver": NVIDIA}, "products": [product]}]})
    assert isinstance(document, Document)
    attached = {7, 14, 15, 17}
    whole = gpus("a", 18)
    devices = (
        replace(item, traits=ATTACHED) if place in attached else item for place, item in enumerate(whole.devices)
    )
    belief = cluster(replace(whole, devices=tuple(devices)), nics("a", 18))
    belief.apply(Changed(asks("c", some(7, name="seven"), some(8, name="eight"), policy="linked")))
    planner = planner_of(belief, document)
    plan = planner.plan(pod("p", "c"), None, 0.0)
    while isinstance(plan, Trouble) and plan.goes_on:
        plan = planner.plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Offer)
