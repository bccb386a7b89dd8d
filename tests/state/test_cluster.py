"""The law of the cluster: whatever happened, its columns are those of what there is now."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.cells import DRIVER, FAULT, SHAREABLE, TRAITS, stated
from extender.allocation.snapshot import Snapshot, overlay
from extender.allocation.usage import WHOLE, Hold, Usage
from extender.model.change import Change, Changed, Gone, Listed
from extender.model.claim import AllocatedDevice, Allocation, ClaimSpec, DeviceClass, ResourceClaim
from extender.model.device import Capacity, Device, NodeSelection, ResourceSlice
from extender.model.footprint import Footprint
from extender.model.names import ClassName, DeviceKey, DeviceName, DriverName, NodeName, ObjectKey, PoolName, Uid
from extender.model.node import Node, Pod
from extender.model.problem import Problem
from extender.model.taint import NO_SCHEDULE, DeviceTaintRule, Taint
from extender.state.cluster import Cluster
from tests.worlds import NODES, World, changes


def told(snapshot: Snapshot) -> dict[str, Any]:
    """Decode a snapshot: codes and bits as what they stand for."""
    inventory, layout = snapshot.inventory, snapshot.layout
    return {
        "slices": inventory.slices,
        "starts": inventory.starts.tolist(),
        "home": inventory.home.decoded(),
        "standing": inventory.standing.decoded(),
        "columns": {path: column.decoded() for path, column in inventory.columns.items()},
        "usage": snapshot.usage.decoded(),
        "free": {name: snapshot.free[index].tolist() for index, name in enumerate(layout.nodes)},
        "local": {name: layout.local(index).tolist() for index, name in enumerate(layout.nodes)},
        "sees": {
            name: [(pool, snapshot.inventory.pool(*pool)) for pool in snapshot.reach.pools[snapshot.reach.view[index]]]
            for index, name in enumerate(layout.nodes)
        },
        "nodes": snapshot.nodes,
        "classes": snapshot.classes,
        "rules": snapshot.rules,
    }


@given(st.lists(changes(), max_size=25))
def test_changes_end_in_the_columns_of_a_rebuild(steps: list[Change]) -> None:
    cluster, world = Cluster(), World()
    for step in steps:
        cluster.apply(step)
        world.apply(step)
    rebuilt = world.rebuilt()
    assert told(cluster.snapshot) == told(rebuilt.snapshot)
    assert Counter(cluster.problems) == Counter(rebuilt.problems)


@given(st.lists(changes(), max_size=15), st.lists(changes(), max_size=5))
def test_an_older_snapshot_stays_as_it_was(before: list[Change], after: list[Change]) -> None:
    cluster = Cluster()
    for step in before:
        cluster.apply(step)
    kept = cluster.snapshot
    account = told(kept)
    for step in after:
        cluster.apply(step)
    assert told(kept) == account


@given(st.lists(changes(), max_size=15), changes())
def test_a_change_is_one_generation_or_none(before: list[Change], change: Change) -> None:
    cluster = Cluster()
    for step in before:
        cluster.apply(step)
    old = cluster.snapshot
    new = cluster.apply(change)
    assert new is old or new.generation == old.generation + 1
    assert cluster.apply(change) is new


def expected_rows(world: World) -> list[tuple[ResourceSlice, Device]]:
    slices = [item for item in world.objects[ResourceSlice].values() if isinstance(item, ResourceSlice)]
    slices.sort(key=lambda item: (item.driver, item.pool, item.name))
    return [(item, device) for item in slices for device in item.devices]


def expected_usage(world: World, key: DeviceKey) -> Usage:
    held = [
        result
        for claim in world.readable_claims.values()
        for result in (claim.allocation.devices if claim.allocation else ())
        if result.device == key and not result.admin_access
    ]
    consumed: Counter[str] = Counter()
    for result in held:
        consumed.update({name: amount.nanos for name, amount in result.consumed_capacity})
    shares = sum(result.share_id is not None for result in held)
    return Usage(len(held) - shares, shares, tuple(sorted(consumed.items())))


@given(st.lists(changes(), max_size=25))
def test_every_column_equals_the_plain_nouns(steps: list[Change]) -> None:
    cluster, world = Cluster(), World()
    for step in steps:
        cluster.apply(step)
        world.apply(step)
    snapshot = cluster.snapshot
    rows = expected_rows(world)
    assert [snapshot.inventory.device(row) for row in range(snapshot.inventory.rows)] == [device for _, device in rows]
    for row, (published, device) in enumerate(rows):
        assert cells(snapshot, row) == expected_cells(published, device)
        key = DeviceKey(published.driver, published.pool, device.name)
        assert snapshot.inventory.key(row) == key
        assert snapshot.usage_at(row) == expected_usage(world, key)
    assert free_devices(snapshot) == {
        (published.selection.node_name, row)
        for row, (published, device) in enumerate(rows)
        if published.selection and published.selection.node_name in snapshot.nodes
        if not expected_usage(world, DeviceKey(published.driver, published.pool, device.name)).is_held
    }


def cells(snapshot: Snapshot, row: int) -> dict[Any, Any]:
    decoded = {path: column.value(row) for path, column in snapshot.inventory.columns.items()}
    return {path: value for path, value in decoded.items() if value is not None}


def expected_cells(published: ResourceSlice, device: Device) -> dict[Any, Any]:
    found: dict[Any, Any] = {DRIVER: published.driver, TRAITS: device.traits}
    if device.traits.allow_multiple_allocations:
        found[SHAREABLE] = True
    for group, entries in (("attributes", device.attributes), ("capacity", device.capacity)):
        for name, value in entries:
            domain, slash, bare = name.rpartition("/")
            path = (group, domain or published.driver, bare)
            hidden = next((item for item in entries if item[0] == bare and slash and domain == published.driver), None)
            if isinstance(value, Capacity):
                told = stated(name, value, stated(*hidden) if hidden else None)
                found[path] = told if slash or path not in found else found[path]
            elif slash or path not in found:
                found[path] = value
    if any(value.kind == "invalid" for _, value in device.attributes):
        found[FAULT] = "no value"
    return found


def free_devices(snapshot: Snapshot) -> set[tuple[NodeName, int]]:
    layout = snapshot.layout
    return {
        (name, row)
        for index, name in enumerate(layout.nodes)
        for position, row in enumerate(layout.local(index).tolist())
        if int(snapshot.free[index][position // 64]) >> (position % 64) & 1
    }


GPU = DriverName("gpu.example.com")


def node_slice(node: str, *devices: str, name: str = "") -> ResourceSlice:
    return ResourceSlice(
        name=name or f"{node}-gpu",
        driver=GPU,
        pool=PoolName(node),
        generation=1,
        slice_count=1,
        selection=NodeSelection(node_name=NodeName(node)),
        devices=tuple(Device(DeviceName(device)) for device in devices),
    )


def holder(name: str, *devices: DeviceKey) -> ResourceClaim:
    allocation = Allocation(devices=tuple(AllocatedDevice(request="r", device=device) for device in devices))
    return ResourceClaim(key=ObjectKey("default", name), uid=Uid(name), spec=ClaimSpec(), allocation=allocation)


def device(node: str, name: str) -> DeviceKey:
    return DeviceKey(GPU, PoolName(node), DeviceName(name))


def cluster_of(*nouns: Any) -> Cluster:
    cluster = Cluster()
    for noun in nouns:
        cluster.apply(Changed(noun))
    return cluster


def test_a_changed_claim_leaves_what_is_published_untouched() -> None:
    cluster = cluster_of(Node(name=NODES[0]), node_slice("n1", "d0", "d1"))
    before = cluster.snapshot
    after = cluster.apply(Changed(holder("c", device("n1", "d0"))))
    assert after.inventory is before.inventory
    assert after.layout is before.layout
    assert (before.free[0, 0], after.free[0, 0]) == (0b11, 0b10)


def test_a_slice_whose_devices_only_change_values_keeps_the_layout() -> None:
    cluster = cluster_of(Node(name=NODES[0]), node_slice("n1", "d0", "d1"))
    before = cluster.snapshot
    after = cluster.apply(Changed(node_slice("n1", "d0", "d7")))
    assert after.layout is before.layout
    assert after.inventory.key(1) == device("n1", "d7")


def test_a_device_published_again_is_still_held() -> None:
    cluster = cluster_of(Node(name=NODES[0]), node_slice("n1", "d0"), holder("c", device("n1", "d0")))
    cluster.apply(Gone(ResourceSlice, ObjectKey("", "n1-gpu")))
    assert cluster.apply(Changed(node_slice("n1", "d0"))).usage_at(0) == WHOLE


def test_a_claim_that_can_no_longer_be_read_keeps_its_devices() -> None:
    cluster = cluster_of(Node(name=NODES[0]), node_slice("n1", "d0"), holder("c", device("n1", "d0")))
    broken = Problem("ResourceClaim", ObjectKey("default", "c"), "status.allocation", "is no JSON object")
    assert cluster.apply(Changed(broken)).usage_at(0) == WHOLE
    assert cluster.apply(Listed(ResourceClaim, (broken,))).usage_at(0) == WHOLE
    assert tuple(cluster.problems) == (broken,)


def test_a_claim_that_cannot_be_read_and_has_no_devices_makes_no_other_cluster() -> None:
    cluster = cluster_of(node_slice("n1", "d0"), holder("c", device("n1", "d0")))
    before, broken = cluster.snapshot, Problem("ResourceClaim", ObjectKey("default", "b"), "spec", "is no JSON object")
    unread = replace(holder("b"), problem=broken)
    assert cluster.apply(Changed(unread)) is before
    assert tuple(cluster.problems) == (broken,)
    assert cluster.apply(Gone(ResourceClaim, unread.key)) is before
    assert not cluster.problems


def test_the_devices_of_a_claim_that_a_list_lacks_are_free() -> None:
    kept, gone = (holder(name, device("n1", place)) for name, place in (("a", "d0"), ("b", "d1")))
    cluster = cluster_of(Node(name=NODES[0]), node_slice("n1", "d0", "d1"), kept, gone)
    after = cluster.apply(Listed(ResourceClaim, (kept,)))
    assert [after.usage_at(row).is_held for row in (0, 1)] == [True, False]
    assert (cluster.claims.get(gone.key), cluster.holds_of(gone.key)) == (None, ())


@pytest.mark.parametrize(
    "change",
    [
        Changed(Node(name=NodeName("n0"))),
        Gone(Node, ObjectKey("", "n1")),
        Changed(DeviceTaintRule(name="rule", selector=None, taint=Taint(key="sick", effect=NO_SCHEDULE))),
        Changed(DeviceClass(name=ClassName("class"))),
    ],
    ids=["node-comes", "node-goes", "rule", "class"],
)
def test_what_was_laid_out_of_nodes_by_their_number_and_taints_is_not_kept_where_these_change(change: Change) -> None:
    cluster = cluster_of(*(Node(name=name) for name in NODES[:2]), node_slice("n1", "d0"), node_slice("n2", "d0"))
    before = cluster.snapshot.boards
    assert cluster.apply(change).boards is not before


@pytest.mark.parametrize("kind", [Pod, Footprint])
def test_of_pods_that_cannot_be_read_nothing_is_kept_here(kind: type[Pod | Footprint]) -> None:
    cluster = cluster_of(node_slice("n1", "d0"))
    before, broken = cluster.snapshot, Problem(kind.__name__, ObjectKey("ns", "p"), "spec", "is broken")
    for change in (Changed(broken), Listed(kind, (broken,))):
        assert cluster.apply(change) is before
        assert not cluster.problems


def test_a_slice_that_can_no_longer_be_read_is_not_offered_and_stops_no_other() -> None:
    cluster = cluster_of(Node(name=NODES[0]), Node(name=NODES[1]), node_slice("n1", "d0"), node_slice("n2", "d0"))
    broken = Problem("ResourceSlice", ObjectKey("", "n1-gpu"), "spec.devices[0].name", "is required")
    cluster.apply(Changed(broken))
    assert [item.name for item in cluster.snapshot.inventory.slices] == ["n2-gpu"]
    assert tuple(cluster.problems) == (broken,)
    cluster.apply(Changed(node_slice("n1", "d0")))
    assert not cluster.problems


def test_a_slice_that_moves_to_another_pool_leaves_the_old_one() -> None:
    cluster = cluster_of(node_slice("n1", "d0", name="s"), node_slice("n2", "d0", name="s"))
    assert [item.pool for item in cluster.snapshot.inventory.slices] == ["n2"]


def test_an_overlay_takes_devices_and_leaves_the_snapshot_as_it_is() -> None:
    cluster = cluster_of(Node(name=NODES[0]), node_slice("n1", "d0", "d1"), holder("c", device("n1", "d0")))
    view = overlay(cluster.snapshot, [Hold(device("n1", "d1"), WHOLE), Hold(device("n9", "d1"), WHOLE)])
    assert free_devices(view) == set()
    assert free_devices(cluster.snapshot) == {("n1", 1)}
    assert view.inventory is cluster.snapshot.inventory


def test_many_changed_slices_are_built_as_one() -> None:
    first = [node_slice(f"n{index}", "d0") for index in range(200)]
    second = [node_slice(f"n{index}", "d0", "d1") for index in range(100, 300)]
    cluster = cluster_of(holder("c", device("n150", "d0")))
    cluster.apply(Listed(ResourceSlice, tuple(first)))
    fresh = cluster_of(holder("c", device("n150", "d0")))
    assert told(cluster.apply(Listed(ResourceSlice, tuple(second)))) == told(
        fresh.apply(Listed(ResourceSlice, tuple(second)))
    )


@pytest.mark.parametrize(
    "change",
    [
        Changed(Pod(key=ObjectKey("default", "p"), uid=Uid("1"))),
        Changed(Problem("Pod", ObjectKey("default", "p"), "spec", "is no JSON object")),
        Gone(Pod, ObjectKey("default", "p")),
        Listed(Pod, (Pod(key=ObjectKey("default", "p"), uid=Uid("1")),)),
    ],
)
def test_pods_are_no_part_of_a_snapshot(change: Change) -> None:
    cluster = Cluster()
    before = cluster.snapshot
    assert cluster.apply(change) is before
