"""Nobody can have more devices than a claim may be given; who asks for more takes no memory, and spoils no ranking."""

from dataclasses import replace

import pytest

from extender.model.change import Changed
from extender.model.claim import RequestSlot, ResourceClaim
from extender.scheduling.commons import Commons
from extender.scheduling.planner import Offer, Plan, Planner, Rejection
from extender.state.belief import Belief
from extender.topology.policy import Placing, Policy, Wish
from tests.scheduling.cast import belief_of, gpus, node, pod
from tests.scheduling.machines import GPU, fleet, planner_with_taste, wanted
from tests.scheduling.mixed import one
from tests.scheduling.test_commons import Machine, asker, asking, planner_of, world
from tests.scheduling.test_commons import plan as offered

DGX = "dgx-1v"
# There is no room for so many of anything, so whatever would make some fails at once.
HUGE = 10**17
# So many that 64 bits hold the number, but not what these devices are together.
MORE = (33, 10**17, 1 << 62)
POLICIES = (None, Policy(name="linked", links=Wish.STRICT), Policy(name="one-numa", numa=Wish.STRICT))


def planned(belief: Belief, planner: Planner, claim: ResourceClaim) -> Plan:
    belief.apply(Changed(claim))
    return planner.plan(pod("p", claim.key.name), None, 0.0)


def either(*counts: int) -> ResourceClaim:
    """Return a claim for one of several numbers of GPUs, the first that can be had."""
    asks = tuple(one(count, GPU, f"r{index}") for index, count in enumerate(counts))
    asked = wanted("c", 1)
    return replace(asked, spec=replace(asked.spec, requests=(RequestSlot(name="r", first_available=asks),)))


@pytest.mark.parametrize("policy", POLICIES)
def test_more_devices_than_a_claim_can_be_given_are_refused_without_looking_for_sets(policy: Policy | None) -> None:
    belief = fleet({"a": DGX, "b": DGX}, {"b": (0,)})
    plan = planned(belief, planner_with_taste(belief, policy=policy), wanted("c", HUGE))
    assert isinstance(plan, Rejection)
    assert f"{HUGE} devices are more than the 32 of a claim" in plan.detail


def test_so_are_extended_resources_behind_which_a_class_stands() -> None:
    belief = belief_of(node("a"), gpus("a", 4))
    asker = pod("p", gpus=HUGE)
    belief.apply(Changed(asker))
    plan = planner_with_taste(belief).plan(asker, None, 0.0)
    assert isinstance(plan, Rejection)
    assert f"{HUGE} devices are more than the 32 of a claim" in plan.detail


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("counts", [(HUGE, 2), (2, HUGE), (HUGE, 33, 2)])
def test_alternatives_that_nobody_can_have_are_passed_over(counts: tuple[int, ...], policy: Policy | None) -> None:
    belief = fleet({"a": DGX, "b": DGX}, {"b": (4, 5, 6, 7)})
    plan = planned(belief, planner_with_taste(belief, policy=policy), either(*counts))
    assert isinstance(plan, Offer)
    ((_, allocation),) = plan.placement.claims
    assert (plan.placement.node, len(allocation.devices)) == ("b", 2)


@pytest.mark.parametrize("placing", Placing)
@pytest.mark.parametrize("devices", MORE)
def test_what_nobody_can_have_of_shared_devices_is_not_typical(devices: int, placing: Placing) -> None:
    belief = world({"a": Machine([1000, 600]), "b": Machine([1000, 1000])})
    commons = Commons(belief.loads)
    planner = planner_of(belief, Policy(name="p", placing=placing), commons)
    assert isinstance(offered(belief, planner, asking("first", 300)), Offer)
    known = commons.placer.measure
    for number in range(12):
        wanted = asking(f"c{number}", 1000, devices)
        belief.apply(Changed(wanted))
        assert isinstance(planner.plan(asker(wanted.key.name), None, 0.0), Rejection)
    assert commons.placer.measure is known
    assert (known.worth(commons.whole) > 0).all()
