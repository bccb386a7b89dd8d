"""How good a set of devices is, as a share of the best that the shape has when all are free."""

from itertools import combinations
from typing import NamedTuple

from extender.allocation.masks import places_of
from extender.topology.candidates import EXACT, candidates
from extender.topology.memo import Memo
from extender.topology.rings import aggregate, bandwidth
from extender.topology.shape import Shape

# Quality and all that is made of it are whole numbers, of which this many are one: equal sets have equal numbers.
ONE = 1_000_000
# What bandwidth in rings counts, of ONE; all pairs together count the rest.
RINGS_COUNT = 800_000
# Sets of one shape that are remembered.
SETS = 1 << 15


class Parts(NamedTuple):
    """What the devices of a set have between them, in MB/s: in rings, and all pairs together."""

    bandwidth: int
    aggregate: int


class Quality:
    """The quality of the sets of one shape; each is worked out once."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._parts: Memo[int, Parts] = Memo(SETS)
        self._of: Memo[int, int] = Memo(SETS)
        self._best: dict[int, Parts] = {}

    def parts(self, mask: int) -> Parts:
        known = self._parts.get(mask)
        if known is None:
            places = places_of(mask)
            known = self._parts[mask] = Parts(bandwidth(self.shape, places), aggregate(self.shape, places))
        return known

    def best(self, size: int) -> Parts:
        """Return the best of each part over all sets of *size*."""
        known = self._best.get(size)
        if known is None:
            parts = [self.parts(mask) for mask in self.sets(self.shape.full, size)]
            known = Parts(max(part.bandwidth for part in parts), max(part.aggregate for part in parts))
            self._best[size] = known
        return known

    def sets(self, free: int, size: int) -> list[int]:
        """List the sets out of *free*: all of them in a small shape, those worth a look in a large one."""
        # Anybody may ask for any number, and combinations make room for so many before they find that there are none.
        if size > free.bit_count():
            return []
        if self.shape.size > EXACT:
            return candidates(self.shape, free, size)
        bits = [1 << place for place in places_of(free)]
        return [sum(chosen) for chosen in combinations(bits, size)]

    def of(self, mask: int) -> int:
        """Return how good a set is, between nothing and ONE."""
        known = self._of.get(mask)
        if known is None:
            parts, best = self.parts(mask), self.best(mask.bit_count())
            rings = _share(RINGS_COUNT, parts.bandwidth, best.bandwidth)
            known = self._of[mask] = rings + _share(ONE - RINGS_COUNT, parts.aggregate, best.aggregate)
        return known


def _share(whole: int, part: int, best: int) -> int:
    # Where the best is nothing, nobody has more.
    return whole * min(part, best) // best if best else whole
