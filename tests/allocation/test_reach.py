"""Who sees which shared pools: worked out for all nodes at once as for each, and anew only for what changed."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from extender.allocation.choose import choose
from extender.allocation.difference import changed_nodes
from extender.allocation.features import Features
from extender.allocation.fit import Fitter
from extender.allocation.pools import Unreadable, reaches
from extender.allocation.reach import UNTOLD
from extender.allocation.site import site_of
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Failure
from extender.model.change import Changed, Gone, Listed
from extender.model.device import NodeSelection, ResourceSlice
from extender.model.names import NodeName, ObjectKey, PoolName
from extender.model.node import Node
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement, problem_of
from extender.state.cluster import Cluster
from tests.allocation.small import (
    DRIVER,
    chosen,
    cluster,
    device,
    holder,
    node,
    published,
    question,
    request,
    selector,
    verdicts,
)

NAMES = tuple(map(NodeName, ("n0", "n1", "n2", "n3", "n4")))


def drawn_node(random: Random, name: NodeName) -> Node:
    labels = {"zone": random.choice("abc"), "disk": random.choice(("ssd", "7")), "name": name}
    return Node(name=name, labels=tuple(sorted(random.sample(sorted(labels.items()), random.randint(0, 3)))))


def drawn_selection(random: Random) -> NodeSelection:
    requirements = (
        Requirement(key="zone", operator=random.choice(("In", "NotIn")), values=(random.choice("abc"),)),
        Requirement(key="disk", operator=random.choice(("Exists", "DoesNotExist"))),
        Requirement(key="disk", operator="Gt", values=(random.choice(("6", "x")),)),
    )
    named = Requirement(
        key=random.choice(("metadata.name", "other")), operator=random.choice(("In", "NotIn")), values=("n1",)
    )
    terms = tuple(
        NodeSelectorTerm(
            expressions=tuple(random.sample(requirements, random.randint(0, 2))),
            fields=(named,) if random.random() < 0.4 else (),
        )
        for _ in range(random.randint(0, 2))
    )
    whole = (NodeSelection(all_nodes=True), NodeSelection(node_name=random.choice(NAMES)), NodeSelection())
    return random.choice((*whole, *(NodeSelection(selector=NodeSelector(terms)),) * 5))


def drawn_slice(random: Random, index: int) -> ResourceSlice:
    item = published("pool", device("d0"), device("d1"), name=f"s{index}", count=3)
    item = replace(item, pool=PoolName(random.choice(("pool", "other"))), selection=drawn_selection(random))
    if random.random() < 0.5:
        return item
    selections = (random.choice((None, drawn_selection(random))) for _ in item.devices)
    devices = tuple(
        replace(one, traits=replace(one.traits, selection=each))
        for one, each in zip(item.devices, selections, strict=True)
    )
    return replace(item, selection=None, devices=devices)


def seen(snapshot: Snapshot) -> list[Any]:
    reach = snapshot.reach
    return [
        (
            tuple((key, *part) for key in reach.pools[way] for part in reach.parts(key, way).tolist()),
            reach.pools[way],
        )
        for way in reach.view.tolist()
    ]


def sight(selection: NodeSelection | None, of: Node) -> int:
    try:
        return int(selection is not None and reaches(selection, of))
    except Unreadable:
        return UNTOLD


def plainly_seen(snapshot: Snapshot, of: Node) -> Any:
    """Ask for one node, slice by slice."""
    found = []
    for item, standing in zip(snapshot.inventory.slices, snapshot.inventory.standing.decoded(), strict=True):
        if standing is None or standing.shared_pool is None:
            continue
        place = [other for other in snapshot.inventory.slices if other.pool_key == item.pool_key].index(item)
        parts = (
            [(-1, item.selection)] if item.selection else [(i, d.traits.selection) for i, d in enumerate(item.devices)]
        )
        found += [(item.pool_key, place, part, bit) for part, where in parts if (bit := sight(where, of))]
    return tuple(found), tuple(dict.fromkeys(pool for pool, *_ in found))


@pytest.mark.parametrize("seed", range(60))
def test_each_node_sees_what_it_alone_would_see_whatever_changed(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - no secret depends on it
    nodes = [drawn_node(random, name) for name in NAMES]
    built = cluster(*nodes, *(drawn_slice(random, index) for index in range(5)))
    for _ in range(12):
        snapshot = built.snapshot
        assert seen(snapshot) == [plainly_seen(snapshot, snapshot.nodes[name]) for name in snapshot.layout.nodes]
        if random.random() < 0.6:
            built.apply(Changed(drawn_node(random, random.choice(NAMES))))
        elif random.random() < 0.8:
            built.apply(Changed(drawn_slice(random, random.randrange(6))))
        else:
            built.apply(Gone(Node, ObjectKey("", random.choice(NAMES))))


def zoned() -> Cluster:
    nodes = [node(name, "abcd"[index % 4]) for index, name in enumerate(NAMES)]
    shared = [published(f"pool-{zone}", device("d"), selector=selector(zone)) for zone in "abcd"]
    return cluster(*nodes, *shared)


def test_a_change_of_one_node_asks_the_selectors_about_that_node_only(monkeypatch: pytest.MonkeyPatch) -> None:
    built, asked = zoned(), []

    def counted(selection: NodeSelection, of: Node, **known: bool) -> bool:
        asked.append(of.name)
        return reaches(selection, of, **known)

    monkeypatch.setattr("extender.allocation.reach.reaches", counted)
    before = built.snapshot
    after = built.apply(Changed(node("n2", "d")))
    assert asked == ["n2"] * 4
    assert changed_nodes(before, after).tolist() == [2]  # type: ignore[union-attr]  # some nodes


def test_a_node_that_comes_is_the_only_one_that_selectors_are_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    built, asked = zoned(), []

    def counted(selection: NodeSelection, of: Node, **known: bool) -> bool:
        asked.append(of.name)
        return reaches(selection, of, **known)

    monkeypatch.setattr("extender.allocation.reach.reaches", counted)
    came = built.apply(Changed(node("n25", "b")))
    assert asked == ["n25"] * 4
    assert seen(came) == [plainly_seen(came, came.nodes[name]) for name in came.layout.nodes]
    left = built.apply(Gone(Node, ObjectKey("", "n1")))
    assert asked == ["n25"] * 4
    assert seen(left) == [plainly_seen(left, left.nodes[name]) for name in left.layout.nodes]


def test_a_selector_is_checked_once_for_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that names hosts looks at each of them, and to check hundreds of names takes long."""
    hosts, checked = [f"n{number}" for number in range(20)], list[NodeSelector]()

    def counted(wanted: NodeSelector) -> str | None:
        checked.append(wanted)
        return problem_of(wanted)

    for module in ("reach", "pools"):
        monkeypatch.setattr(f"extender.allocation.{module}.problem_of", counted)
    built = cluster(*(node(name, name) for name in hosts), published("p", device("d"), selector=selector(*hosts[:10])))
    assert built.snapshot.reach.view.tolist().count(1) == 10
    assert len(checked) == 1


