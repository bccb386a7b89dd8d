"""The cluster at one moment: what is published, what is taken, what nodes, classes and rules say. Never changes."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace

import numpy as np

from extender.allocation.boards import Boards
from extender.allocation.columns import Column, blank
from extender.allocation.inventory import Inventory, inventory_of
from extender.allocation.layout import BITS, Layout, Masks, layout_of
from extender.allocation.reach import Reach, reach_of
from extender.allocation.usage import UNUSED, Hold, Usage, add, subtract
from extender.model.claim import DeviceClass
from extender.model.frozen import dataclass
from extender.model.names import ClassName, DeviceKey, DriverName, NodeName
from extender.model.node import Node
from extender.model.taint import DeviceTaintRule


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """Columns and nouns of one generation.

    usage: one entry for each row of the inventory, without a value where nobody holds the device.
    free: uint64[nodes, words], the local devices of each node that nobody holds.
    boards: what was laid out for searches, a cache; whoever changes what they show begins a new one.
    """

    generation: int = 0
    inventory: Inventory
    layout: Layout
    reach: Reach
    usage: Column[Usage]
    free: Masks
    nodes: Mapping[NodeName, Node] = field(default_factory=dict)
    classes: Mapping[ClassName, DeviceClass] = field(default_factory=dict)
    rules: Mapping[str, DeviceTaintRule] = field(default_factory=dict)
    boards: Boards = field(default_factory=Boards)

    def usage_at(self, row: int) -> Usage:
        return self.usage.value(row) or UNUSED

    def count_free(self, node: int, drivers: Collection[DriverName]) -> int | None:
        """Count the local devices of a node that nobody holds, those of *drivers* alone.

        None where it has none, or partitions: those of one chip are free together and cannot be given together.
        """
        starts, keys, local = self.inventory.starts, self.inventory.keys, self.layout.local_slices(node).tolist()
        slices = [index for index in local if keys[index].driver in drivers] if drivers else local
        if (drivers and not slices) or any(map(self.inventory.has_partitions, slices)):
            return None
        return sum(int(np.count_nonzero(self.usage.codes[starts[at] : starts[at + 1]] == 0)) for at in slices)


def empty() -> Snapshot:
    """Return a cluster without anything."""
    inventory = inventory_of(())
    layout = layout_of(inventory, ())
    usage: Column[Usage] = blank(0)
    reach = reach_of(inventory, layout, {}, {})
    return Snapshot(inventory=inventory, layout=layout, reach=reach, usage=usage, free=free_of(layout, usage))


def free_of(layout: Layout, usage: Column[Usage]) -> Masks:
    """Gather the devices that nobody holds into masks."""
    masks = layout.masks(usage.codes == 0)
    masks.setflags(write=False)
    return masks


def overlay(snapshot: Snapshot, holds: Iterable[Hold]) -> Snapshot:
    """Take *holds* on top of what is taken already; devices that are not published are passed over."""
    taken: dict[DeviceKey, Usage] = {}
    for hold in holds:
        taken[hold.device] = add(taken.get(hold.device, UNUSED), hold.usage)
    rows = {
        row: add(snapshot.usage_at(row), usage)
        for device, usage in taken.items()
        for row in snapshot.inventory.rows_of(device)
    }
    return with_usage(snapshot, rows)


def without(snapshot: Snapshot, holds: Iterable[Hold]) -> Snapshot:
    """Give back *holds*, which are taken."""
    rows: dict[int, Usage] = {}
    for hold in holds:
        for row in snapshot.inventory.rows_of(hold.device):
            rows[row] = subtract(rows.get(row, snapshot.usage_at(row)), hold.usage)
    return with_usage(snapshot, rows)


def with_usage(snapshot: Snapshot, usage_of_row: Mapping[int, Usage]) -> Snapshot:
    """Set the use of some rows; all other columns stay the same objects."""
    if not usage_of_row:
        return snapshot
    code_of = snapshot.usage.dictionary.code
    column = snapshot.usage.changed({row: code_of(held) if held.is_held else 0 for row, held in usage_of_row.items()})
    return replace(snapshot, usage=column, free=_freed(snapshot, column, usage_of_row))


def _freed(snapshot: Snapshot, usage: Column[Usage], rows: Iterable[int]) -> Masks:
    """Set the bits of *rows* anew, those of all other devices stay."""
    masks, layout = snapshot.free.copy(), snapshot.layout
    for row in rows:
        node, position = int(layout.node_of_row[row]), int(layout.position_of_row[row])
        if node < 0:
            continue
        word, bit = position // BITS, np.uint64(1 << position % BITS)
        masks[node, word] = masks[node, word] & ~bit if usage.codes[row] else masks[node, word] | bit
    masks.setflags(write=False)
    return masks
