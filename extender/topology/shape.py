"""How the devices of a node are connected, by number: what quality is worked out from, shared by all nodes alike."""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from extender.model.frozen import dataclass

# A matrix: a row and a column for each device.
Matrix = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Shape:
    """*weights* of pairs, in MB/s one way; *links* between pairs, counted, where links are known; *link*: one's weight.

    Without links, as behind a switch, only weights count.
    """

    weights: Matrix
    links: Matrix = ()
    link: int = 0

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Shapes are keys of much that is asked for again and again, and of hundreds of devices large ones.
        return hash((self.weights, self.links, self.link))

    @property
    def size(self) -> int:
        return len(self.weights)

    @property
    def full(self) -> int:
        """The mask of all devices."""
        return (1 << self.size) - 1

    @cached_property
    def is_tree(self) -> bool:
        """Whether only levels matter: no pair is further apart than each of the two is from any third."""
        if self.size < 2 or any(map(any, self.links)):
            return self.size < 2
        return self.tree == self.weights

    @cached_property
    def tree(self) -> Matrix:
        """The weights of the least tree in which no pair is further apart: as on the best way between the two."""
        if not self.size:
            return ()
        weights = np.array(self.weights, np.int64)
        found, joined = np.zeros_like(weights), np.arange(self.size) == 0
        # Devices join one by one, the closest first: how close each is to any that has, and to which.
        near, through = weights[0], np.zeros(self.size, np.int64)
        for _ in range(self.size - 1):
            place = int(np.where(joined, -1, near).argmax())
            row = np.where(joined, np.minimum(near[place], found[through[place]]), 0)
            row[through[place]] = near[place]
            found[place], found[:, place] = row, row
            joined[place] = True
            closer = weights[place] > near
            near, through = np.where(closer, weights[place], near), np.where(closer, place, through)
        return _rows(found)


def shape_of(weights: NDArray[np.float64], links: NDArray[np.int64], link: float | None) -> Shape:
    """Return the shape of matrices in GB/s: in whole MB/s, so that sums do not depend on their order."""
    rounded = np.rint(weights * 1000).astype(np.int64)
    counted = _rows(links) if link and links.any() else ()
    return Shape(_rows(rounded), counted, round((link or 0) * 1000))


def _rows(matrix: NDArray[np.int64]) -> Matrix:
    # Of hundreds of devices there are ten thousands of pairs, but few weights: each is kept once.
    known: dict[int, int] = {}
    return tuple(tuple(known.setdefault(weight, weight) for weight in row) for row in matrix.tolist())
