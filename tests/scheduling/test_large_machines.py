"""Where a machine has too many devices for all sets to be looked at, policies are kept to nevertheless."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from extender.model.change import Changed
from extender.model.claim import Constraint, ResourceClaim
from extender.model.device import Attribute, Device, ResourceSlice
from extender.model.names import ClassName
from extender.state.belief import Belief
from extender.topology.document import Document, document_of
from extender.topology.policies import Policies
from extender.topology.policy import Policy, Trait
from tests.scheduling.cast import pod
from tests.scheduling.machines import GPU
from tests.scheduling.mixed import NIC, RESERVED, asks, cluster, devices_of, gpus, nics, planner_of, some

TRAIT = Trait(RESERVED, ("true",))
AVOIDING = Document(policies=Policies(avoid=(TRAIT,)))
PREFERRING = Policies(every=(Policy(name="those", prefer=(TRAIT,)),), default="those")
# Each GPU is linked with the one at its place on the other NUMA node.
ACROSS = {"product": "H100", "count": 16, "links": [[one, one + 8] for one in range(8)], "linkWeight": 25}
LINKED = document_of({"deviceTopology": [{"match": {"driver": "gpu.nvidia.com"}, "products": [ACROSS]}]})


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
