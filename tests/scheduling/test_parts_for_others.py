"""Whole devices are taken where nobody else could have parts of them, and parts where others can have the rest."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, count, islice

import pytest

from extender.model.change import Changed, Noun
from extender.model.claim import DeviceClass, RequestSlot, ResourceClaim, Selector
from extender.model.device import PLAIN, Attribute, Capacity, NodeSelection, ResourceSlice, Traits
from extender.model.names import ClassName, DeviceKey, DeviceName, NodeName, PoolName
from extender.model.parse import parse_slice
from extender.model.quantity import parse_quantity
from extender.scheduling.planner import Offer, Plan, Planner
from extender.state.belief import Belief
from extender.topology.demand import EXPECTED, Demand
from extender.topology.document import Document
from extender.topology.policies import Policies
from extender.topology.portions import ALONE
from tests.scheduling.cast import belief_of, held, node, pod, surveyed
from tests.scheduling.machines import NVIDIA
from tests.scheduling.mixed import ANY, CLASSES, NIC, asks, gpus, nics, planner_of, some
from tests.scheduling.test_partitions import SMALL, SMALL_CLASS
from tests.scheduling.test_partitions_together import cut_up
from tests.topology import mig

WHOLE = ClassName("whole")
WHOLE_CLASS = DeviceClass(
    name=WHOLE, selectors=(Selector(f"device.driver == '{NVIDIA}' && device.attributes['{NVIDIA}'].type == 'gpu'"),)
)
SHARED = Traits(allow_multiple_allocations=True)
_, NIC_CLASS, ANY_CLASS = CLASSES
# Two orders of names.
ORDERS = [("a", "b"), ("b", "a")]
NUMBERS = count()


def divisible(name: str) -> list[ResourceSlice]:
    """Publish two A100s that can be cut on a node."""
    raw = json.loads(json.dumps(mig.slices(("gpu-0", "gpu-1"))).replace("mig-a100", name))
    parsed = [parse_slice(one) for one in raw]
    return [replace(one, name=f"{name}-{one.name}") for one in parsed if isinstance(one, ResourceSlice)]


def plain(name: str) -> ResourceSlice:
    """Publish two A100s that cannot."""
    found = [device for one in divisible(name) for device in one.devices if device.name in ("gpu-0", "gpu-1")]
    devices = tuple(replace(device, traits=PLAIN) for device in found)
    return replace(divisible(name)[0], slice_count=1, devices=devices, shared_counters=())


def shared(published: ResourceSlice, traits: Traits = SHARED) -> ResourceSlice:
    """Publish the same devices as such of which many can have a part."""
    amounts = (("memory", Capacity(parse_quantity("80Gi"))),)
    devices = (replace(device, capacity=amounts, traits=traits) for device in published.devices)
    return replace(published, devices=tuple(devices))


def cluster(cut: Sequence[str], others: Sequence[str]) -> Belief:
    slices = [*(one for name in cut for one in divisible(name)), *map(plain, others)]
    return belief_of(SMALL_CLASS, WHOLE_CLASS, *map(node, (*cut, *others)), *slices)


def placed(belief: Belief, planner: Planner, claim: ResourceClaim) -> str:
    """Return the node of the next pod, whose devices it keeps."""
    plan = planned(belief, planner, claim)
    assert isinstance(plan, Offer)
    return plan.placement.node


def planned(belief: Belief, planner: Planner, claim: ResourceClaim) -> Plan:
    belief.apply(Changed(claim))
    return planner.plan(pod(f"p-{claim.key.name}", claim.key.name), None, 0.0)


def parts(memory: str, devices: int = 1) -> ResourceClaim:
    slot = some(devices, WHOLE)
    assert slot.exactly is not None
    exactly = replace(slot.exactly, capacity=(("memory", parse_quantity(memory)),))
    return asks(f"c{next(NUMBERS)}", replace(slot, exactly=exactly))


def wholes(devices: int = 1) -> ResourceClaim:
    return asks(f"c{next(NUMBERS)}", some(devices, WHOLE))


@pytest.mark.parametrize(("cut", "other"), ORDERS)
def test_single_gpus_leave_a_node_that_can_be_cut_to_those_who_want_partitions(cut: str, other: str) -> None:
    belief = cluster([cut], [other])
    planner = planner_of(belief, Document())
    assert [placed(belief, planner, wholes()) for _ in range(2)] == [other, other]
    assert placed(belief, planner, asks("small", some(1, SMALL))) == cut


@pytest.mark.parametrize(("cut", "other"), ORDERS)
def test_a_node_that_can_be_cut_is_taken_where_less_is_spoilt_there(cut: str, other: str) -> None:
    belief = cluster([cut], [other])
    planner = planner_of(belief, Document())
    belief.apply(Changed(asks("small", some(1, SMALL))))
    assert placed(belief, planner, asks("small", some(1, SMALL))) == cut
    # A pair is broken there already.
    assert placed(belief, planner, wholes()) == cut


def test_more_nodes_that_can_be_cut_than_are_looked_at_closely_do_not_hide_one_that_cannot() -> None:
    belief = cluster([f"a{index:02}" for index in range(30)], ["b"])
    planner = planner_of(belief, Document())
    assert [placed(belief, planner, wholes()) for _ in range(2)] == ["b", "b"]


@cache
def sevenths() -> list[ResourceSlice]:
    """Return eight A100s that could be cut, into sevenths alone."""
    found = cut_up(8)
    kept = ([one for one in published.devices if "-mig-" not in one.name or "1g5gb" in one.name] for published in found)
    return [replace(published, devices=tuple(devices)) for published, devices in zip(found, kept, strict=True)]


def eight(name: str, *free: int, is_cut: bool = False) -> list[Noun]:
    """Return a node with these, which others have but for those *free*: as they are, or all parts of them."""
    place = NodeSelection(node_name=NodeName(name))
    slices = [replace(one, pool=PoolName(name), name=f"{name}-{one.name}", selection=place) for one in sevenths()]
    gone = [f"gpu-{index}" for index in range(8) if index not in free]
    taken = [f"{gpu}-mig-1g5gb-19-{part}" for gpu in gone for part in range(7)] if is_cut else gone
    keys = [DeviceKey(NVIDIA, PoolName(name), DeviceName(one)) for one in taken]
    return [node(name), *slices, *([held(wholes(len(keys)), *keys)] if keys else [])]


def many() -> list[Noun]:
    """Return nodes on each of which four other GPUs are left and the rest is cut: few of their devices are free."""
    sets = enumerate(combinations(range(8), 4))
    return [noun for index, free in sets for noun in eight(f"a{index:02}", *free, is_cut=True)]


def test_gpus_that_could_be_cut_are_estimated_like_others_where_nodes_are_more_than_are_looked_at_closely() -> None:
    # On each of the others four would be broken up.
    belief = belief_of(WHOLE_CLASS, *many(), *eight("b", 0, 1))
    assert placed(belief, planner_of(belief, Document(demand=Demand(others=EXPECTED))), wholes(2)) == "b"


@pytest.mark.parametrize(("policy", "best"), [("pack", "full"), ("spread", "empty")])
def test_gpus_that_could_be_cut_are_packed_and_spread_over_more_nodes_than_are_looked_at_closely(
    policy: str, best: str
) -> None:
    belief = belief_of(WHOLE_CLASS, *many(), *eight("full", 0, 1), *eight("empty", *range(8)))
    assert placed(belief, planner_of(belief, Document(policies=Policies(default=policy))), wholes(2)) == best


@pytest.mark.parametrize("memory", ["", "40Gi", "80Gi"])
@pytest.mark.parametrize("policy", ["protect", "pack", "spread", "one-numa"])
def test_gpus_that_could_be_cut_are_estimated_as_what_they_turn_out_to_be_worth(policy: str, memory: str) -> None:
    first, *others = divisible("a")
    amounts = (("memory", Capacity(parse_quantity("80Gi"))),)
    cards = [replace(one, devices=tuple(replace(device, capacity=amounts) for device in one.devices)) for one in others]
    belief = belief_of(SMALL_CLASS, WHOLE_CLASS, node("a"), first, *cards)
    planner = planner_of(belief, Document(policies=Policies(default=policy)))
    placed(belief, planner, asks("small", some(1, SMALL)))
    plan = planned(belief, planner, parts(memory) if memory else wholes())
    assert isinstance(plan, Offer)
    assert plan.placement.appraisal
    values = surveyed(plan).values
    assert values is not None
    # That it could be cut, of which no estimate tells, is a trifle.
    assert values.tolist() == [plan.placement.appraisal.value + 1]


@pytest.mark.parametrize("names", [("gpu-0", "gpu-1"), ("gpu-1", "gpu-0")])
def test_single_gpus_of_a_node_leave_the_gpu_that_can_be_cut(names: tuple[str, str]) -> None:
    last, uncut = names
    slices = [one_uncut(published, uncut) for published in divisible("a")]
    belief = belief_of(SMALL_CLASS, WHOLE_CLASS, node("a"), *slices)
    planner = planner_of(belief, Document())
    assert [given(planned(belief, planner, wholes())) for _ in range(2)] == [[uncut], [last]]


@pytest.mark.parametrize("beside", [(), (some(1, NIC, "nic"),)])
@pytest.mark.parametrize("names", [("gpu-0", "gpu-1"), ("gpu-1", "gpu-0")])
def test_gpus_beside_nics_leave_the_gpu_that_can_be_cut_too(
    names: tuple[str, str], beside: tuple[RequestSlot, ...]
) -> None:
    last, uncut = names
    slices = [one_uncut(published, uncut) for published in divisible("a")]
    # Both GPUs are on the same NUMA node, and no NIC is on the root of either.
    belief = belief_of(NIC_CLASS, WHOLE_CLASS, node("a"), *slices, nics("a", 4))
    planner = planner_of(belief, Document())
    found = [given(planned(belief, planner, asks(f"c{next(NUMBERS)}", some(1, WHOLE), *beside))) for _ in range(2)]
    assert [devices[0] for devices in found] == [uncut, last]


def one_uncut(published: ResourceSlice, name: str) -> ResourceSlice:
    """Publish the same where one of the GPUs cannot be cut."""
    others = [device for device in published.devices if not device.name.startswith(name)]
    plain = [replace(device, traits=PLAIN) for device in published.devices if device.name == name]
    return replace(published, devices=(*others, *plain))


def test_what_could_be_given_in_parts_is_told_beside_what_is_left_of_it() -> None:
    belief = belief_of(SMALL_CLASS, WHOLE_CLASS, *eight("a", 0, 1, 2, is_cut=True))
    planner = planner_of(belief, Document())
    said = [told(planned(belief, planner, wholes(devices)), "parts") for devices in (2, 1)]
    assert said == [f"{one} whole ones that could be given in parts" for one in ("2 of 3", "1 of 1")]


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize(("many", "one"), ORDERS)
def test_who_asks_for_a_part_leaves_what_nobody_can_share(many: str, one: str, devices: int) -> None:
    belief = sharing([shared(plain(many))], [shared(plain(one), PLAIN)])
    planner = planner_of(belief, Document())
    found = [placed(belief, planner, parts("20Gi", devices)) for _ in range(8 // devices + 1)]
    assert found == [many] * (8 // devices) + [one]


def test_what_fits_is_taken_before_what_is_lost_though_a_part_would_do() -> None:
    small, large = plain("b"), shared(plain("a"), PLAIN)
    belief = sharing([small], [large])
    planner = planner_of(belief, Document())
    assert [placed(belief, planner, parts("40320Mi")) for _ in range(3)] == ["b", "b", "a"]
    assert (
        told(planned(belief, planner, parts("40320Mi")), "spoilt") == "1 that nobody can share, though a part would do"
    )


def test_many_nodes_of_which_nothing_can_be_shared_do_not_hide_one_of_which_something_can() -> None:
    names = [f"a{index:02}" for index in range(30)]
    belief = sharing([shared(gpus("b", 8))], [shared(gpus(name, 8), PLAIN) for name in names])
    # On each other three GPUs are left: no pair is broken there, and no two nodes are in one state.
    for name, left in zip(names, islice(combinations(range(8), 3), len(names)), strict=True):
        keys = [DeviceKey(NVIDIA, PoolName(name), DeviceName(f"d{index}")) for index in range(8) if index not in left]
        belief.apply(Changed(held(asks(f"held-{name}", some(len(keys), WHOLE)), *keys)))
    assert placed(belief, planner_of(belief, Document()), parts("20Gi")) == "b"


@pytest.mark.parametrize("devices", [1, 2])
def test_many_nodes_of_which_something_can_be_shared_do_not_hide_one_whose_gpus_are_needed_as_they_are(
    devices: int,
) -> None:
    names = [f"a{index:02}" for index in range(30)]
    belief = sharing([shared(gpus(name, 8)) for name in names], [shared(gpus("b", 8), PLAIN)])
    # No set of GPUs is broken there.
    key = DeviceKey(NVIDIA, PoolName("b"), DeviceName("d0"))
    belief.apply(Changed(held(asks("held", some(1, WHOLE)), key)))
    assert placed(belief, planner_of(belief, Document()), parts("80Gi", devices)) == "b"


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize(("many", "one"), ORDERS)
def test_whole_gpus_leave_what_can_be_shared_to_those_who_want_parts(many: str, one: str, devices: int) -> None:
    belief = sharing([shared(plain(many))], [plain(one)])
    planner = planner_of(belief, Document())
    found = [placed(belief, planner, wholes(devices)) for _ in range(4 // devices)]
    assert found == [one] * (2 // devices) + [many] * (2 // devices)


def test_what_is_told_of_whole_gpus_that_others_could_share_is_told_of_all_nodes() -> None:
    belief = sharing([shared(plain("a")), shared(plain("b"))])
    planner = planner_of(belief, Document())
    plan = planned(belief, planner, wholes())
    assert isinstance(plan, Offer)
    assert {ranked.value for ranked in plan.best} == {sum(part.value for part in ranked.parts) for ranked in plan.best}
    assert [ranked.value for ranked in plan.best] == [-ALONE, -ALONE]


def test_an_amount_that_is_all_of_a_small_device_is_not_held_against_that() -> None:
    small = shared(plain("b"))
    half = (("memory", Capacity(parse_quantity("40Gi"))),)
    small = replace(small, devices=tuple(replace(device, capacity=half) for device in small.devices))
    belief = sharing([shared(plain("a")), small])
    assert placed(belief, planner_of(belief, Document()), parts("40Gi")) == "b"


@pytest.mark.parametrize("policy", ["protect", "pack", "spread"])
@pytest.mark.parametrize("shareable", [(0, 1), (2, 3), (0, 2)])
def test_whole_gpus_of_a_node_leave_those_that_can_be_shared(shareable: tuple[int, ...], policy: str) -> None:
    belief = sharing([partly("a", 4, shareable)])
    planner = planner_of(belief, Document(policies=Policies(default=policy)))
    found = [name for _ in range(4) for name in given(planned(belief, planner, wholes()))]
    assert {int(name[1:]) for name in found[2:]} == set(shareable)


def test_gpus_of_one_kind_that_can_be_shared_are_better_than_gpus_of_two_kinds_that_cannot() -> None:
    cards = partly("a", 4, (0, 1))
    (*others, last) = cards.devices
    other = dict(last.attributes) | {"type": Attribute("string", "display")}
    belief = sharing([replace(cards, devices=(*others, replace(last, attributes=tuple(sorted(other.items())))))])
    belief.apply(Changed(ANY_CLASS))
    assert given(planned(belief, planner_of(belief, Document()), asks("c", some(2, ANY)))) == ["d0", "d1"]


def test_whole_gpus_that_cannot_be_shared_are_chosen_beside_nics() -> None:
    cards = partly("a", 4, (0, 2))
    belief = sharing([cards])
    belief.apply(Changed(NIC_CLASS))
    near = nics("a", 4)
    belief.apply(Changed(replace(near, devices=near.devices[3:])))
    claim = asks("c", some(1, WHOLE), some(1, NIC, "nic"))
    assert given(planned(belief, planner_of(belief, Document()), claim)) == ["d3", "d3"]


@pytest.mark.parametrize("devices", [2, 3, 4])
@pytest.mark.parametrize("policy", ["protect", "pack", "spread"])
@pytest.mark.parametrize("shareable", [(0, 1, 2), (2, 3, 4), (0, 2, 4)])
def test_whole_gpus_of_a_node_leave_those_that_can_be_shared_as_far_as_the_others_go(
    shareable: tuple[int, ...], policy: str, devices: int
) -> None:
    belief = sharing([partly("a", 5, shareable)])
    found = given(planned(belief, planner_of(belief, Document(policies=Policies(default=policy))), wholes(devices)))
    assert len([name for name in found if int(name[1:]) in shareable]) == devices - 2


@pytest.mark.parametrize(("policy", "best"), [("pack", "mixed"), ("spread", "full")])
def test_of_a_set_that_is_shareable_in_part_all_devices_are_packed_and_spread(policy: str, best: str) -> None:
    belief = sharing([shared(gpus("full", 8))], [partly("mixed", 6, (0, 2, 4))])
    # Four of eight stay free, or two of six: of those that can be shared two of three.
    planner = planner_of(belief, Document(policies=Policies(default=policy)))
    assert placed(belief, planner, wholes(4)) == best


def test_gpus_that_nobody_can_share_are_estimated_like_others_where_nodes_have_some_that_many_can() -> None:
    # Of the others three of eight would stay free, and of b four of sixteen, which are more.
    left = {f"a{index:02}": free for index, free in enumerate(combinations(range(7), 4))} | {"b": tuple(range(5))}
    sizes = {name: 16 if name == "b" else 8 for name in left}
    belief = sharing([partly(name, size, (size - 1,)) for name, size in sizes.items()])
    for name, free in left.items():
        gone = [DeviceName(f"d{index}") for index in range(sizes[name] - 1) if index not in free]
        belief.apply(Changed(held(wholes(len(gone)), *(DeviceKey(NVIDIA, PoolName(name), one) for one in gone))))
    planner = planner_of(belief, Document(policies=Policies(default="pack")))
    assert placed(belief, planner, wholes(2)) == "b"


def test_what_is_told_of_a_set_that_is_shareable_in_part_names_all_of_it() -> None:
    belief = sharing([partly("a", 3, (0,))])
    plan = planned(belief, planner_of(belief, Document(policies=Policies(default="pack"))), wholes(3))
    devices = ", ".join(f"1000 of 1000 free thousandths of d{index}" for index in range(3))
    assert told(plan, "shares") == f"pack: takes {devices}"


def partly(name: str, count: int, shareable: Sequence[int]) -> ResourceSlice:
    """Publish GPUs of which only some can be shared."""
    cards = gpus(name, count)
    both = zip(cards.devices, shared(cards).devices, strict=True)
    return replace(cards, devices=tuple(pair[index in shareable] for index, pair in enumerate(both)))


def given(plan: Plan) -> list[str]:
    assert isinstance(plan, Offer)
    return [str(item.device.device) for _, allocation in plan.placement.claims for item in allocation.devices]


def sharing(*groups: Sequence[ResourceSlice]) -> Belief:
    slices = [one for group in groups for one in group]
    return belief_of(WHOLE_CLASS, *(node(one.pool) for one in slices), *slices)


def told(plan: Plan, name: str) -> str:
    """Return what a part of the worth says, all of which make it up."""
    assert isinstance(plan, Offer)
    found = plan.placement.appraisal
    assert found is not None
    assert found.value == sum(part.value for part in found.parts)
    (text,) = (part.text for part in found.parts if part.name == name)
    return text
