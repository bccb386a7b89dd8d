"""What a policy does not have nobody gets, on whatever path; and what it has is found wherever it is."""

from dataclasses import replace
from itertools import combinations, count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.allocation import solve
from extender.model.change import Changed
from extender.model.claim import Constraint, RequestSlot, ResourceClaim
from extender.model.device import Attribute, Traits
from extender.model.names import DeviceKey, DeviceName, DriverName, PoolName
from extender.scheduling.limits import Limits
from extender.scheduling.planner import Offer, Plan, Planner, Rejection, Trouble
from extender.state.belief import Belief
from extender.state.ledger import Event
from extender.topology.policies import Policies
from extender.topology.policy import Trait
from tests.scheduling import cast
from tests.scheduling.cast import held, pod
from tests.scheduling.machines import GPU, NVIDIA, ROOT, fleet
from tests.scheduling.mixed import (
    ANY,
    NET,
    NIC,
    RESERVED,
    asks,
    cluster,
    devices_of,
    gpus,
    nics,
    one,
    planner_by,
    published,
    some,
)

FORBIDDING = Policies(forbid=(Trait(RESERVED, ("true",)),))
OTHER = DriverName("other.example.com")
NUMBERS = count()
SHARED = Traits(allow_multiple_allocations=True)


@pytest.mark.parametrize("policy", ["protect", "one-numa", "linked"])
def test_what_a_policy_has_is_found_though_the_best_of_it_takes_too_long_to_find(policy: str) -> None:
    """Four pairs of a GPU and a NIC, each on one root: whatever is found is had, for each request is for one device."""
    gpu = [some(1, name=f"g{index}") for index in range(4)]
    nic = [some(1, NIC, f"n{index}") for index in range(4)]
    pairs = tuple(Constraint(requests=(f"g{index}", f"n{index}"), match_attribute=ROOT) for index in range(4))
    belief, asked = mixed(), asks("c", *gpu, *nic, policy=policy)
    taken = [DeviceKey(NVIDIA, PoolName("a"), DeviceName(name)) for name in ("d0", "d7")]
    taken += [DeviceKey(NET, PoolName("a"), DeviceName(name)) for name in ("d2", "d3")]
    belief.apply(Changed(held(cast.claim("others"), *taken)))
    plan = planned(belief, replace(asked, spec=replace(asked.spec, constraints=pairs)))
    assert isinstance(plan, Offer), plan


def planned(belief: Belief, *claims: ResourceClaim, policies: Policies | None = None) -> Plan:
    for claim in claims:
        belief.apply(Changed(claim))
    subject = pod(f"p{next(NUMBERS)}", *(claim.key.name for claim in claims))
    return planner_by(belief, policies or Policies()).plan(subject, None, 0.0)


def mixed(reserved: tuple[int, ...] = ()) -> Belief:
    return cluster(gpus("a", 8), nics("a", 8, reserved))


@pytest.mark.parametrize(
    ("belief", "requests"),
    [
        pytest.param(cluster(gpus("a", 4, is_everywhere=True), nodes="ab"), [some(2)], id="in a network's pool"),
        pytest.param(cluster(gpus("a", 2), published("a", OTHER, 2)), [some(3, ANY)], id="devices of two drivers"),
        pytest.param(mixed((0, 2)), [some(1), some(1, NIC, "nic")], id="a NIC beside a GPU"),
        pytest.param(mixed((0, 2)), [some(2, NIC, "nic")], id="NICs alone"),
        pytest.param(cluster(gpus("a", 16, (3,)), nics("a", 16)), [some(15), some(1, NIC, "n")], id="a large machine"),
        pytest.param(
            cluster(gpus("a", 4, (0,))),
            [RequestSlot(name="r", first_available=(one(0, GPU, "all"), one(1, GPU, "one")))],
            id="an alternative to all of them",
        ),
    ],
)
def test_what_is_forbidden_keeps_nobody_from_the_rest(belief: Belief, requests: list[RequestSlot]) -> None:
    plan = planned(belief, asks("c", *requests), policies=FORBIDDING)
    assert isinstance(plan, Offer)
    assert plan.placement.appraisal is not None


