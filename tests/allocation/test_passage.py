"""What is told of nodes is carried on, though others come or go, and devices with them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.allocation.cel import Path
from extender.allocation.columns import Column, Dictionary
from extender.allocation.passage import passage
from extender.allocation.snapshot import Snapshot, with_usage
from extender.allocation.usage import Usage
from extender.model.change import Change, Changed, Gone, Listed
from extender.model.claim import DeviceClass
from extender.model.device import ResourceSlice
from extender.model.names import ClassName, NodeName, ObjectKey
from extender.model.node import Node
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector
from extender.state.cluster import Cluster
from tests.allocation import small
from tests.allocation.fleets import Fleet

NAMES = tuple(NodeName(f"n{index}") for index in range(6))


def published(home: str, devices: int, **parts: Any) -> ResourceSlice:
    return small.published(home, *(small.device(f"d{index}") for index in range(devices)), **parts)


def cluster() -> Cluster:
    return small.cluster(*map(small.node, NAMES), *(published(name, 2) for name in NAMES))


TAINT = Taint(key="ours", effect="NoSchedule")
RULE = DeviceTaintRule(name="rule", selector=TaintSelector(driver=small.DRIVER), taint=TAINT)
CHANGES: dict[str, tuple[Change, list[str]]] = {
    "a node has gone": (Gone(Node, ObjectKey("", "n2")), []),
    "a node has come": (Changed(small.node("n2a")), ["n2a"]),
    "the first node has gone": (Gone(Node, ObjectKey("", "n0")), []),
    "the last node has gone": (Gone(Node, ObjectKey("", "n5")), []),
    "a node declares another feature": (Changed(small.node("n3", declared_features=("f",))), ["n3"]),
    "a slice has gone": (Gone(ResourceSlice, ObjectKey("", "n3")), ["n3"]),
    "a slice has come": (Changed(published("other", 1, node_name=NodeName("n1"))), ["n1"]),
    "a slice has one device more": (Changed(published("n4", 3)), ["n4"]),
    "a slice is another's": (Changed(published("n4", 2, node_name=NAMES[0])), ["n0", "n4"]),
    "a pool is short of a slice": (Changed(published("n4", 3, count=2)), ["n4"]),
}


@pytest.mark.parametrize("has_rule", [False, True], ids=["without rules", "with a rule"])
@pytest.mark.parametrize("what", CHANGES)
def test_only_what_is_concerned_has_changed(what: str, *, has_rule: bool) -> None:
    known, (change, expected) = cluster(), CHANGES[what]
    if has_rule:
        known.apply(Changed(RULE))
    assert found(known.snapshot, known.apply(change)) == expected


def found(before: Snapshot, after: Snapshot) -> list[str] | None:
    way = passage(before, after)
    return None if way is None else [after.layout.nodes[node] for node in way.changed.tolist()]


def test_a_node_whose_slice_is_published_anew_has_changed_where_rules_may_name_its_devices() -> None:
    """A rule may name a device whose name no column has."""
    known, renamed = cluster(), small.published("n1", small.device("d1"), small.device("d0"))
    known.apply(Changed(RULE))
    assert found(known.snapshot, known.apply(Changed(renamed))) == ["n1"]


ANYWHERE: dict[str, DeviceTaintRule | DeviceClass] = {"a rule": RULE, "a class": DeviceClass(name=ClassName("gpu"))}


@pytest.mark.parametrize("what", ANYWHERE)
def test_where_what_is_said_of_all_nodes_has_changed_any_may_have(what: str) -> None:
    known = cluster()
    before = known.snapshot
    known.apply(Changed(ANYWHERE[what]))
    assert passage(before, known.apply(Gone(Node, ObjectKey("", "n2")))) is None


def test_where_codes_mean_something_else_any_node_may_have_changed() -> None:
    known = cluster()
    before = known.snapshot
    after = known.apply(Gone(Node, ObjectKey("", "n2")))
    usage = Column(after.usage.codes, Dictionary(list(after.usage.dictionary.values)))
    assert passage(before, replace(after, usage=usage)) is None


def test_a_node_is_new_though_its_devices_were_published_before() -> None:
    known = cluster()
    known.apply(Changed(published("n2a", 2)))
    assert found(known.snapshot, known.apply(Changed(small.node("n2a")))) == ["n2a"]


def test_of_a_cluster_without_nodes_nothing_is_carried_on() -> None:
    known = cluster()
    before = known.snapshot
    bare = known.apply(Listed(Node, ()))
    assert passage(bare, before) is None
    assert found(before, bare) == []


def test_a_node_that_tells_otherwise_has_changed_where_another_has_gone() -> None:
    known = cluster()
    before = known.snapshot
    known.apply(Gone(Node, ObjectKey("", "n2")))
    known.apply(Changed(small.node("n1", "a")))
    assert found(before, known.apply(Changed(small.node("n3", declared_features=("f",))))) == ["n3"]


def part(home: str, devices: int) -> ResourceSlice:
    """Publish a part of a pool that two nodes have in common."""
    return published("both", devices, name=home, count=2, node_name=NodeName(home))


def test_what_becomes_of_a_pool_concerns_all_who_have_a_part_of_it() -> None:
    """A pool of two generations: what is left of the older one is given to nobody."""
    known = cluster()
    for home in ("n1", "n4"):
        known.apply(Changed(part(home, 2)))
    newer = replace(part("n1", 3), generation=2)
    assert found(known.snapshot, known.apply(Changed(newer))) == ["n1", "n4"]


def test_what_was_taken_meanwhile_has_changed_too() -> None:
    known = cluster()
    before = known.snapshot
    after = known.apply(Gone(Node, ObjectKey("", "n2")))
    taken = after.layout.local(3)[:1].tolist()
    assert found(before, with_usage(after, dict.fromkeys(taken, Usage(dedicated=1)))) == ["n4"]


def test_what_becomes_of_a_part_elsewhere_concerns_who_has_another_part() -> None:
    known = cluster()
    for home in ("n1", "elsewhere"):
        known.apply(Changed(part(home, 2)))
    newer = replace(part("elsewhere", 3), generation=2)
    assert found(known.snapshot, known.apply(Changed(newer))) == ["n1"]


def told(snapshot: Snapshot, paths: Iterable[Path]) -> dict[NodeName, object]:
    """Say of each node all that an answer may depend on, as far as it is a node's own."""
    layout, standing = snapshot.layout, snapshot.inventory.standing
    columns = [snapshot.inventory.column(path) for path in sorted(paths)]
    said = dict[NodeName, object]()
    for number, name in enumerate(layout.nodes):
        slices = layout.local_slices(number).tolist()
        said[name] = (
            [column.value(row) for column in columns for row in layout.local(number).tolist()],
            [standing.value(index) for index in slices],
            [snapshot.usage_at(row) for row in layout.local(number).tolist()],
            snapshot.nodes[name].declared_features,
        )
    return said


@given(st.integers(0, 1 << 30))
@settings(max_examples=100)
def test_who_has_not_changed_is_as_before_and_what_was_told_of_it_is_carried(seed: int) -> None:
    fleet, known = Fleet(seed), Cluster()
    for change in fleet.changes():
        known.apply(change)
    before = known.snapshot
    for _ in range(10):
        for _ in range(fleet.random.choice((1, 1, 2, 5))):
            known.apply(fleet.change())
        check(before, known.snapshot)
        before = known.snapshot


def check(before: Snapshot, after: Snapshot) -> None:
    way = passage(before, after)
    if way is None:
        return
    paths = before.inventory.columns.keys() | after.inventory.columns.keys()
    old, new, changed = told(before, paths), told(after, paths), set(way.changed.tolist())
    names = way.carried(np.array([*before.layout.nodes], np.str_))
    for number, name in enumerate(after.layout.nodes):
        if number not in changed:
            assert names[number] == name
            assert old[name] == new[name]