def test_a_changed_selector_is_the_only_one_that_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    built, asked = zoned(), []

    def counted(selection: NodeSelection, of: Node, **known: bool) -> bool:
        asked.append(selection)
        return reaches(selection, of, **known)

    monkeypatch.setattr("extender.allocation.reach.reaches", counted)
    fresh = published("pool-a", device("d"), selector=selector("b", "c"))
    built.apply(Changed(fresh))
    assert set(asked) == {fresh.selection}
    built.apply(Changed(replace(fresh, devices=(device("e"),))))
    assert len(asked) == 4


def test_what_nobody_reads_of_a_node_changes_no_answer() -> None:
    built = zoned()
    before = built.snapshot
    after = built.apply(Changed(node("n2", "c", is_unschedulable=True)))
    assert after.nodes[NodeName("n2")].is_unschedulable
    assert after.reach is before.reach
    assert after.boards is before.boards
    assert np.array_equal(changed_nodes(before, after), [])  # type: ignore[arg-type]  # some nodes


def test_what_a_nodes_annotations_tell_is_looked_at_anew_there_alone() -> None:
    built = zoned()
    before = built.snapshot
    for index in range(3):
        site_of(before, index, Features())
    after = built.apply(Changed(node("n2", "c", annotations=(("a", "1"),))))
    assert after.nodes[NodeName("n2")].annotations == (("a", "1"),)
    assert after.reach is before.reach
    assert {index for index, _ in after.boards} == {0, 1}
    assert {index for index, _ in before.boards} == {0, 1, 2}


def test_a_node_that_declares_another_feature_is_asked_again() -> None:
    built = zoned()
    before = built.snapshot
    after = built.apply(Changed(node("n2", "c", declared_features=("DRAOptionalNodeOperations",))))
    assert changed_nodes(before, after).tolist() == [2]  # type: ignore[union-attr]  # some nodes
    backwards = [after.nodes[name] for name in sorted(after.nodes, reverse=True)]
    again = built.apply(Listed(Node, (*backwards[:-1], node("n0", "a", declared_features=("Other",)))))
    assert changed_nodes(after, again).tolist() == [0]  # type: ignore[union-attr]  # some nodes


