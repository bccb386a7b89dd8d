"""What is expected of nodes with partitions, shares and devices that must be made ready, which links do not rate."""

from collections.abc import Callable, Sequence
from typing import Final
from weakref import ref

import numpy as np

from extender.allocation.cells import SHAREABLE
from extender.allocation.fit import Fitter
from extender.allocation.grid import Flags
from extender.allocation.inventory import Inventory
from extender.allocation.layout import NOWHERE, Layout
from extender.allocation.matches import Matches
from extender.allocation.projection import project
from extender.allocation.question import At, Question
from extender.allocation.snapshot import Snapshot
from extender.topology.memo import Memo
from extender.topology.policy import UNREADY
from extender.topology.portions import is_spoilt
from extender.topology.quality import ONE
from extender.topology.ratings import Values

# Asks that are remembered.
ASKS: Final = 256
# Partitions of a node that are counted: less than what differences of worth come to.
MOST: Final = 1000


class Special:
    """Remembers which devices are needed as they are. One writer."""

    def __init__(self) -> None:
        # Of what each question found last, which nobody else need have any more.
        self._needed: Memo[tuple[int, At], tuple[Callable[[], object], Flags]] = Memo(ASKS)

    def spoilt(self, fitter: Fitter, at: At, snapshot: Snapshot) -> Values:
        """Count what an ask has of a node of whole devices, at the least, though parts would do: int64[nodes]."""
        matches, layout = fitter.matches_in(snapshot), snapshot.layout
        known = self._needed.get((id(fitter), at))
        if known is None or known[0]() is not matches:
            known = self._needed[id(fitter), at] = ref(matches), _needed(fitter, at, matches, snapshot.inventory)
        free = known[1] & (snapshot.usage.codes == 0)
        counted = _per_node(free, layout)
        return np.asarray(np.maximum(0, fitter.question.asks[at].count - counted), np.int64)


def _needed(fitter: Fitter, at: At, matches: Matches, inventory: Inventory) -> Flags:
    """Tell which devices have no more of some capacity than an ask wants: bool[rows]."""
    columns = [inventory.columns[path] for path in sorted(inventory.columns) if path[0] == "capacity"]
    projection, asked = project(columns, inventory.rows), fitter.question.asks[at].capacity
    needed = [not is_spoilt(inventory.device(row), asked) for row in projection.first.tolist()]
    alone = matches.of[at].usable & (inventory.column(SHAREABLE).codes == 0)
    return np.asarray(np.array(needed, np.bool_)[projection.codes] & alone, np.bool_)


def room(fitter: Fitter, at: At, snapshot: Snapshot) -> Values:
    """Value nodes by how many partitions nobody has, int64[nodes]: no less than what spreading counts."""
    matches, layout = fitter.matches_in(snapshot), snapshot.layout
    rows = matches.of[at].usable & matches.special & (snapshot.usage.codes == 0)
    return np.asarray(2 * ONE - MOST + np.minimum(_per_node(rows, layout), MOST), np.int64)


def least_last(fitter: Fitter, ats: Sequence[At], snapshot: Snapshot) -> Values | None:
    """Say what it counts on each node, whichever of *ats* is given, that some devices are given last: int64[nodes].

    None where nobody could be given any such.
    """
    if not fitter.matches_in(snapshot).has_last:
        return None
    return np.asarray(np.minimum.reduce([_last(fitter, at, snapshot) for at in ats]), np.int64)


def _last(fitter: Fitter, at: At, snapshot: Snapshot) -> Values:
    matches, layout = fitter.matches_in(snapshot), snapshot.layout
    match = matches.of[at]
    kept = match.usable if match.last is None else match.usable & ~match.last
    rows = kept & ((snapshot.usage.codes == 0) | matches.special)
    counted = _per_node(rows, layout)
    ask = fitter.question.asks[at]
    missing = np.maximum(0, (0 if ask.is_admin else ask.count) - counted)
    if (layout.node_of_row[rows] < 0).any():
        # What is attached by network may be ready, too.
        missing = np.where(snapshot.reach.view != 0, 0, missing)
    return np.asarray(UNREADY * missing, np.int64)


def _per_node(rows: Flags, layout: Layout) -> Values:
    """Count those of *rows*, bool[rows], that are local to each node: int64[nodes]."""
    # Those that are local to none come first.
    return np.bincount(layout.node_of_row[rows] - NOWHERE, minlength=len(layout.nodes) + 1)[1:]


def sharing_of(question: Question, matches: Matches, snapshot: Snapshot) -> Flags | None:
    """Tell which nodes have something with capacity for several that any ask could be given: bool[nodes]."""
    inventory, layout = snapshot.inventory, snapshot.layout
    has_capacity, usable = np.zeros(inventory.rows, np.bool_), np.zeros(inventory.rows, np.bool_)
    for path, column in inventory.columns.items():
        if path[0] == "capacity":
            has_capacity |= column.codes != 0
    for at, match in matches.of.items():
        if not question.asks[at].is_admin:
            usable |= match.usable
    shared = usable & has_capacity & (inventory.column(SHAREABLE).codes != 0)
    if not shared.any():
        return None
    # What is attached by network may be seen from anywhere.
    if (layout.node_of_row[shared] < 0).any():
        return np.ones(len(layout.nodes), np.bool_)
    found = np.zeros(len(layout.nodes), np.bool_)
    found[layout.node_of_row[shared]] = True
    return found
