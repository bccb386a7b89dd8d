"""Some nodes and their local devices as matrices: what holds for one of them is asked of all at once."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from extender.allocation.layout import BITS, Layout
from extender.model.frozen import dataclass

Matrix = NDArray[np.int32]
Flags = NDArray[np.bool_]
Words = NDArray[np.uint64]
V = TypeVar("V", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Grid:
    """nodes: int64[n]; rows: int32[n, width] and slices: int32[n, slice width], -1 where a node has no more."""

    nodes: NDArray[np.int64]
    rows: Matrix
    slices: Matrix

    def of_rows(self, values: NDArray[V]) -> NDArray[V]:
        """Gather something for each row, [rows], into [n, width]; 0 or False where a node has no more devices."""
        return _gathered(values, self.rows)

    def of_slices(self, values: NDArray[V]) -> NDArray[V]:
        """Gather something for each slice, [slices], into [n, slice width]; 0 where a node has no more slices."""
        return _gathered(values, self.slices)


def _gathered(values: NDArray[V], places: Matrix) -> NDArray[V]:
    """Gather without looking at what is not asked for."""
    if not len(values):
        return np.zeros(places.shape, values.dtype)
    gathered = values[places]
    gathered[places < 0] = 0
    return gathered


def grid_of(layout: Layout, nodes: NDArray[np.int64]) -> Grid:
    """Gather what is local to *nodes*."""
    return Grid(
        nodes,
        _matrix(layout.rows, layout.starts, nodes),
        _matrix(layout.slices, layout.slice_starts, nodes),
    )


def _matrix(items: NDArray[np.int32], starts: NDArray[np.int64], nodes: NDArray[np.int64]) -> Matrix:
    first, last = starts[nodes], starts[nodes + 1]
    width = int((last - first).max(initial=0))
    places = first[:, None] + np.arange(width)
    exists = places < last[:, None]
    matrix = np.full(places.shape, -1, np.int32)
    matrix[exists] = items[places[exists]]
    return matrix


def packed(flags: Flags) -> Words:
    """Pack bool[n, width], width up to 64, into uint64[n]; bit 0 is the first column."""
    octets = np.packbits(flags, axis=1, bitorder="little")
    padded = np.zeros((len(flags), BITS // 8), np.uint8)
    padded[:, : octets.shape[1]] = octets
    return padded.view("<u8")[:, 0].astype(np.uint64, copy=False)