def test_ways_that_no_node_sees_any_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.allocation.reach.SPARE", 0)
    built = zoned()
    for number in range(40):
        item = published("pool-a", device("d"), selector=selector("a"))
        built.apply(Changed(replace(item, pool=PoolName(f"p{number}"), name=f"p{number}")))
    random = Random(1)  # noqa: S311 - no secret depends on it
    for _ in range(200):
        built.apply(Changed(node(random.choice(NAMES), random.choice("abcd"))))
    assert len(built.snapshot.reach.seen) <= 2 * len(NAMES) + 1


def test_a_change_of_a_private_device_concerns_its_node_alone() -> None:
    built = zoned()
    built.apply(Changed(published("n4", device("d"))))
    before = built.snapshot
    after = built.apply(Changed(holder("h", "n4", "d")))
    assert changed_nodes(before, after).tolist() == [4]  # type: ignore[union-attr]  # some nodes


def test_pools_that_are_seen_in_one_order_are_not_taken_for_each_other() -> None:
    """What stands before a pool among the shared ones says nothing about what is seen of it."""
    halves = [
        published("B", device("d0", {"m": "A"}), name="b1", count=2, selector=selector("a")),
        published("B", device("d1", {"m": "B"}), name="b2", count=2, selector=selector("b")),
    ]
    first, last = (published(pool, device("x", {"m": "Z"}), selector=selector("q")) for pool in ("A", "C"))
    built = cluster(node("n1", "a"), node("n2", "b"), *halves, first)
    asked = question(request(selectors=[f"device.attributes['{DRIVER}'].m == 'A'"]))
    fitter = Fitter(asked)
    assert verdicts(fitter, built.snapshot) == ["FITS", "NO"]
    built.apply(Gone(ResourceSlice, ObjectKey("", "A")))
    built.apply(Changed(last))
    assert verdicts(fitter, built.snapshot) == chosen(asked, built.snapshot) == ["FITS", "NO"]


def test_a_devices_selector_that_cannot_be_read_is_met_where_a_search_comes_to_it() -> None:
    strange = NodeSelector((NodeSelectorTerm(expressions=(Requirement(key="zone", operator="Like", values=("a",)),)),))
    first = device("d0", selection=NodeSelection(all_nodes=True))
    unreadable = device("d1", {"m": "B"}, selection=NodeSelection(selector=strange))
    snapshot = cluster(node("n"), replace(published("p", first, unreadable), selection=None)).snapshot
    other = question(request(2, selectors=[f"!('m' in device.attributes['{DRIVER}'])"]))
    for asked, verdict in ((question(request()), "FITS"), (question(request(2)), "FAILS"), (other, "NO")):
        assert verdicts(Fitter(asked), snapshot) == chosen(asked, snapshot) == [verdict]


def test_selectors_that_cannot_be_read_are_one_trouble_on_whichever_devices_these_are() -> None:
    strange = NodeSelector((NodeSelectorTerm(expressions=(Requirement(key="zone", operator="Like", values=("a",)),)),))
    met = device("d0", selection=NodeSelection(all_nodes=True)), device("d1", selection=NodeSelection(selector=strange))
    asked, faults = question(request(2)), set[object]()
    for pool in ("p", "q"):
        answer = choose(cluster(node("n"), replace(published(pool, *met), selection=None)).snapshot, 0, asked)
        assert isinstance(answer, Failure)
        faults.add(answer.fault)
    assert len(faults) == 1


def test_what_each_node_sees_is_told_by_selections_however_many_devices_these_have() -> None:
    """Where each node sees thousands of devices, and one of them alone, to list them takes gigabytes."""
    names = [f"n{number}" for number in range(20)]
    common = [device(f"d{number}", selection=NodeSelection(all_nodes=True)) for number in range(100)]
    own = [device(name, selection=NodeSelection(node_name=NodeName(name))) for name in names]
    item = replace(published("p", *common, *own), selection=None)
    reach = cluster(*map(node, names), item).snapshot.reach
    assert len(reach.seen) == 1 + len(names)
    assert sum(map(len, reach.seen)) == 2 * len(names)
    assert len(reach.parts(item.pool_key, int(reach.view[0]))) == 101
