"""Pods go where devices are ready, and stay so, before nodes on which they must be made ready, or are evicted."""

from dataclasses import replace

import pytest

from extender.model.change import Changed
from extender.model.claim import RequestSlot, Selector
from extender.model.device import PLAIN, ResourceSlice, Traits
from extender.model.names import DeviceName, PoolName
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector, Toleration
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


SICK = DeviceTaintRule(
    name="sick", taint=Taint(key="sick", effect="NoExecute"), selector=TaintSelector(pool=PoolName("a"))
)
FOR_A_TIME = Toleration(key="sick", operator="Exists", effect="NoExecute", seconds=60)
FOR_EVER, OF_ANY_EFFECT = replace(FOR_A_TIME, seconds=None), replace(FOR_A_TIME, seconds=None, effect="")


def given(toleration: Toleration, rule: DeviceTaintRule, *nodes: str) -> tuple[Placement, str]:
    """Place a pod that puts up with some taints, where *rule* holds; return which device it has, too."""
    belief = cluster(*(gpus(name, 2) for name in nodes), nodes=list(nodes))
    belief.apply(Changed(rule))
    placement = placed(belief, RequestSlot(name="gpu", exactly=replace(one(1), tolerations=(toleration,))))
    ((_, allocation),) = placement.claims
    return placement, f"{allocation.devices[0].device.pool}/{allocation.devices[0].device.device}"


@pytest.mark.parametrize(
    ("toleration", "rule", "node"),
    [
        (FOR_A_TIME, SICK, "b"),
        (OF_ANY_EFFECT, SICK, "b"),
        (FOR_EVER, SICK, "a"),
        (FOR_A_TIME, replace(SICK, taint=replace(SICK.taint, effect="None")), "a"),
        (FOR_A_TIME, replace(SICK, selector=TaintSelector()), "a"),
    ],
    ids=["for a time", "not by that effect", "for ever", "nobody is evicted", "everywhere"],
)
def test_a_pod_is_not_put_where_it_would_be_evicted_in_time_if_others_do(
    toleration: Toleration, rule: DeviceTaintRule, node: str
) -> None:
    """Else whoever replaces it would be put there, too, and evicted at once, again and again."""
    assert given(toleration, rule, "a", "b")[0].node == node


def test_of_the_devices_of_a_node_too_it_is_given_those_that_it_keeps() -> None:
    first = given(FOR_EVER, SICK, "a")[1].partition("/")[2]
    rule = replace(SICK, selector=TaintSelector(device=DeviceName(first)))
    assert given(FOR_EVER, rule, "a")[1] == f"a/{first}"
    assert given(FOR_A_TIME, rule, "a")[1] != f"a/{first}"


@pytest.mark.parametrize("first", ["kept", "lost"])
@pytest.mark.parametrize("sick", ["d0", "d1"])
def test_who_is_not_evicted_for_a_device_leaves_the_others_to_who_is(sick: str, first: str) -> None:
    belief = cluster(gpus("a", 2))
    belief.apply(Changed(replace(SICK, selector=TaintSelector(device=DeviceName(sick)))))
    slots = (
        RequestSlot(name=name, exactly=replace(one(1), name=name, tolerations=(toleration,)))
        for name, toleration in (("kept", FOR_EVER), ("lost", FOR_A_TIME))
    )
    placement = placed(belief, *sorted(slots, key=lambda slot: slot.name != first))
    ((_, allocation),) = placement.claims
    assert {item.request: item.device.device == sick for item in allocation.devices} == {"kept": True, "lost": False}


def test_that_a_pod_will_be_evicted_is_told_with_what_it_is_given() -> None:
    placement, _ = given(FOR_A_TIME, SICK, "a")
    assert placement.appraisal is not None
    assert "1 for whose taints the pod is evicted in time" in [part.text for part in placement.appraisal.parts]
