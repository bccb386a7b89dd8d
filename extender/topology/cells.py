"""The cells of a shape: devices that are closer to each other than to any other.

Where it is no tree, those of the tree in which a pair is as close as the weakest link of the best way between the two.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from extender.allocation.masks import mask_of, places_of
from extender.model.frozen import dataclass
from extender.topology.shape import Matrix, Shape

# A count, a weight, and the same of every part.
Signature = tuple[int, int, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Cell:
    """Devices, the least weight between any two, and the cells they fall into: none if all are equally close."""

    mask: int
    weight: int
    children: tuple["Cell", ...] = ()

    def signature(self, free: int) -> "Signature":
        """Return what tells free devices of the cell from others: not which they are, but how many in which parts."""
        parts = sorted(part.signature(free) for part in self.children)
        return (self.mask & free).bit_count(), self.weight, tuple(parts)


@lru_cache(maxsize=256)
def whole(shape: Shape) -> Cell:
    """Return the cell of all devices of a shape."""
    return _cell(shape.tree, shape.full)


def cells(cell: Cell) -> Iterator[Cell]:
    """Yield the cells below *cell*."""
    for part in cell.children:
        yield part
        yield from cells(part)


def _cell(weights: Matrix, mask: int) -> Cell:
    """Split *mask* where its devices are furthest apart."""
    places = places_of(mask)
    far = min((weights[one][other] for one in places for other in places if one != other), default=0)
    parts = []
    left = mask
    while left:
        first = places_of(left)[0]
        near = mask_of(place for place in places_of(left) if place == first or weights[first][place] > far)
        parts.append(near)
        left &= ~near
    return Cell(mask, far, tuple(_cell(weights, part) for part in parts) if len(parts) < len(places) else ())
