"""Where a machine has too many devices for all sets to be looked at, policies are kept to nevertheless."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.allocation import solve
from extender.model.change import Changed
from extender.model.claim import Constraint, ResourceClaim
from extender.model.device import Attribute, Device, ResourceSlice
from extender.model.names import ClassName, DeviceKey, DeviceName, PoolName
from extender.scheduling.planner import Offer, Rejection
from extender.state.belief import Belief
from extender.topology import choice, webs
from extender.topology.document import Document, document_of
from extender.topology.policies import Policies
from extender.topology.policy import Policy, Trait
from tests.scheduling.cast import held, pod
from tests.scheduling.machines import GPU, NVIDIA
from tests.scheduling.mixed import NIC, RESERVED, asks, cluster, devices_of, gpus, nics, planner_of, published, some
from tests.topology.torus import edges, torus

TRAIT = Trait(RESERVED, ("true",))
AVOIDING = Document(policies=Policies(avoid=(TRAIT,)))
PREFERRING = Policies(every=(Policy(name="those", prefer=(TRAIT,)),), default="those")
# Each GPU is linked with the one at its place on the other NUMA node.
ACROSS = {"product": "H100", "count": 16, "links": [[one, one + 8] for one in range(8)], "linkWeight": 25}
LINKED = document_of({"deviceTopology": [{"match": {"driver": "gpu.nvidia.com"}, "products": [ACROSS]}]})

TORUS = document_of({"deviceTopology": [torus(4)]})
# The one ring of four that is free goes over devices 5, 6, 9 and 10.
ONE_RING = (0, 4, 5, 6, 9, 10, 12, 14, 15)


def taken(belief: Belief, claim: ResourceClaim, document: Document) -> list[int] | None:
    """Return the numbers of the devices that a claim is given."""
    belief.apply(Changed(claim))
    found = devices_of(planner_of(belief, document).plan(pod("p", "c"), None, 0.0))
    return None if found is None else sorted(int(name.rpartition("/d")[2]) for name in found["c"])


@pytest.mark.parametrize("count", [12, 16])
@pytest.mark.parametrize(("make", "wanted"), [(gpus, GPU), (nics, NIC)])
def test_what_is_to_be_avoided_is_taken_where_nothing_else_is_left(
    count: int, make: Callable[..., ResourceSlice], wanted: ClassName
) -> None:
    half = count // 2
    assert taken(cluster(make("a", count, (0, half))), asks("c", some(1, wanted)), AVOIDING) == [1]
    every = taken(cluster(make("a", count, (0, half))), asks("c", some(count - 1, wanted)), AVOIDING)
    assert every is not None
    assert {0, half} - set(every) in ({0}, {half})


@pytest.mark.parametrize("count", [12, 16])
def test_what_is_preferred_comes_first_wherever_it_is(count: int) -> None:
    belief = cluster(gpus("a", count, (3, count - 2)))
    assert taken(belief, asks("c", some(2)), Document(policies=PREFERRING)) == [3, count - 2]


def test_devices_of_one_numa_node_are_found_where_links_go_elsewhere() -> None:
    found = taken(cluster(gpus("a", 16)), asks("c", some(2), policy="one-numa"), LINKED)
    assert found is not None
    assert len({device // 8 for device in found}) == 1


def test_on_one_numa_node_a_constraint_is_met_by_devices_that_links_do_not_suggest() -> None:
    # Three of a colour, of which only two are on one NUMA node.
    colours = dict.fromkeys((2, 5, 9), "red")
    published = gpus("a", 16)
    devices = tuple(_coloured(device, colours.get(index, str(index))) for index, device in enumerate(published.devices))
    claim = asks("c", some(2), policy="one-numa")
    constraint = Constraint(match_attribute="example.com/colour")
    claim = replace(claim, spec=replace(claim.spec, constraints=(constraint,)))
    assert taken(cluster(replace(published, devices=devices)), claim, LINKED) == [2, 5]


def _coloured(device: Device, colour: str) -> Device:
    attributes = dict(device.attributes) | {"example.com/colour": Attribute("string", colour)}
    return replace(device, attributes=tuple(sorted(attributes.items())))


def on_a_torus(*free: int) -> Belief:
    belief = cluster(published("a", NVIDIA, 16, product="Torus"))
    keys = (DeviceKey(NVIDIA, PoolName("a"), DeviceName(f"d{number}")) for number in range(16) if number not in free)
    belief.apply(Changed(held(asks("others", some(1)), *keys)))
    return belief


def test_a_ring_that_links_alone_lead_to_is_taken() -> None:
    assert taken(on_a_torus(*ONE_RING), asks("c", some(4), policy="linked"), TORUS) == [5, 6, 9, 10]


def test_that_there_is_no_ring_is_told_for_good() -> None:
    belief = on_a_torus(*(set(ONE_RING) - {5}))
    belief.apply(Changed(asks("c", some(4), policy="linked")))
    plan = planner_of(belief, TORUS).plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Rejection)
    assert plan.is_hopeless
    assert plan.detail == "claim c, request some: no set of 4 free devices is as the policy linked wants it"


def test_a_ring_that_is_not_found_soon_is_looked_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "STRIDES", 1)
    monkeypatch.setattr(webs, "STRIDE", 5)
    assert taken(on_a_torus(*ONE_RING), asks("c", some(4), policy="linked"), TORUS) == [5, 6, 9, 10]


def test_a_ring_that_is_not_found_at_all_is_not_said_to_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "STRIDES", 1)
    monkeypatch.setattr(webs, "STRIDE", 1)
    monkeypatch.setattr(solve, "IMPROVEMENTS", 2)
    monkeypatch.setattr(solve, "INSISTENCE", 2)
    belief = on_a_torus(*ONE_RING)
    belief.apply(Changed(asks("c", some(4), policy="linked")))
    plan = planner_of(belief, TORUS).plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Rejection)
    assert plan.detail == "the search for devices was given up before it was known whether they suffice"
    assert not plan.is_hopeless


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 15), max_size=13))
def test_two_linked_sets_are_had_wherever_they_are_apart(free: set[int]) -> None:
    pairs = [pair for pair in set(edges(4)) if free.issuperset(pair)]
    belief = on_a_torus(*free)
    belief.apply(Changed(asks("c", some(2, name="one"), some(2, name="other"), policy="linked")))
    plan = planner_of(belief, TORUS).plan(pod("p", "c"), None, 0.0)
    assert isinstance(plan, Offer) == any(not set(one) & set(other) for one, other in combinations(pairs, 2))
