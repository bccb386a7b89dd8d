"""A claim whose pods are evicted for a taint takes no others: they would be evicted, too, and it never be freed."""

from dataclasses import replace

import pytest

from extender.allocation.features import Features
from extender.allocation.tainting import Tainting
from extender.model.change import Changed, Gone
from extender.model.claim import ResourceClaim
from extender.model.device import Device, ResourceSlice, Traits
from extender.model.names import DeviceKey, ObjectKey, PoolName
from extender.model.node_selector import NodeSelector
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector, Toleration
from extender.scheduling.endings import NotBound
from extender.scheduling.needs import Unplaceable, needs_of
from extender.scheduling.planner import Offer, Rejection
from extender.scheduling.remedy import unusable
from extender.scheduling.vocabulary import Word
from extender.scheduling.waking import Waker
from tests.scheduling.cast import belief_of, claim, device, given, gpus, held, node, planner_of
from tests.scheduling.server import World
from tests.scheduling.stage import N1, N2, OTHER, POD, bind, world_of

SICK = Taint(key="sick", value="very", effect="NoExecute")
RULE = DeviceTaintRule(name="rule", taint=SICK, selector=TaintSelector(pool=PoolName("n1")))
COOL = replace(RULE, taint=replace(SICK, effect="NoSchedule"))
USED = held(claim("a"), device("n1", 0), by=OTHER)
PATIENT = Toleration(key="sick", operator="Exists", effect="NoExecute", seconds=60)


def tolerating(item: ResourceClaim, toleration: Toleration = PATIENT) -> ResourceClaim:
    assert item.allocation is not None
    devices = tuple(replace(each, tolerations=(toleration,)) for each in item.allocation.devices)
    return replace(item, allocation=replace(item.allocation, devices=devices))


def looking(item: ResourceClaim) -> ResourceClaim:
    """Let a claim have what it has by admin access alone: nothing is taken then."""
    assert item.allocation is not None
    devices = tuple(replace(each, admin_access=True) for each in item.allocation.devices)
    return replace(item, allocation=replace(item.allocation, devices=devices))


def beside(used: ResourceClaim, *changes: DeviceTaintRule | ResourceSlice) -> World:
    world = world_of(used)
    for change in changes:
        world.belief.apply(Changed(change))
    return world


@pytest.mark.parametrize(
    ("used", "changes"),
    [
        (USED, (RULE,)),
        (USED, (gpus("n1", 2, Traits(taints=(SICK,))),)),
        (USED, (RULE, gpus("n1", 0))),
        # For eviction Kubernetes looks at those alone that name the effect.
        (tolerating(USED, replace(PATIENT, effect="", seconds=None)), (RULE,)),
    ],
    ids=["rule", "slice", "rule on what is published no more", "tolerated without a word of the effect"],
)
def test_a_claim_whose_pods_are_evicted_takes_no_other(
    used: ResourceClaim, changes: tuple[DeviceTaintRule | ResourceSlice, ...]
) -> None:
    world = beside(used, *changes)
    plan = planner_of(world.belief).plan(POD, [N1, N2], 0.0)
    assert isinstance(plan, Rejection)
    assert plan.word is Word.CLAIM_TAINTED
    result = bind(world)
    assert isinstance(result, NotBound)
    assert result.message == "claim a: device gpu.example.com/n1/d0 has taint sick=very:NoExecute"
    assert world.taken == []


@pytest.mark.parametrize(
    ("used", "changes"),
    [
        (USED, ()),
        (USED, (COOL,)),
        (USED, (replace(RULE, selector=TaintSelector(pool=PoolName("n2"))),)),
        (USED, (gpus("n1", 2, Traits(taints=(SICK,))), replace(gpus("n1", 2), name="newer", generation=2))),
        (tolerating(USED), (RULE,)),
        (held(claim("a"), device("n1", 0), by=POD), (RULE,)),
    ],
    ids=["no taint", "no eviction", "of others", "of an older generation", "tolerated", "already the pod's"],
)
def test_a_claim_whose_pods_are_not_evicted_takes_another(
    used: ResourceClaim, changes: tuple[DeviceTaintRule | ResourceSlice, ...]
) -> None:
    assert isinstance(planner_of(beside(used, *changes).belief).plan(POD, [N1, N2], 0.0), Offer)


@pytest.mark.parametrize("off", [Features(device_taints=False), Features(device_taint_rules=False)])
def test_nobody_is_evicted_by_what_is_turned_off(off: Features) -> None:
    belief = belief_of(node("n1"), gpus("n1", 2), USED, POD, RULE, features=off)
    assert isinstance(planner_of(belief).plan(POD, [N1], 0.0), Offer)


def test_rules_are_gone_through_once_for_all_pods_of_a_claim_until_one_of_them_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two hundred pods may share a claim, and rules be thousands."""
    asked, belief = list[DeviceKey](), beside(USED, RULE).belief

    def taints(self: Tainting, key: DeviceKey, device: Device) -> tuple[Taint, ...]:
        asked.append(key)
        return genuine(self, key, device)

    genuine = Tainting.taints
    monkeypatch.setattr(Tainting, "taints", taints)
    for version, change in enumerate((Changed(RULE), Changed(COOL)), 1):
        belief.apply(change)
        for number in range(3):
            belief.apply(Changed(held(claim("b", version=number), device("n2", 0), by=OTHER)))
            assert isinstance(needs_of(POD, belief), Unplaceable) == (change == Changed(RULE))
        assert len(asked) == version


@pytest.mark.parametrize("used", [USED, looking(USED)], ids=["held", "looked at"])
def test_a_pod_that_was_kept_from_a_claim_is_woken_once_that_is_free_or_the_taint_gone(used: ResourceClaim) -> None:
    for change in (Changed(claim("a", version=2)), Gone(DeviceTaintRule, ObjectKey("", "rule"))):
        world = beside(used, RULE)
        waker = Waker(world.belief, planner_of(world.belief))
        waker.put(POD.uid)
        assert [wake for wake in waker.round(1.0) if wake] == []
        world.belief.apply(change)
        (wake,) = (wake for wake in waker.round(2.0) if wake)
        assert wake.pod.uid == POD.uid


@pytest.mark.parametrize("where", [given(device("n1", 0)).node_selector, None], ids=["on a node", "everywhere"])
def test_a_claim_that_nobody_uses_and_whose_device_evicts_is_freed_for_its_pod(where: NodeSelector | None) -> None:
    left = replace(USED, allocation=replace(given(device("n1", 0)), node_selector=where), reserved_for=())
    belief = beside(left, RULE).belief
    assert [each.key for each in unusable(POD, belief, 0.0)] == [left.key]
    assert isinstance(planner_of(belief).plan(POD, [N1, N2], 0.0), Rejection)
