"""The bandwidth that a set of devices has to itself when all of them talk in rings, as collectives do."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Final

from extender.allocation.masks import mask_of
from extender.topology.shape import Matrix, Shape

# Steps for all sets of one size together: paths made longer by a device, and rings looked at while they are put
# together. Of large machines not all sets are looked at; so many count as all.
STEPS: Final = 400_000
SETS: Final = 1000
# Devices up to which all rings can be listed; of more there are too many for that, unless links are few.
LISTED: Final = 8
# Sets that are remembered, over all shapes.
REMEMBERED: Final = 1 << 12
# Devices up to which the best ring of arbitrary weights is searched for; beyond, the weakest pair speaks for the set.
SEARCHED = 12


def bandwidth(shape: Shape, places: Sequence[int]) -> int:
    """Return B: rings that share no link, times a link; or the best ring's weakest pair, where links make no ring."""
    if len(places) == 1:
        return 1
    if len(places) == 2:
        return shape.weights[places[0]][places[1]]
    rings = rings_at_once(shape.links, tuple(places)) if shape.links else 0
    return rings * shape.link if rings else widest_ring(shape, places)


def aggregate(shape: Shape, places: Sequence[int]) -> int:
    """Return A: the weights of all pairs added up."""
    return sum(shape.weights[one][other] for one, other in combinations(places, 2))


@lru_cache(maxsize=REMEMBERED)
def rings_at_once(links: Matrix, places: tuple[int, ...]) -> int:
    """Return how many rings over all *places* can be had at once, each with links of its own.

    Exact where that takes few enough steps, as it does among eight devices, and where all are linked alike. Beyond, at
    least as many as are found one by one, each along links of which most are left. Whether there is one at all is exact
    up to SEARCHED devices.
    """
    counted = [[links[one][other] if one != other else 0 for other in places] for one in places]
    most = min(map(sum, counted)) // 2
    if not most or len({row[other] for one, row in enumerate(counted) for other in range(one)}) == 1:
        # Where all are linked alike, rings use up all links but for at most one of each device.
        return most
    steps = STEPS if len(places) <= LISTED else STEPS // 8
    search = _Search(counted, most, steps // min(SETS, comb(len(links), len(places))))
    found = search.run()
    if not found and search.is_spent and len(places) <= SEARCHED:
        return int(_has_ring([mask_of(other for other, count in enumerate(row) if count) for row in counted]))
    return found


class _Search:
    """Puts rings together until there are as many as *most*, or all ways were tried, or its steps are spent."""

    def __init__(self, counted: Sequence[Sequence[int]], most: int, steps: int) -> None:
        self.size, self.most, self.steps = len(counted), most, steps
        self.near = [mask_of(other for other, count in enumerate(row) if count) for row in counted]
        self.left = [list(row) for row in counted]
        self.best = 0
        # Each pair is a bit of a ring.
        self.pairs = list(combinations(range(self.size), 2))
        self.bits = {pair: 1 << index for index, pair in enumerate(self.pairs)}
        self.rings: list[int] = []

    @property
    def is_spent(self) -> bool:
        return self.steps <= 0

    def run(self) -> int:
        # The way that may find fewer is tried first: where it finds as many as *most*, it is as good.
        kept, self.steps = self.steps * 7 // 8, self.steps // 8
        taken = list[list[int]]()
        while len(taken) < self.most and (path := self._next()):
            taken.append(path)
            self._use(path, -1)
        self.best = len(taken)
        for path in taken:
            self._use(path, 1)
        self.steps = max(0, self.steps) + kept
        if self.best < self.most:
            self._list(0, 1, 0)
            self.best = max(self.best, min(1, len(self.rings)))
        if self.best < self.most and not self.is_spent:
            self._put_together(self.rings, 0, 0)
        return self.best

    def _next(self) -> list[int]:
        """Return a ring, along links first of which most are left; nothing if none is found."""
        path, ways = [0], [self._onward([0])]
        while ways:
            if not ways[-1]:
                ways.pop()
                path.pop()
                continue
            self.steps -= 1
            if self.is_spent:
                return []
            path.append(ways[-1].pop())
            if len(path) == self.size and self.left[path[-1]][0]:
                return path
            ways.append(self._onward(path))
        return []

    def _onward(self, path: Sequence[int]) -> list[int]:
        row = self.left[path[-1]]
        return sorted((other for other, count in enumerate(row) if count and other not in path), key=row.__getitem__)

    def _use(self, path: Sequence[int], change: int) -> None:
        for one, other in zip(path, (*path[1:], path[0]), strict=True):
            self.left[one][other] += change
            self.left[other][one] += change

    def _list(self, last: int, passed: int, ring: int, first: int = 0) -> None:
        """List all rings that begin with a path to *last*, each in one of its two directions."""
        onward = self.near[last] & ~passed
        while onward and not self.is_spent:
            self.steps -= 1
            lowest = onward & -onward
            onward ^= lowest
            after = lowest.bit_length() - 1
            longer = ring | self.bits[min(last, after), max(last, after)]
            if passed | lowest != (1 << self.size) - 1:
                self._list(after, passed | lowest, longer, first or after)
            elif self.near[after] & 1 and first < after:
                self.rings.append(longer | self.bits[0, after])

    def _put_together(self, rings: Sequence[int], empty: int, count: int) -> None:
        """Add rings to *count* that there are; *empty*: the pairs of which no link is left."""
        self.best = max(self.best, count)
        for index, ring in enumerate(rings):
            self.steps -= len(rings) - index
            if self.best == self.most or self.is_spent:
                return
            used = [pair for pair in self.pairs if ring & self.bits[pair]]
            gone = empty
            for one, other in used:
                self.left[one][other] -= 1
                gone |= 0 if self.left[one][other] else self.bits[one, other]
            # Those before this one were tried together with it already.
            self._put_together([other for other in rings[index:] if not other & gone], gone, count + 1)
            for one, other in used:
                self.left[one][other] += 1


def widest_ring(shape: Shape, places: Sequence[int]) -> int:
    """Return the weakest pair of the ring over *places* whose weakest pair is best."""
    weights = sorted({shape.weights[one][other] for one, other in combinations(places, 2)}, reverse=True)
    if shape.is_tree or len(weights) == 1 or len(places) > SEARCHED:
        # In a tree every ring has to pass between the two halves that are furthest apart.
        return weights[-1]
    for weight in weights[:-1]:
        near = [
            mask_of(index for index, other in enumerate(places) if other != one and shape.weights[one][other] >= weight)
            for one in places
        ]
        if _has_ring(near):
            return weight
    return weights[-1]


def _has_ring(near: Sequence[int]) -> bool:
    """Tell whether there is a ring over all, by where paths from the last one can end, for each set they pass."""
    if any(row.bit_count() < 2 for row in near):
        return False
    last = len(near) - 1
    ends = [0] * (1 << last)
    for index in range(last):
        ends[1 << index] = near[last] & 1 << index
    for passed in range(1, 1 << last):
        left = ends[passed]
        while left:
            lowest = left & -left
            left ^= lowest
            onward = near[lowest.bit_length() - 1] & ~passed & (1 << last) - 1
            while onward:
                after = onward & -onward
                onward ^= after
                ends[passed | after] |= after
    return bool(ends[-1] & near[last])
