"""The bandwidth that a set of devices has to itself when all of them talk in rings, as collectives do."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from extender.topology.shape import Matrix, Shape

# A ring as the indices of its edges.
Ring = tuple[int, ...]

# Rings that are looked at, and steps of putting them together: more only where nearly all are linked with nearly all.
RINGS = 5000
STEPS = 20_000
# Devices up to which the best ring of arbitrary weights is searched for; beyond, the weakest pair speaks for the set.
SEARCHED = 12


def bandwidth(shape: Shape, places: Sequence[int]) -> int:
    """Return B: rings that share no link, times a link; or the best ring's weakest pair, where links make no ring."""
    if len(places) == 1:
        return 1
    if len(places) == 2:
        return shape.weights[places[0]][places[1]]
    rings = rings_at_once(shape.links, places) if shape.links else 0
    return rings * shape.link if rings else widest_ring(shape, places)


def aggregate(shape: Shape, places: Sequence[int]) -> int:
    """Return A: the weights of all pairs added up."""
    return sum(shape.weights[one][other] for one, other in combinations(places, 2))


def rings_at_once(links: Matrix, places: Sequence[int]) -> int:
    """Return how many rings over all *places* can be had at once, each with links of its own."""
    most = min(sum(links[one][other] for other in places if other != one) for one in places) // 2
    if not most:
        return 0
    edges = {pair: index for index, pair in enumerate(combinations(range(len(places)), 2))}
    left = [links[places[one]][places[other]] for one, other in edges]
    rings = []
    for ring in _rings(len(places), edges, left):
        rings.append(ring)
        if len(rings) == RINGS:
            break
    return _Packing(most).run(rings, left)


def _rings(size: int, edges: dict[tuple[int, int], int], left: Sequence[int]) -> Iterator[Ring]:
    """Yield the rings over all of *size* devices along links, each in one of its two directions."""
    near = [
        [other for other in range(size) if other != one and left[edges[min(one, other), max(one, other)]]]
        for one in range(size)
    ]
    path = [0]
    ways = [iter(near[0])]
    while ways:
        after = next(ways[-1], None)
        if after is None:
            ways.pop()
            path.pop()
        elif after not in path:
            path.append(after)
            ways.append(iter(near[after]))
            if len(path) == size and 0 in near[after] and path[1] < after:
                yield tuple(edges[min(pair), max(pair)] for pair in zip(path, (*path[1:], 0), strict=True))


class _Packing:
    """Puts rings together until there are as many as there can be, or until its steps are spent."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.best = 0
        self.steps = STEPS

    def run(self, rings: Sequence[Ring], left: list[int]) -> int:
        self._add(rings, left, 0)
        return self.best

    def _add(self, rings: Sequence[Ring], left: list[int], count: int) -> None:
        self.best = max(self.best, count)
        for index, ring in enumerate(rings):
            self.steps -= 1
            if self.best == self.most or self.steps < 0:
                return
            for edge in ring:
                left[edge] -= 1
            # Those before this one were tried together with it already.
            self._add([other for other in rings[index:] if all(left[edge] for edge in other)], left, count + 1)
            for edge in ring:
                left[edge] += 1


def widest_ring(shape: Shape, places: Sequence[int]) -> int:
    """Return the weakest pair of the ring over *places* whose weakest pair is best."""
    weights = sorted({shape.weights[one][other] for one, other in combinations(places, 2)}, reverse=True)
    if shape.is_tree or len(weights) == 1 or len(places) > SEARCHED:
        # In a tree every ring has to pass between the two halves that are furthest apart.
        return weights[-1]
    for weight in weights[:-1]:
        near = [
            sum(
                1 << index for index, other in enumerate(places) if other != one and shape.weights[one][other] >= weight
            )
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
