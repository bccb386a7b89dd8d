"""Shapes that claims are made about."""

from itertools import combinations, permutations

from hypothesis import strategies as st

from extender.topology.shape import Matrix, Shape

DOUBLE = ((0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (4, 7), (5, 6), (6, 7))
SINGLE = ((0, 1), (0, 2), (1, 3), (2, 6), (3, 7), (4, 5), (4, 6), (5, 7))


def matrix(size: int, pairs: dict[tuple[int, int], int], otherwise: int = 0) -> Matrix:
    """Make a symmetric matrix."""
    return tuple(
        tuple(0 if one == other else pairs.get((min(one, other), max(one, other)), otherwise) for other in range(size))
        for one in range(size)
    )


def levels(*weights: int, cell: int = 2) -> Shape:
    """Make a tree: cells of two cells of two ..., the weight of each level, closest first."""
    size = cell << len(weights) - 1
    pairs = {
        (one, other): next(
            weight for depth, weight in enumerate(weights) if one // (cell << depth) == other // (cell << depth)
        )
        for one, other in combinations(range(size), 2)
    }
    return Shape(matrix(size, pairs))


LINKS = {**dict.fromkeys(DOUBLE, 2), **dict.fromkeys(SINGLE, 1)}
# DGX-1 with V100: the hybrid cube mesh, two links or one, PCIe for the other pairs.
CUBE_MESH = Shape(matrix(8, {pair: 25 * count for pair, count in LINKS.items()}, 10), matrix(8, LINKS), 25)
BRIDGES = ((0, 2), (1, 3), (4, 5), (6, 7))
# Eight A100 with PCIe, bridged in pairs, four on each side.
PAIRS = Shape(
    matrix(
        8,
        {
            pair: 300 if pair in BRIDGES else 22 if pair[0] // 4 == pair[1] // 4 else 14
            for pair in combinations(range(8), 2)
        },
    )
)
FLAT = levels(450, cell=8)
TREE = levels(450, 430, 22)


def relabelled(shape: Shape, order: tuple[int, ...]) -> Shape:
    """Give device *place* of the result the links of device ``order[place]``."""
    moved = [
        tuple(tuple(rows[one][other] for other in order) for one in order) if rows else ()
        for rows in (shape.weights, shape.links)
    ]
    return Shape(moved[0], moved[1], shape.link)


@st.composite
def drawn_shapes(draw: st.DrawFn, most: int = 6) -> Shape:
    """Draw a small shape: links here and there, weights of other pairs from a few levels."""
    size = draw(st.integers(2, most))
    pairs = list(combinations(range(size), 2))
    links = {pair: draw(st.integers(0, 3)) for pair in pairs} if draw(st.booleans()) else {}
    weights = {pair: 25 * links.get(pair, 0) or draw(st.sampled_from([0, 10, 20])) for pair in pairs}
    return Shape(matrix(size, weights), matrix(size, links) if links else (), 25 if links else 0)


def rings(places: tuple[int, ...]) -> list[list[tuple[int, int]]]:
    """List every ring over *places* as its pairs, each once."""
    first, *others = places
    found = [(first, *rest) for rest in permutations(others) if len(rest) < 2 or rest[0] < rest[-1]]
    return [[(min(pair), max(pair)) for pair in zip(ring, (*ring[1:], first), strict=True)] for ring in found]
