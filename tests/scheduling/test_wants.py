"""What policies prefer and avoid counts for all devices, whatever they are and whatever is asked for beside them."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.model.change import Changed
from extender.model.claim import DeviceClass, ResourceClaim, Selector
from extender.model.device import Attribute, ResourceSlice, Traits
from extender.model.names import ClassName, DriverName
from extender.scheduling.planner import Offer
from extender.state.belief import Belief
from extender.topology.document import Document
from extender.topology.policies import SHIPPED, Policies
from extender.topology.policy import Policy, Trait
from tests.scheduling.cast import belief_of, node, pod
from tests.scheduling.machines import ROOT
from tests.scheduling.mixed import CLASSES, NIC, RESERVED, asks, cluster, devices_of, gpus, nics, planner_of, some
from tests.scheduling.mixed import published as of_driver
from tests.scheduling.test_partitions import SMALL, SMALL_CLASS, chips_on

TRAIT = Trait(RESERVED, ("true",))
CPUS = DriverName("dra.cpu")
CPU = ClassName("cpu")
CPU_CLASS = DeviceClass(name=CPU, selectors=(Selector(f"device.driver == '{CPUS}'"),))
AVOID, PREFER = (
    Policies(every=(*SHIPPED, own), allowed=("own",))
    for own in (Policy(name="own", avoid=(TRAIT,)), Policy(name="own", prefer=(TRAIT,)))
)
EVERYWHERE = Policies(avoid=(TRAIT,))
SHARES = Traits(allow_multiple_allocations=True)
NUMBERS = count()


def plan(belief: Belief, policies: Policies, *claims: ResourceClaim) -> Offer:
    for claim in claims:
        belief.apply(Changed(claim))
    subject = pod(f"p{next(NUMBERS)}", *(claim.key.name for claim in claims))
    found = planner_of(belief, Document(policies=policies)).plan(subject, None, 0.0)
    assert isinstance(found, Offer)
    return found


def taken(belief: Belief, policies: Policies, *claims: ResourceClaim) -> list[str]:
    """Return what all claims of a pod are given."""
    return [device for devices in (devices_of(plan(belief, policies, *claims)) or {}).values() for device in devices]


def cpus(name: str, count: int, bad: tuple[int, ...]) -> ResourceSlice:
    """Publish CPUs: on NUMA nodes, and on no root."""
    made = of_driver(name, CPUS, count, bad)
    devices = tuple(
        replace(device, attributes=tuple(item for item in device.attributes if item[0] != ROOT))
        for device in made.devices
    )
    return replace(made, devices=devices)


def with_cpus(*slices: ResourceSlice) -> Belief:
    return belief_of(*CLASSES, CPU_CLASS, node("a"), *slices)


def test_a_nic_that_is_to_be_avoided_is_left_alone() -> None:
    assert taken(cluster(gpus("a", 2), nics("a", 2, (0,))), EVERYWHERE, asks("c", some(1, NIC))) == ["dra.net/d1"]


def test_a_gpu_goes_where_the_nic_is_not_to_be_avoided() -> None:
    belief = cluster(gpus("a", 2), nics("a", 2, (0,)))
    claims = asks("g", some(1)), asks("n", some(1, NIC))
    assert taken(belief, EVERYWHERE, *claims) == ["gpu.nvidia.com/d1", "dra.net/d1"]


def test_of_cpus_those_are_taken_last_that_are_to_be_avoided() -> None:
    claims = asks("g", some(1)), asks("c", some(1, CPU))
    belief = with_cpus(gpus("a", 2), cpus("a", 2, (0,)))
    assert taken(belief, EVERYWHERE, *claims) == ["gpu.nvidia.com/d1", "dra.cpu/d1"]


@pytest.mark.parametrize("devices", [2, 16])
def test_of_shares_those_are_taken_last_that_are_to_be_avoided(devices: int) -> None:
    belief = cluster(gpus("a", devices, (0,), traits=SHARES))
    assert taken(belief, EVERYWHERE, asks("c", some(1))) == ["gpu.nvidia.com/d1"]


def test_of_partitions_those_are_taken_last_that_are_to_be_avoided() -> None:
    (chip,) = [one for one in chips_on("a") if one.devices]
    bad = tuple(
        replace(device, attributes=tuple(sorted((*device.attributes, (RESERVED, Attribute("bool", value=True))))))
        if device.name.endswith("-6")
        else device
        for device in chip.devices
    )
    others = [one for one in chips_on("a") if not one.devices]
    belief = belief_of(SMALL_CLASS, node("a"), *others, replace(chip, devices=bad))
    (found,) = taken(belief, EVERYWHERE, asks("c", some(1, SMALL)))
    assert not found.endswith("-6")


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        pytest.param(lambda name, bad: gpus(name, 2, bad, traits=SHARES), "nvidia", id="shares"),
        pytest.param(lambda name, bad: nics(name, 2, bad), "nic", id="NICs"),
    ],
)
def test_a_node_with_others_is_found_among_many(
    made: Callable[[str, tuple[int, ...]], ResourceSlice], wanted: str
) -> None:
    names = [f"n{index:02}" for index in range(40)]
    slices = [made(name, () if name == "n33" else (0, 1)) for name in names]
    found = plan(cluster(*slices, nodes=names), EVERYWHERE, asks("c", some(1, ClassName(wanted))))
    assert found.placement.node == "n33"


def test_each_request_is_judged_by_its_own_policy() -> None:
    belief = cluster(gpus("a", 8, (5,)), nics("a", 8))
    claims = asks("c", some(2)), asks("d", some(1), policy="own")
    found = devices_of(plan(belief, PREFER, *claims))
    assert found is not None
    assert found["d"] == ["gpu.nvidia.com/d5"]
    belief = cluster(gpus("a", 8, (0, 1, 2, 3, 4, 6, 7)), nics("a", 8))
    found = devices_of(plan(belief, AVOID, *claims))
    assert found is not None
    assert found["d"] == ["gpu.nvidia.com/d5"]


def test_the_decision_says_what_is_to_be_avoided() -> None:
    offer = plan(cluster(gpus("a", 2), nics("a", 1, (0,))), EVERYWHERE, asks("g", some(1)), asks("n", some(1, NIC)))
    assert offer.placement.appraisal is not None
    parts = offer.placement.appraisal.parts
    assert [part.text for part in parts if part.name == "avoided"] == ["some: 1 to be avoided"]
    assert offer.placement.appraisal.value == sum(part.value for part in parts)


SOME = st.sets(st.integers(0, 7), max_size=8).map(lambda found: tuple(sorted(found)))


@settings(max_examples=60, deadline=None)
@given(SOME, SOME, st.integers(1, 8), st.integers(0, 8), st.sampled_from(["own", ""]))
def test_never_is_more_avoided_than_has_to_be(
    bad_gpus: tuple[int, ...], bad_nics: tuple[int, ...], accelerators: int, cards: int, policy: str
) -> None:
    belief = cluster(gpus("a", 8, bad_gpus), nics("a", 8, bad_nics))
    claims = [asks("c", some(accelerators), policy=policy)]
    claims += [asks("n", some(cards, NIC), policy="own")] if cards else []
    found = taken(belief, AVOID, *claims)
    bad = {f"gpu.nvidia.com/d{index}" for index in bad_gpus}, {f"dra.net/d{index}" for index in bad_nics}
    if policy:
        assert len(bad[0] & set(found)) == max(0, accelerators - 8 + len(bad_gpus))
    assert len(bad[1] & set(found)) == max(0, cards - 8 + len(bad_nics))


@settings(max_examples=30, deadline=None)
@given(SOME, st.integers(1, 8))
def test_of_whole_machines_links_decide_among_what_is_as_welcome(bad: tuple[int, ...], accelerators: int) -> None:
    # With nothing beside them, links are compared over all sets: both ways have to agree.
    alone = taken(cluster(gpus("a", 8, bad)), EVERYWHERE, asks("c", some(accelerators)))
    assert len([name for name in alone if int(name[-1]) in bad]) == max(0, accelerators - 8 + len(bad))
    lists = [[index for index in range(first, first + 4) if index not in bad] for first in (0, 4)]
    is_one_enough = any(len(half) >= accelerators for half in lists)
    assert len({int(name[-1]) // 4 for name in alone}) == 1 or not is_one_enough
