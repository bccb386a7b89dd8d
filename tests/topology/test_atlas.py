"""Machines by number: a number is one machine's for ever, and machines that are nobody's any more are forgotten."""

import json
from dataclasses import replace

import pytest

from extender.model.change import Changed
from extender.model.device import PLAIN, Attribute, Counter, CounterConsumption, ResourceSlice, Traits
from extender.model.names import DeviceName, NodeName
from extender.model.node import Node
from extender.model.quantity import parse_quantity
from extender.state.belief import Belief
from extender.topology import atlas
from extender.topology.atlas import Atlas, Machine
from extender.topology.tables import shipped
from tests.scheduling.cast import belief_of
from tests.scheduling.machines import sample

NODES = tuple(f"n{index}" for index in range(6))


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let so few machines be remembered that the nodes have more."""
    monkeypatch.setattr(atlas, "MACHINES", 4)


def own(node: str, version: int = 0) -> ResourceSlice:
    """Return GPUs with names that no other node has, and none of another version."""
    published = sample("dgx-1v", node)
    devices = (replace(device, name=DeviceName(f"{node}-{version}-{device.name}")) for device in published.devices)
    return replace(published, devices=tuple(devices))


def believing() -> Belief:
    return belief_of(*(Node(name=NodeName(name)) for name in NODES), *map(own, NODES))


def numbers(known: Atlas, belief: Belief) -> list[int]:
    return list(known.numbers(belief.cluster.snapshot).tolist())


def told(machine: Machine) -> list[tuple[str, object]]:
    """Say all that tells machines apart."""
    return [(group.links.shape, group.links.devices) for group in machine]


def test_more_machines_than_are_remembered_keep_their_numbers_as_long_as_they_are_in_use() -> None:
    known, belief = Atlas(shipped()), believing()
    before = numbers(known, belief)
    machines = [known.machines[number] for number in before]
    for label in "xyz":
        belief.apply(Changed(Node(name=NodeName("n0"), labels=((label, ""),))))
        assert numbers(known, belief) == before
    assert all(known.machines[number] is machine for number, machine in zip(before, machines, strict=True))
    assert len(known.machines) == len(NODES) == len(set(before))


def test_machines_that_no_node_is_any_more_are_forgotten_and_their_numbers_are_nobody_elses() -> None:
    known, belief = Atlas(shipped()), believing()
    given: dict[int, object] = {number: told(known.machines[number]) for number in numbers(known, belief)}
    for version in range(1, 6):
        for name in NODES:
            belief.apply(Changed(own(name, version)))
            for number in numbers(known, belief):
                assert given.setdefault(number, told(known.machines[number])) == told(known.machines[number])
            assert len(known.machines) <= 2 * len(NODES)
    assert len(given) == 6 * len(NODES)


def test_what_is_published_first_has_all_machines_told_anew_and_the_old_ones_forgotten() -> None:
    known, belief = Atlas(shipped(), ["tier"]), believing()
    before = numbers(known, belief)
    published = own("n0")
    tier = ("tier", Attribute("string", "gold"))
    devices = (replace(device, attributes=(*device.attributes, tier)) for device in published.devices)
    belief.apply(Changed(replace(published, devices=tuple(devices))))
    after = numbers(known, belief)
    assert not {*before} & {*after}
    assert known.machines.keys() == {*after}


def test_a_machine_that_was_forgotten_is_told_anew_when_it_is_back() -> None:
    known, belief = Atlas(shipped()), believing()
    first = numbers(known, belief)[0]
    for version in (*range(1, 9), 0):
        belief.apply(Changed(own("n0", version)))
        last = numbers(known, belief)[0]
    fresh = Atlas(shipped())
    assert first not in known.machines
    assert told(known.machines[last]) == told(fresh.machines[numbers(fresh, belief)[0]])


def unlike(node: str, batch: str) -> ResourceSlice:
    """Return GPUs of an unknown product, whose links are told by the node alone, with the UUIDs of a *batch*."""
    published = sample("dgx-1v", node)
    devices = []
    for index, device in enumerate(published.devices):
        values = {"productName": "unknown", "uuid": f"{batch}-{index}"}
        kept = [item for item in device.attributes if item[0] not in values]
        given = [(name, Attribute("string", value)) for name, value in values.items()]
        devices.append(replace(device, attributes=tuple(sorted(kept + given))))
    return replace(published, devices=tuple(devices))


def linked(batch: str) -> Node:
    """Return a node that tells of four links between the first two GPUs of a *batch*."""
    scores = [{"uuid": f"{batch}-0", "score": {f"{batch}-1": 400}}]
    return Node(name=NodeName("a"), annotations=(("hami.io/node-nvidia-score", json.dumps(scores)),))


def links(known: Atlas, belief: Belief) -> int:
    ((group,),) = (known.machines[number] for number in numbers(known, belief))
    return int(group.links.links[0, 1])


def test_links_that_a_node_tells_of_before_the_devices_are_published_are_seen_when_these_are() -> None:
    known, belief = Atlas(shipped()), belief_of(linked("new"), unlike("a", "old"))
    found = [links(known, belief)]
    for batch in ("new", "old", "new"):
        belief.apply(Changed(unlike("a", batch)))
        found.append(links(known, belief))
    assert found == [0, 4, 0, 4]


def test_uuids_make_no_machines_where_no_node_tells_of_links() -> None:
    known, belief = Atlas(shipped()), belief_of(Node(name=NodeName("a")), unlike("a", "old"))
    before = numbers(known, belief)
    belief.apply(Changed(unlike("a", "new")))
    assert numbers(known, belief) == before


@pytest.mark.parametrize("name", ["a-before", "z-before"])
def test_devices_of_slices_that_are_left_over_are_on_a_node_once(name: str) -> None:
    known, belief = Atlas(shipped()), belief_of(Node(name=NodeName("a")), unlike("a", "old"))
    ((before,),) = (known.machines[number] for number in numbers(known, belief))
    now = unlike("a", "old")
    for change in (replace(now, name=name, generation=now.generation), replace(now, generation=now.generation + 1)):
        belief.apply(Changed(change))
    ((both,),) = (known.machines[number] for number in numbers(known, belief))
    assert both.members == before.members
    first = 0 if name > now.name else len(now.devices)
    assert sorted(both.indices) == [first + index for index in range(len(now.devices))]


SHARED = Traits(allow_multiple_allocations=True)
DRAWING = Traits(consumes_counters=(CounterConsumption("chip", (Counter("memory", parse_quantity("1")),)),))


def with_traits(node: str, traits: Traits) -> ResourceSlice:
    """Return the GPUs of an ordinary node as devices that several can have, or of which some could have parts."""
    published = sample("dgx-1v", node)
    return replace(published, devices=tuple(replace(device, traits=traits) for device in published.devices))


@pytest.mark.parametrize("traits", [SHARED, DRAWING])
def test_nodes_that_differ_in_which_devices_can_be_shared_or_cut_are_different_machines(traits: Traits) -> None:
    slices = [sample("dgx-1v", "n0"), with_traits("n1", traits), sample("dgx-1v", "n2")]
    known, belief = Atlas(shipped()), belief_of(*(Node(name=NodeName(name)) for name in NODES[:3]), *slices)
    plain, special, other = numbers(known, belief)
    assert plain == other != special
    for number, expected in ((plain, PLAIN), (special, traits)):
        members = [member for group in known.machines[number] for member in group.members]
        assert {member.device.traits for member in members} == {expected}


@pytest.mark.parametrize("traits", [SHARED, DRAWING])
def test_no_other_machine_is_told_anew_where_the_first_device_that_can_be_shared_or_cut_comes_and_goes(
    traits: Traits,
) -> None:
    known, belief = Atlas(shipped()), believing()
    before = numbers(known, belief)
    for published, is_same in ((with_traits("n0", traits), False), (own("n0"), True)):
        belief.apply(Changed(published))
        after = numbers(known, belief)
        assert after[1:] == before[1:]
        assert (after[0] == before[0]) is is_same
