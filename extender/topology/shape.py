"""How the devices of a node are connected, by number: what quality is worked out from, shared by all nodes alike."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

# A matrix: a row and a column for each device.
Matrix = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Shape:
    """*weights* of pairs, in GB/s one way; *links* between pairs, counted, where links are known; *link*: one's weight.

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
        if any(map(any, self.links)):
            return False
        every = range(self.size)
        rows = self.weights
        return all(
            rows[a][b] >= min(rows[a][c], rows[c][b]) for a in every for b in every for c in every if a != b != c != a
        )


def places_of(mask: int) -> tuple[int, ...]:
    """List the bits of *mask*, lowest first."""
    return tuple(_bits(mask))


def mask_of(places: Iterable[int]) -> int:
    """Do the opposite."""
    return sum(1 << place for place in places)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
