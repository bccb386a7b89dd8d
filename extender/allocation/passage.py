"""What has become of the nodes from one snapshot to another, though some have come or gone, and devices with them."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import compress, count
from operator import is_not, ne
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from extender.allocation.difference import changed_nodes
from extender.allocation.layout import Layout
from extender.allocation.snapshot import Snapshot
from extender.model.frozen import dataclass

A = TypeVar("A", bound=np.generic)
Whole = NDArray[np.int64]
# Where something has come from that was not there before.
FRESH: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """The nodes of a later snapshot. changed: those about which anything differs, new ones too, in order.

    origin: int64[nodes], the number that each had before; None where all have the numbers that they had.
    """

    changed: Whole
    origin: Whole | None = None

    def carried(self, told: NDArray[A]) -> NDArray[A]:
        """Copy what was *told* of each node: of those that have changed it means nothing."""
        return told.copy() if self.origin is None else told[self.origin]


# Everybody who goes on from one snapshot to the next asks about the same two.
@lru_cache(maxsize=2)
def passage(before: Snapshot, after: Snapshot) -> Passage | None:
    """Say what has become of the nodes; None where anything may have, or where it is hard to tell."""
    if before.layout is after.layout:
        seen = changed_nodes(before, after)
        return None if seen is None else Passage(_frozen(seen))
    if not before.layout.nodes or not _is_comparable(before, after):
        return None
    origin = _origins(before.layout.nodes, after.layout.nodes, ne)
    changed = _are_changed(before, after, origin)
    old, new = _rows_of(before.layout, after.layout, origin, ~changed)
    is_taken_otherwise = before.usage.codes[old] != after.usage.codes[new]
    changed[after.layout.node_of_row[new[is_taken_otherwise]]] = True
    return Passage(_frozen(np.flatnonzero(changed)), _frozen(origin))


def _is_comparable(before: Snapshot, after: Snapshot) -> bool:
    """Tell whether codes mean the same, and nothing has changed that is not of some node."""
    is_same = before.rules is after.rules and before.classes is after.classes
    return is_same and before.usage.dictionary is after.usage.dictionary


def _are_changed(before: Snapshot, after: Snapshot, origin: Whole) -> NDArray[np.bool_]:
    """Tell which nodes are new, are told of otherwise, or have other slices, bool[nodes]: usage is not looked at."""
    # What is shared is seen from elsewhere, and ways to see it are numbered anew.
    changed: NDArray[np.bool_] = (origin == FRESH) | (after.reach.view != 0) | (before.reach.view[origin] != 0)
    if before.nodes is not after.nodes:
        changed |= _are_told_otherwise(before, after)
    slices = _origins(before.inventory.slices, after.inventory.slices, is_not)
    # What a slice means to its pool changes with other slices of it: they are the same node's, or it is shared.
    homes = after.layout.node_of_slice[slices == FRESH]
    changed[homes[homes >= 0]] = True
    # A node may have lost a slice, too.
    changed |= np.diff(after.layout.slice_starts) != np.diff(before.layout.slice_starts)[origin]
    return changed


def _are_told_otherwise(before: Snapshot, after: Snapshot) -> NDArray[np.bool_]:
    """Tell which nodes declare other features than before."""
    found = np.zeros(len(after.layout.nodes), np.bool_)
    names = after.layout.nodes
    left, right = list(map(before.nodes.get, names)), list(map(after.nodes.__getitem__, names))
    for place in compress(count(), map(is_not, left, right)):
        known = left[place]
        found[place] = known is not None and known.declared_features != right[place].declared_features
    return found


def _origins(before: Sequence[Any], after: Sequence[Any], differ: Callable[[Any, Any], bool]) -> Whole:
    """Say where each of *after* was among *before*: both are in one order, of which mostly one place is another."""
    if before is after:
        return np.arange(len(after))
    shorter = min(len(before), len(after))
    head = next(compress(count(), map(differ, before, after)), shorter)
    tail = next(compress(count(), map(differ, reversed(before), reversed(after))), shorter)
    tail = min(tail, shorter - head)
    left, right = range(head, len(before) - tail), range(head, len(after) - tail)
    name = id if differ is is_not else str
    places = {name(before[place]): place for place in left}
    middle = np.array([places.get(name(after[place]), FRESH) for place in right], np.int64)
    return np.concatenate((np.arange(head), middle, np.arange(left.stop, len(before))), dtype=np.int64)


def _rows_of(before: Layout, after: Layout, origin: Whole, is_same: NDArray[np.bool_]) -> tuple[Whole, Whole]:
    """Return where the devices were, and are, of the nodes that have the same slices."""
    counts = np.diff(after.starts)
    chosen = np.repeat(is_same, counts)
    offsets = np.arange(len(after.rows)) + np.repeat(before.starts[origin] - after.starts[:-1], counts)
    return before.rows[offsets[chosen]].astype(np.int64), after.rows[chosen].astype(np.int64)


def _frozen(nodes: Whole) -> Whole:
    nodes.setflags(write=False)
    return nodes
