"""Shapes and what is asked of them: requests arrive at random, hold their devices for one unit of time, or are lost."""

from dataclasses import dataclass
from itertools import combinations

from extender.topology.residual import Mix
from extender.topology.shape import Shape

Pairs = dict[tuple[int, int], int]


def _shape(size: int, weights: Pairs, otherwise: int, links: Pairs | None = None, link: int = 0) -> Shape:
    def matrix(pairs: Pairs, rest: int) -> tuple[tuple[int, ...], ...]:
        return tuple(
            tuple(0 if one == other else pairs.get((min(one, other), max(one, other)), rest) for other in range(size))
            for one in range(size)
        )

    return Shape(matrix(weights, otherwise), matrix(links, 0) if links else (), link)


def _bridged(size: int, bridges: tuple[tuple[int, int], ...]) -> Shape:
    """Return PCIe on two sockets, with bridges between some pairs."""
    half = size // 2
    near = {(one, other): 22 for one, other in combinations(range(size), 2) if one // half == other // half}
    return _shape(size, near | dict.fromkeys(bridges, 300), 14)


_DOUBLE = ((0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (4, 7), (5, 6), (6, 7))
_SINGLE = ((0, 1), (0, 2), (1, 3), (2, 6), (3, 7), (4, 5), (4, 6), (5, 7))
_LINKS = {**dict.fromkeys(_DOUBLE, 2), **dict.fromkeys(_SINGLE, 1)}


@dataclass(frozen=True)
class Workload:
    """A shape and how often, of a hundred requests, each size is asked for."""

    name: str
    shape: Shape
    asked: tuple[tuple[int, int], ...]

    @property
    def mix(self) -> Mix:
        return Mix.of(dict(self.asked))

    def rates(self, load: float, nodes: float = 1) -> dict[int, float]:
        """Return the arrivals of each size in a unit of time that ask for *load* of all devices."""
        mean = sum(size * count for size, count in self.asked) / 100
        return {size: load * nodes * self.shape.size / mean * count / 100 for size, count in self.asked}


DGX_1V = Workload(
    "DGX-1V",
    _shape(8, {pair: 25 * count for pair, count in _LINKS.items()}, 10, _LINKS, 25),
    ((1, 40), (2, 30), (4, 25), (8, 5)),
)
EIGHT_PCIE = Workload(
    "8 x PCIe, bridged pairs",
    _bridged(8, ((0, 2), (1, 3), (4, 5), (6, 7))),
    ((1, 40), (2, 40), (4, 15), (8, 5)),
)
FOUR_PCIE = Workload("4 x PCIe, bridged pairs", _bridged(4, ((0, 3), (1, 2))), ((1, 50), (2, 40), (4, 10)))
EIGHT_ALIKE = Workload("8 GPUs linked alike", _shape(8, {}, 450), DGX_1V.asked)
FOUR_ALIKE = Workload("4 GPUs linked alike", _shape(4, {}, 450), DGX_1V.asked)
