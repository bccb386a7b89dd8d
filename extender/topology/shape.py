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
        weights = np.array(self.weights)
        np.fill_diagonal(weights, weights.max(initial=0))
        return all(bool((weights >= np.minimum.outer(row, row)).all()) for row in weights)


def shape_of(weights: NDArray[np.float64], links: NDArray[np.int64], link: float | None) -> Shape:
    """Return the shape of matrices in GB/s: in whole MB/s, so that sums do not depend on their order."""
    rounded = np.rint(weights * 1000).astype(np.int64)
    counted = _rows(links) if link and links.any() else ()
    return Shape(_rows(rounded), counted, round((link or 0) * 1000))


def _rows(matrix: NDArray[np.int64]) -> Matrix:
    # Of hundreds of devices there are ten thousands of pairs, but few weights: each is kept once.
    known: dict[int, int] = {}
    return tuple(tuple(known.setdefault(weight, weight) for weight in row) for row in matrix.tolist())
