"""The shared devices of a cluster as rows, one for each model on each node: what of them is left, in thousandths."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.allocation.cells import DRIVER, SHAREABLE
from extender.allocation.columns import Column
from extender.allocation.inventory import Inventory
from extender.allocation.layout import Layout
from extender.allocation.projection import project
from extender.allocation.snapshot import Snapshot
from extender.allocation.usage import UNUSED, Usage
from extender.model.frozen import dataclass
from extender.topology.portions import Catalogue, is_shared, left_of

Integers = NDArray[np.int64]
NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False)
class Holdings:
    """node, model: int64[rows], in the order of nodes. devices: int64[rows, most], rows of the inventory or NOBODY.

    model_of: int64[rows of the inventory], NOBODY where a device is not shared. nodes: how many there are.
    """

    node: Integers
    model: Integers
    devices: Integers
    model_of: Integers
    nodes: int

    def is_like(self, other: "Holdings") -> bool:
        """Tell whether all rows stand for the same."""
        return self.nodes == other.nodes and all(
            np.array_equal(mine, theirs)
            for mine, theirs in (
                (self.node, other.node),
                (self.model, other.model),
                (self.devices, other.devices),
            )
        )

    def rows_of(self, nodes: Integers) -> Integers:
        """Return the rows of some *nodes*: int64[some]."""
        chosen = np.zeros(self.nodes, np.bool_)
        chosen[nodes] = True
        return np.flatnonzero(chosen[self.node])

    def left(self, usage: Column[Usage], rows: Integers, catalogue: Catalogue) -> Integers:
        """Return what is left of the devices of *rows*, 0 where there are fewer: int64[rows, most]."""
        devices, models = self.devices[rows], len(catalogue.devices)
        keys = usage.codes[devices].astype(np.int64) * models + self.model[rows][:, None]
        distinct, places = np.unique(keys, return_inverse=True)
        table = [
            left_of(catalogue.devices[key % models], usage.dictionary.values[key // models] or UNUSED)
            for key in distinct.tolist()
        ]
        found = np.array(table, np.int64)[places.reshape(keys.shape)] if table else np.zeros(keys.shape, np.int64)
        return np.where(devices == NOBODY, 0, found)


def holdings_of(snapshot: Snapshot, catalogue: Catalogue) -> Holdings:
    """Find the shared devices of *snapshot* that are local to a node, but for those that are cut out of others."""
    layout = snapshot.layout
    model_of = _models(snapshot.inventory, layout, catalogue)
    shared = np.flatnonzero(model_of != NOBODY)
    order = shared[np.lexsort((layout.position_of_row[shared], model_of[shared], layout.node_of_row[shared]))]
    node, model = layout.node_of_row[order].astype(np.int64), model_of[order]
    is_first = np.diff(node, prepend=NOBODY) != 0
    is_first |= np.diff(model, prepend=NOBODY) != 0
    starts = np.flatnonzero(is_first)
    row = np.cumsum(is_first) - 1
    place = np.arange(len(order)) - starts[row] if len(order) else order
    devices = np.full((len(starts), int(place.max(initial=0)) + 1), NOBODY, np.int64)
    devices[row, place] = order
    return Holdings(node[starts], model[starts], devices, model_of, len(layout.nodes))


def _models(inventory: Inventory, layout: Layout, catalogue: Catalogue) -> Integers:
    """Return the number of each device's model: int64[rows of the inventory]."""
    traits = inventory.traits
    is_cut = traits.table(lambda found: bool(found.consumes_counters)).astype(np.bool_)[traits.codes]
    shared = (inventory.column(SHAREABLE).codes != 0) & ~is_cut & (layout.node_of_row >= 0)
    found = np.full(inventory.rows, NOBODY, np.int64)
    rows = np.flatnonzero(shared)
    if not len(rows):
        return found
    kinds = project(_telling(inventory, catalogue), inventory.rows).codes[rows]
    _, first, kind = np.unique(kinds, return_index=True, return_inverse=True)
    numbers = []
    for row in rows[first].tolist():
        device = inventory.device(row)
        numbers.append(catalogue.number(inventory.driver_at(row), device) if is_shared(device) else NOBODY)
    found[rows] = np.array(numbers, np.int64)[kind]
    return found


def _telling(inventory: Inventory, catalogue: Catalogue) -> list[Column[Any]]:
    """Return the columns that tell models apart."""
    products = {name.rpartition("/")[2] for name in catalogue.aliases()}
    return [
        inventory.columns[path]
        for path in sorted(inventory.columns)
        if path == DRIVER or path[0] == "capacity" or (path[0] == "attributes" and path[-1] in products)
    ]