@pytest.mark.parametrize(
    "claims",
    [
        [asks("c", some(4), policy="one-numa"), asks("d", some(4), policy="one-numa")],
        [asks("c", some(4), policy="one-numa"), asks("d", some(2))],
        [asks("c", some(4), some(4, name="more"), policy="one-numa")],
        [asks("c", some(3)), asks("d", some(4), policy="one-numa")],
        [asks("c", some(3), some(3, NIC, "nic"), policy="one-numa")],
        [asks("c", some(2), some(2, NIC, "nic"), policy="linked")],
    ],
)
def test_each_request_is_on_one_numa_node_whatever_is_asked_beside_it(claims: list[ResourceClaim]) -> None:
    belief = mixed()
    found = devices_of(planned(belief, *claims))
    assert found is not None
    for claim in claims:
        if claim.annotations:
            given_to = found[claim.key.name]
            for slot in claim.spec.requests:
                assert slot.exactly is not None
                mine, given_to = given_to[: slot.exactly.count], given_to[slot.exactly.count :]
                assert len({int(name[-1]) // 4 for name in mine}) == 1


@pytest.mark.parametrize(
    ("belief", "request_"),
    [
        pytest.param(cluster(gpus("a", 4)), some(0), id="all devices"),
        pytest.param(cluster(gpus("a", 2, traits=SHARED)), some(2), id="shares"),
        pytest.param(mixed(), some(5, NIC), id="NICs"),
    ],
)
def test_a_request_that_would_span_numa_nodes_waits(belief: Belief, request_: RequestSlot) -> None:
    assert devices_of(planned(belief, asks("c", request_))) is not None
    belief.ledger.tell(next(iter(belief.ledger)).pod, Event.EXPIRED)
    assert devices_of(planned(belief, asks("d", request_, policy="one-numa"))) is None


SOME = st.sets(st.integers(0, 7), max_size=7).map(lambda found: tuple(sorted(found)))


@settings(max_examples=60, deadline=None)
@given(SOME, SOME, st.integers(1, 4), st.integers(0, 4))
def test_a_pod_fits_beside_what_is_forbidden_where_it_fits_without_that(
    bad_gpus: tuple[int, ...], bad_nics: tuple[int, ...], accelerators: int, cards: int
) -> None:
    belief = cluster(gpus("a", 8, bad_gpus), nics("a", 8, bad_nics))
    requests = [some(accelerators)] + ([some(cards, NIC, "nic")] if cards else [])
    found = devices_of(planned(belief, asks("c", *requests), policies=FORBIDDING))
    assert (found is not None) == (8 - len(bad_gpus) >= accelerators and 8 - len(bad_nics) >= cards)
    taken = found["c"] if found else []
    assert not {f"gpu.nvidia.com/d{bad}" for bad in bad_gpus} & set(taken)
    assert not {f"dra.net/d{bad}" for bad in bad_nics} & set(taken)


@settings(max_examples=60, deadline=None)
@given(SOME, SOME, st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(0, 4))
def test_one_numa_is_had_exactly_where_it_can_be(
    bad_gpus: tuple[int, ...], bad_nics: tuple[int, ...], sizes: list[int], cards: int
) -> None:
    belief = cluster(gpus("a", 8, bad_gpus), nics("a", 8, bad_nics))
    requests = [some(size, name=f"r{index}") for index, size in enumerate(sizes)]
    requests += [some(cards, NIC, "nic")] if cards else []
    found = devices_of(planned(belief, asks("c", *requests, policy="one-numa"), policies=FORBIDDING))
    halves = [
        [sum(index not in bad for index in half) for half in (range(4), range(4, 8))] for bad in (bad_gpus, bad_nics)
    ]
    left = [halves[0][0], halves[0][1]]
    numbers = range(len(sizes))
    can = any(
        sum(sizes[one] for one in first) <= left[0]
        and sum(sizes[one] for one in numbers if one not in first) <= left[1]
        for length in range(len(sizes) + 1)
        for first in combinations(numbers, length)
    )
    assert (found is not None) == (can and (not cards or max(halves[1]) >= cards))


def test_a_set_that_a_strict_policy_has_is_found_though_others_have_more_that_is_ready() -> None:
    cards, waiting = gpus("a", 4), Traits(binding_conditions=("example.com/attached",))
    devices = (replace(item, traits=waiting) if place else item for place, item in enumerate(cards.devices))
    # One is ready, on NUMA node 0, and alone there; on the other one two are not.
    there = tuple(item for place, item in enumerate(devices) if place != 1)
    belief = cluster(replace(cards, devices=there))
    belief.apply(Changed(asks("c", some(2), policy="one-numa")))
    plan = planner_by(belief, Policies()).plan(pod("p", "c"), None, 0.0)
    assert devices_of(plan) == {"c": ["gpu.nvidia.com/d2", "gpu.nvidia.com/d3"]}


def test_where_nothing_but_what_a_strict_policy_has_will_do_it_is_looked_for_longer() -> None:
    # NIC d6 is taken: NICs 0 to 3 are for the requests for two, and the pairs are on the other NUMA node.
    belief = cluster(gpus("a", 8), nics("a", 8))
    belief.apply(Changed(held(cast.claim("others"), DeviceKey(NET, PoolName("a"), DeviceName("d6")))))
    pairs = [slot for i in range(3) for slot in (some(1, name=f"g{i}"), some(1, NIC, f"n{i}"))]
    asked = asks("c", *pairs, some(2, NIC, "more"), some(2, NIC, "others"), policy="one-numa")
    rules = tuple(Constraint(requests=(f"g{i}", f"n{i}"), match_attribute=ROOT) for i in range(3))
    belief.apply(Changed(replace(asked, spec=replace(asked.spec, constraints=rules))))
    assert isinstance(planner_by(belief, Policies()).plan(pod("p", "c"), None, 0.0), Offer)


def test_the_one_set_that_a_strict_policy_has_is_found_among_many() -> None:
    # Of each color there are five devices on each NUMA node, but of the last: who asks for six has one set.
    half, take, color = 16, 6, "example.com/color"
    cards = gpus("a", 2 * half)
    colors = ["last" if place >= 2 * half - take else str(place % half // (take - 1)) for place in range(2 * half)]
    devices = (
        replace(item, attributes=tuple(sorted((*item.attributes, (color, Attribute("string", name))))))
        for item, name in zip(cards.devices, colors, strict=True)
    )
    belief = cluster(replace(cards, devices=tuple(devices)))
    asked = asks("c", some(take), policy="one-numa")
    rules = (Constraint(match_attribute=color),)
    belief.apply(Changed(replace(asked, spec=replace(asked.spec, constraints=rules))))
    assert devices_of(decided(planner_by(belief, Policies()))) == {
        "c": [f"gpu.nvidia.com/d{place}" for place in range(2 * half - take, 2 * half)]
    }


def decided(planner: Planner) -> Plan:
    """Ask in turns, as the scheduler does."""
    plans = (planner.plan(pod("p", "c"), None, 0.0) for _ in range(100))
    return next(plan for plan in plans if not isinstance(plan, Trouble))


def test_that_a_strict_policy_has_no_set_is_known_however_many_there_are() -> None:
    # Five devices are left on each NUMA node: of five pairs the last would be on both.
    belief = cluster(gpus("a", 16))
    taken = (DeviceKey(NVIDIA, PoolName("a"), DeviceName(f"d{place}")) for place in (0, 1, 2, 8, 9, 10))
    belief.apply(Changed(held(cast.claim("others"), *taken)))
    belief.apply(Changed(asks("c", *(some(2, name=f"pair-{index}") for index in range(5)), policy="one-numa")))
    plan = planner_by(belief, Policies()).plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Rejection)
    assert plan.is_hopeless
    assert "one-numa" in plan.detail


def test_a_strict_policy_whose_search_is_given_up_rejects_nobody_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solve, "IMPROVEMENTS", 2)
    monkeypatch.setattr(solve, "INSISTENCE", 2)
    # The last GPU is linked with none of the other three that are left.
    belief = fleet({"a": "dgx-1v"}, {"a": (3, 4, 5, 6)})
    belief.apply(Changed(asks("c", some(2, name="one"), some(2, name="other"), policy="linked")))
    plan = planner_by(belief, Policies()).plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Rejection)
    assert plan.detail == "the search for devices was given up before it was known whether they suffice"
    assert not plan.is_hopeless


@pytest.mark.parametrize("name", ["a-before", "z-before"])
def test_what_is_avoided_of_shared_devices_is_known_where_slices_are_left_over(name: str) -> None:
    cards, shared = gpus("a", 2), Traits(allow_multiple_allocations=True)
    now = replace(cards, devices=tuple(replace(item, traits=shared) for item in cards.devices), generation=2)
    belief = cluster(now, replace(now, name=name, generation=1))
    belief.apply(Changed(asks("c", some(1))))
    avoid = Policies(avoid=(Trait("productName", ("*",)),))
    assert devices_of(planner_by(belief, avoid).plan(pod("p", "c"), None, 0.0)) == {"c": ["gpu.nvidia.com/d0"]}


def test_sets_that_are_put_together_in_vain_hold_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    # One is ready on each NUMA node, and no set of both is to be had: there are millions.
    half, waiting = 24, Traits(binding_conditions=("example.com/attached",))
    cards = gpus("a", 2 * half)
    devices = (
        replace(item, traits=Traits() if place in (0, half) else waiting) for place, item in enumerate(cards.devices)
    )
    belief = cluster(replace(cards, devices=tuple(devices)))
    belief.apply(Changed(asks("c", some(8), policy="one-numa")))
    tried, real = count(), Limits.accepts
    monkeypatch.setattr(Limits, "accepts", lambda *given: (next(tried), real(*given))[1])
    assert isinstance(planner_by(belief, Policies()).plan(pod("p", "c"), None, 0.0), Offer)
    assert next(tried) < 1000


def test_a_later_alternative_is_found_where_the_first_takes_a_strict_policy_too_long() -> None:
    # There are five of each color, so that six of one are not to be had, and of many sets that is not known.
    half, color = 16, "example.com/color"
    cards = gpus("a", 2 * half)
    devices = (
        replace(item, attributes=tuple(sorted((*item.attributes, (color, Attribute("string", str(place // 5)))))))
        for place, item in enumerate(cards.devices)
    )
    belief = cluster(replace(cards, devices=tuple(devices)))
    taken = (DeviceKey(NVIDIA, PoolName("a"), DeviceName(f"d{place}")) for place in range(1, half))
    belief.apply(Changed(held(cast.claim("others"), *taken)))
    first, later = (some(size, name=name).exactly for size, name in ((6, "many"), (3, "few")))
    assert first is not None
    assert later is not None
    asked = asks("c", RequestSlot(name="r", first_available=(first, later)), policy="one-numa")
    rules = (Constraint(requests=("r/many",), match_attribute=color),)
    belief.apply(Changed(replace(asked, spec=replace(asked.spec, constraints=rules))))
    plan = planner_by(belief, Policies()).plan(pod("p", "c"), None, 0.0)
    assert devices_of(plan) == {"c": ["gpu.nvidia.com/d16", "gpu.nvidia.com/d17", "gpu.nvidia.com/d18"]}
