"""Which devices are local to which node, and the bit that each has in its node's masks."""

from bisect import bisect_left
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from extender.allocation.inventory import Inventory
from extender.model.frozen import dataclass
from extender.model.names import NodeName

BITS = 64
Masks = NDArray[np.uint64]
# Of a row whose device is local to no node that we know.
NOWHERE = -1


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Layout:
    """The nodes by name, and their local devices; those of other slices are in no mask.

    rows: int32[local devices], grouped by node, in the order of the inventory; starts: int64[nodes + 1] into it.
    slices: int32[local slices] and slice_starts: int64[nodes + 1], likewise.
    node_of_row, position_of_row: int32[rows]; node_of_slice: int32[slices].
    words: how many 64-bit words the masks of a node have.
    """

    nodes: tuple[NodeName, ...]
    rows: NDArray[np.int32]
    starts: NDArray[np.int64]
    slices: NDArray[np.int32]
    slice_starts: NDArray[np.int64]
    node_of_slice: NDArray[np.int32]
    node_of_row: NDArray[np.int32]
    position_of_row: NDArray[np.int32]
    words: int

    def number(self, name: NodeName) -> int | None:
        """Return the number of the node *name*; None where it is not known."""
        place = bisect_left(self.nodes, name)
        return place if self.nodes[place : place + 1] == (name,) else None

    def numbers(self, names: Iterable[NodeName]) -> list[int]:
        """Return the numbers of those of *names* that are known."""
        return [number for number in map(self.number, names) if number is not None]

    def local(self, node: int) -> NDArray[np.int32]:
        """Return the rows of the devices that are local to *node*."""
        return self.rows[self.starts[node] : self.starts[node + 1]]

    def local_slices(self, node: int) -> NDArray[np.int32]:
        """Return the indices of the slices that are local to *node*."""
        return self.slices[self.slice_starts[node] : self.slice_starts[node + 1]]

    def masks(self, chosen: NDArray[np.bool_]) -> Masks:
        """Gather bool[rows] into the masks of the nodes: uint64[nodes, words]; bit 0 of word 0 is position 0."""
        bits = np.zeros((len(self.nodes), self.words * BITS), np.bool_)
        bits[self.node_of_row[self.rows], self.position_of_row[self.rows]] = chosen[self.rows]
        return np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64, copy=False)


def layout_of(inventory: Inventory, nodes: Iterable[NodeName]) -> Layout:
    """Lay the devices of *inventory* out over *nodes*."""
    names = tuple(sorted(nodes))
    index = {name: position for position, name in enumerate(names)}
    homes = inventory.home
    node_of_slice = homes.table(lambda name: index.get(name, NOWHERE), NOWHERE)[homes.codes].astype(np.int32)
    node_of_row = np.repeat(node_of_slice, np.diff(inventory.starts)).astype(np.int32)
    rows, starts = _grouped(node_of_row, len(names))
    slices, slice_starts = _grouped(node_of_slice, len(names))
    counts = np.diff(starts)
    position_of_row = np.full(inventory.rows, NOWHERE, np.int32)
    position_of_row[rows] = np.arange(len(rows)) - np.repeat(starts[:-1], counts)
    words = max(1, -(-int(counts.max(initial=0)) // BITS))
    for array in (rows, starts, slices, slice_starts, node_of_slice, node_of_row, position_of_row):
        array.setflags(write=False)
    return Layout(names, rows, starts, slices, slice_starts, node_of_slice, node_of_row, position_of_row, words)


def _grouped(node_of: NDArray[np.int32], nodes: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """List what is local to each node: the indices grouped by node, and where each group begins."""
    order = np.argsort(node_of, kind="stable").astype(np.int32)
    local = order[np.count_nonzero(node_of == NOWHERE) :]
    counts = np.bincount(node_of[local], minlength=nodes)
    return local, np.concatenate(([0], np.cumsum(counts)))
