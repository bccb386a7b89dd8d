"""Which nodes may have another answer in one snapshot than in another, where rows and nodes are the same."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import compress, count
from operator import is_not

import numpy as np
from numpy.typing import NDArray

from extender.allocation.columns import differing
from extender.allocation.distinct import distinct, either
from extender.allocation.inventory import Inventory
from extender.allocation.snapshot import Snapshot
from extender.model.names import NodeName
from extender.model.node import Node


def changed_nodes(before: Snapshot, after: Snapshot) -> NDArray[np.int64] | None:
    """Return the nodes, int64[n], about which anything differs; None where that is all of them, or hard to tell."""
    same = before.layout is after.layout and before.rules is after.rules and before.classes is after.classes
    if not same or before.reach.seen is not after.reach.seen:
        return None
    rows = differing(before.usage, after.usage)
    slices: NDArray[np.int64] | None = np.zeros(0, np.int64)
    if before.inventory is not after.inventory:
        rows = _together(rows, _changed_rows(before.inventory, after.inventory))
        slices = differing(before.inventory.standing, after.inventory.standing)
        if after.rules:
            # A rule may name a device whose name no column has.
            slices = _together(slices, _republished(before.inventory, after.inventory))
    if rows is None or slices is None:
        return None
    if before.inventory is after.inventory and before.nodes is after.nodes and not after.reach.is_any:
        # Nearly always: something was taken or given back, somewhere.
        return _homes(after.layout.node_of_row[rows])
    layout = after.layout
    nodes = either(layout.node_of_row[rows], layout.node_of_slice[slices])
    if before.nodes is not after.nodes:
        nodes = either(nodes, _moved(before, after))
    # What is shared is seen from elsewhere.
    if len(after.reach.pools) > 1 and _is_any_shared(before.inventory, after.inventory, rows, slices):
        nodes = either(nodes, np.flatnonzero(after.reach.view))
    return nodes[nodes >= 0]


def _homes(nodes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the nodes among *nodes*, each once and in order: mostly it is one or two."""
    return np.array(sorted({node for node in nodes.tolist() if node >= 0}), np.int64)


def _is_any_shared(before: Inventory, after: Inventory, rows: NDArray[np.int64], slices: NDArray[np.int64]) -> bool:
    """Tell whether *rows* or *slices* are part of a pool that is shared, or was."""
    indices = either(np.searchsorted(after.starts, rows, "right") - 1, slices)
    standings = (
        inventory.standing.dictionary.values[code]
        for inventory in (before, after)
        for code in distinct(inventory.standing.codes[indices]).tolist()
    )
    return any(standing is not None and standing.shared_pool is not None for standing in standings)


def _moved(before: Snapshot, after: Snapshot) -> NDArray[np.int64]:
    """Return the nodes that see other shared pools than before, or declare other features."""
    nodes = np.flatnonzero(before.reach.view != after.reach.view)
    declared = [
        bisect_left(after.layout.nodes, name)
        for name in _others(before.nodes, after.nodes)
        if before.nodes[name].declared_features != after.nodes[name].declared_features
    ]
    return np.concatenate((nodes, np.array(declared, np.int64)))


def _others(before: Mapping[NodeName, Node], after: Mapping[NodeName, Node]) -> Iterable[NodeName]:
    """Return the nodes that are other objects than before: there are thousands, and mostly one of them is."""
    if list(before) != list(after):
        return [name for name, node in after.items() if before[name] is not node]
    return compress(after, map(is_not, before.values(), after.values()))


def _changed_rows(before: Inventory, after: Inventory) -> NDArray[np.int64] | None:
    rows: NDArray[np.int64] | None = np.zeros(0, np.int64)
    for path in before.columns.keys() | after.columns.keys():
        rows = _together(rows, differing(before.column(path), after.column(path)))
    return rows


def _republished(before: Inventory, after: Inventory) -> NDArray[np.int64]:
    """Return the slices that are other objects than before, of as many."""
    return np.fromiter(compress(count(), map(is_not, before.slices, after.slices)), np.int64)


def _together(left: NDArray[np.int64] | None, right: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    return None if left is None or right is None else either(left, right)
