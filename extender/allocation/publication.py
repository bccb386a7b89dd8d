"""A snapshot in which other slices are published: only the rows of these are made anew."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from extender.allocation.boards import Boards
from extender.allocation.columns import Column, column_of
from extender.allocation.inventory import Inventory, SliceKey, inventory_of, key_of
from extender.allocation.layout import layout_of
from extender.allocation.reach import is_wasteful, moved, reach_of
from extender.allocation.snapshot import Snapshot, free_of, with_usage
from extender.allocation.usage import UNUSED, Usage
from extender.model.change import relisted
from extender.model.device import ResourceSlice
from extender.model.names import DeviceKey, NodeName
from extender.model.node import Node
from extender.model.spelling import is_spelled_alike, node_is_spelled_alike

UsageOf = Callable[[DeviceKey], Usage]
# Beyond so many changed slices, building all columns from scratch is cheaper than splicing them one by one.
SPLICES = 64


def published(snapshot: Snapshot, slices: Iterable[ResourceSlice], usage_of: UsageOf) -> Snapshot:
    """Publish exactly *slices*."""
    listed, inventory = tuple(slices), snapshot.inventory
    news, gone = relisted(inventory.slices, listed, key_of)
    old = map(inventory.with_key, map(key_of, news))
    changed = [item for item, known in zip(news, old, strict=True) if known is None or differs(known, item)]
    if len(gone) + len(changed) <= SPLICES:
        for key in gone:
            snapshot = without(snapshot, key)
        for item in changed:
            snapshot = with_slice(snapshot, item, usage_of)
        return snapshot
    inventory = inventory_of({key_of(item): item for item in listed}.values())
    held = (usage for item in inventory.slices for usage in _held(item, usage_of))
    return _laid_out(snapshot, inventory, column_of(held))


def differs(left: ResourceSlice, right: ResourceSlice) -> bool:
    """Tell whether two slices differ in anything, be it in how an amount is spelled."""
    return left != right or not is_spelled_alike(left, right)


def with_slice(snapshot: Snapshot, item: ResourceSlice, usage_of: UsageOf) -> Snapshot:
    """Add *item*, or put it in the place of the slice with its key."""
    before, key = snapshot.inventory, key_of(item)
    inventory = before.with_slice(item)
    index = inventory.index(key)
    start, stop = int(inventory.starts[index]), int(inventory.starts[index + 1])
    if len(before.slices) == len(inventory.slices):
        if _stand_alike(before.slices[index], item):
            usage = {row: usage_of(inventory.key(row)) for row in range(start, stop)}
            reach = snapshot.reach
            if not _is_seen_alike(before, inventory, index):
                reach = reach_of(inventory, snapshot.layout, snapshot.nodes, reach.sights)
            return with_usage(replace(snapshot, inventory=inventory, reach=reach, boards=Boards()), usage)
        last = int(before.starts[index + 1])
    else:
        last = start
    column = snapshot.usage.spliced(start, last, snapshot.usage.dictionary.encoded(_held(item, usage_of)))
    return _laid_out(snapshot, inventory, column)


def without(snapshot: Snapshot, key: SliceKey) -> Snapshot:
    """Remove the slice with *key*, which must be there."""
    index = snapshot.inventory.index(key)
    start, stop = snapshot.inventory.starts[index : index + 2].tolist()
    return _laid_out(snapshot, snapshot.inventory.without_slice(key), snapshot.usage.spliced(start, stop, ()))


def _stand_alike(left: ResourceSlice, right: ResourceSlice) -> bool:
    """Tell whether each device of *right* has the row and the bit of one of *left*."""
    return len(left.devices) == len(right.devices) and left.selection == right.selection


def _is_seen_alike(before: Inventory, after: Inventory, index: int) -> bool:
    """Tell whether a slice that stands alike is seen by the same nodes, and leaves its pool as shared as it was."""
    if before.standing is not after.standing:
        return False
    left, right = before.slices[index], after.slices[index]
    return left.selection is not None or all(
        one.traits.selection == other.traits.selection for one, other in zip(left.devices, right.devices, strict=True)
    )


def _held(item: ResourceSlice, usage_of: UsageOf) -> Iterator[Usage | None]:
    """Return how much of each device is taken, None where nobody holds it."""
    usages = (usage_of(DeviceKey(item.driver, item.pool, device.name)) for device in item.devices)
    return (None if usage == UNUSED else usage for usage in usages)


def _laid_out(snapshot: Snapshot, inventory: Inventory, usage: Column[Usage]) -> Snapshot:
    layout = layout_of(inventory, snapshot.layout.nodes)
    reach = reach_of(inventory, layout, snapshot.nodes, snapshot.reach.sights)
    return replace(
        snapshot,
        inventory=inventory,
        layout=layout,
        reach=reach,
        usage=usage,
        free=free_of(layout, usage),
        boards=Boards(),
    )


def with_nodes(snapshot: Snapshot, nodes: Mapping[NodeName, Node]) -> Snapshot:
    """Tell otherwise of some nodes: these are the nodes that are there, and only what is read of them matters."""
    pairs = ((index, snapshot.nodes[name], nodes[name]) for index, name in enumerate(snapshot.layout.nodes))
    changed = [pair for pair in pairs if not are_alike(pair[1], pair[2])]
    return _told(snapshot, nodes, changed) if changed else snapshot


def with_node(snapshot: Snapshot, node: Node) -> Snapshot:
    """Tell of one node that is there: of most nothing new is told, again and again."""
    before = snapshot.nodes[node.name]
    if are_alike(before, node):
        return snapshot
    place = bisect_left(snapshot.layout.nodes, node.name), before, node
    return _told(snapshot, {**snapshot.nodes, node.name: node}, [place])


def _told(snapshot: Snapshot, nodes: Mapping[NodeName, Node], changed: Sequence[tuple[int, Node, Node]]) -> Snapshot:
    read = [index for index, before, after in changed if _is_read_otherwise(before, after)]
    if not read:
        # Links may be told of in annotations. Who has the snapshot of before goes on with its boards.
        noted = {index for index, before, after in changed if before.annotations != after.annotations}
        return replace(snapshot, nodes=nodes, boards=snapshot.boards.without(noted) if noted else snapshot.boards)
    reach = moved(snapshot.reach, snapshot.layout, nodes, read)
    if is_wasteful(reach):
        reach = reach_of(snapshot.inventory, snapshot.layout, nodes, reach.sights)
    return replace(snapshot, nodes=nodes, reach=reach, boards=Boards())


def are_alike(left: Node, right: Node) -> bool:
    """Tell whether two nodes of one name say the same in the same words."""
    return left is right or (left == right and node_is_spelled_alike(left, right))


def _is_read_otherwise(left: Node, right: Node) -> bool:
    """Tell whether what an answer depends on differs."""
    return left.labels != right.labels or left.declared_features != right.declared_features
