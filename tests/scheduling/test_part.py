"""What strict policies do not have is told with the request that lacks it, and whether it is in vain to wait."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.model.change import Changed
from extender.model.claim import RequestSlot, ResourceClaim
from extender.model.device import PLAIN, Traits
from extender.model.names import DeviceKey, DeviceName, PoolName
from extender.model.taint import Taint
from extender.scheduling.planner import Plan, Rejection
from extender.scheduling.vocabulary import Word
from extender.state.belief import Belief
from extender.topology.policies import SHIPPED, Policies
from extender.topology.policy import Policy, Trait, Wish
from tests.scheduling.cast import held, pod
from tests.scheduling.machines import NVIDIA, fleet, wanted
from tests.scheduling.mixed import RESERVED, asks, cluster, gpus, one, planner_by, some

NONE, EIGHT = (), tuple(range(8))
CAREFUL = Policy(name="careful", forbid=(Trait(RESERVED, ("true",)),))
ZONED = Policy(name="zoned", numa=Wish.STRICT)
POLICIES = Policies(every=(*SHIPPED, CAREFUL, ZONED), allowed=("one-numa", "linked", "careful", "zoned"))


def by(policy: str, count: int, **taken: Sequence[int]) -> Rejection:
    """Ask for V100 by *policy*, where of some nodes, each a DGX-1V or an A100-PCIe, devices are taken."""
    machines = {name: "dgx-1v" if name.startswith("d") else "a100-pcie" for name in taken}
    belief = fleet(machines, {name: tuple(some) for name, some in taken.items()})
    return refused(belief, Policies(default=policy), wanted("c", count))


def planned(belief: Belief, policies: Policies, *claims: ResourceClaim) -> Plan:
    for claim in claims:
        belief.apply(Changed(claim))
    return planner_by(belief, policies).plan(pod("p", *(claim.key.name for claim in claims)), None, 0.0)


def refused(belief: Belief, policies: Policies, *claims: ResourceClaim) -> Rejection:
    plan = planned(belief, policies, *claims)
    assert isinstance(plan, Rejection)
    return plan


def taken(belief: Belief, *places: int, node: str = "a") -> Belief:
    keys = (DeviceKey(NVIDIA, PoolName(node), DeviceName(f"d{place}")) for place in places)
    belief.apply(Changed(held(asks("others", some(1)), *keys)))
    return belief


@pytest.mark.parametrize(
    ("policy", "count", "d1", "devices"),
    [
        ("one-numa", 8, NONE, "8 devices there is ever"),
        ("one-numa", 5, NONE, "5 devices there is ever"),
        ("one-numa", 5, (0,), "5 devices there is ever"),
        ("one-numa", 4, (0, 4), "4 free devices is"),
        ("linked", 4, (0, 1, 4, 5), "4 free devices is"),
    ],
)
def test_what_there_never_is_is_told_apart_from_what_is_not_there_now(
    policy: str, count: int, d1: Sequence[int], devices: str
) -> None:
    plan = by(policy, count, d1=d1)
    assert plan.word is Word.POLICY
    assert plan.detail == f"claim c, request gpu: no set of {devices} as the policy {policy} wants it"
    assert [tally.is_final for tally in plan.rejected] == ["ever" in devices]


def test_what_there_never_is_hides_nothing_that_comes_free() -> None:
    plan = by("linked", 2, p1=NONE, d1=EIGHT, d2=EIGHT)
    assert (plan.word, plan.detail) == (Word.IN_USE, "claim c, request gpu needs 2 free devices, has 0: 8 in use")
    assert [(tally.nodes, tally.word, tally.is_final) for tally in plan.rejected] == [
        (2, Word.IN_USE, False),
        (1, Word.POLICY, True),
    ]


def test_nodes_that_have_a_set_at_times_are_counted_apart_from_those_that_never_have() -> None:
    plan = by("linked", 4, p1=NONE, p2=NONE, d1=(0, 1, 4, 5))
    assert plan.detail == "claim c, request gpu: no set of 4 free devices is as the policy linked wants it"
    assert [(tally.nodes, tally.example, tally.is_final) for tally in plan.rejected] == [
        (2, "p1", True),
        (1, "d1", False),
    ]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["one-numa", "linked"]), st.integers(2, 8), st.lists(st.sets(st.integers(0, 7)), max_size=3))
def test_what_there_never_is_is_not_there_where_everything_is_free(
    policy: str, count: int, taken: list[set[int]]
) -> None:
    for name, machine in (("d", "dgx-1v"), ("p", "a100-pcie")):
        some = {f"{name}{number}": tuple(sorted(places)) for number, places in enumerate(taken)}
        plan = planned(fleet(dict.fromkeys(some, machine), some), Policies(default=policy), wanted("c", count))
        empty = planned(fleet({"n": machine}, {}), Policies(default=policy), wanted("c", count))
        for tally in plan.rejected if isinstance(plan, Rejection) else ():
            if tally.word is Word.POLICY:
                assert tally.is_final is isinstance(empty, Rejection)


def test_a_set_that_taints_keep_is_not_said_to_be_never_there() -> None:
    published, sick = gpus("a", 4), Traits(taints=(Taint(key="sick", effect="NoSchedule"),))
    devices = (replace(each, traits=PLAIN if index % 2 else sick) for index, each in enumerate(published.devices))
    belief = cluster(replace(published, devices=tuple(devices)))
    plan = refused(belief, POLICIES, asks("c", some(2), policy="one-numa"))
    assert plan.detail == "claim c, request some: no set of 2 free devices is as the policy one-numa wants it"


def test_the_claim_is_named_whose_policy_has_nothing_and_not_the_other() -> None:
    # Two are free on each NUMA node.
    belief = taken(cluster(gpus("a", 8)), 2, 3, 6, 7)
    free, zoned = asks("a", some(1), policy="linked"), asks("b", some(3, name="three"), policy="one-numa")
    plan = refused(belief, POLICIES, free, zoned)
    assert plan.detail == "claim b, request three: no set of 3 free devices is as the policy one-numa wants it"


def test_of_several_requests_that_is_told_which_has_no_set() -> None:
    zoned = asks("a", some(3, name="three"), some(6, name="six"), policy="one-numa")
    plan = refused(cluster(gpus("a", 10)), POLICIES, zoned)
    assert plan.detail == "claim a, request six: no set of 6 devices there is ever as the policy one-numa wants it"


def test_of_alternatives_that_is_told_which_there_may_be() -> None:
    either = RequestSlot(name="gpu", first_available=(one(5, name="five"), one(4, name="four")))
    belief = taken(cluster(gpus("a", 8)), 0, 4)
    plan = refused(belief, POLICIES, asks("c", either, policy="one-numa"))
    assert plan.detail == "claim c, request gpu/four: no set of 4 free devices is as the policy one-numa wants it"


def test_one_device_is_no_set() -> None:
    asked = asks("c", some(1), policy="careful")
    plan = refused(cluster(gpus("a", 1, (0,))), POLICIES, asked)
    told = "claim c, request some: no {} as the policy careful wants it, without what is forbidden: {} true"
    assert plan.detail == told.format("device there is ever", RESERVED)
    plan = refused(taken(cluster(gpus("a", 2, (0,))), 1), POLICIES, asked)
    assert plan.detail == told.format("free device is", RESERVED)


@pytest.mark.parametrize(
    ("places", "devices"), [((3, 7), "free devices is"), ((), "devices there is ever")], ids=["now", "ever"]
)
def test_of_requests_that_have_no_sets_together_the_claim_is_told(places: tuple[int, ...], devices: str) -> None:
    # Three are left on each NUMA node, of which two pairs leave one each.
    belief = taken(cluster(gpus("a", 8)), *places) if places else cluster(gpus("a", 6))
    pairs = asks("c", *(some(2, name=f"pair-{index}") for index in range(3)), policy="one-numa")
    plan = refused(belief, POLICIES, pairs)
    assert plan.detail == f"claim c: no set of {devices} as the policy one-numa wants it"
    assert plan.rejected[0].is_final is not bool(places)


def test_where_searches_find_nothing_what_comes_free_elsewhere_is_nearer() -> None:
    belief = taken(cluster(gpus("a", 6), gpus("b", 8), nodes="ab"), *range(8), node="b")
    pairs = asks("c", *(some(2, name=f"pair-{index}") for index in range(3)), policy="one-numa")
    assert refused(belief, POLICIES, pairs).word is Word.IN_USE


def test_claims_and_policies_that_have_no_sets_together_are_all_told() -> None:
    two = asks("c", some(2, name="one"), some(2, name="other"), policy="one-numa")
    plan = refused(cluster(gpus("a", 6)), POLICIES, two, asks("d", some(2), policy="one-numa"))
    assert plan.detail == "claims c and d: no set of devices there is ever as the policy one-numa wants it"
    plan = refused(cluster(gpus("a", 6)), POLICIES, two, asks("d", some(2), policy="zoned"))
    assert plan.detail == "claims c and d: no set of devices there is ever as the policies one-numa and zoned want it"
