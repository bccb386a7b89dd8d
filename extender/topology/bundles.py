"""Devices that are good for most together: an anchor, as a GPU is, and a partner that is close to it, as a NIC."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

from extender.allocation.masks import mask_of, places_of
from extender.topology.aliases import Place
from extender.topology.alignment import FIRST_NUMA, ROOT, SOME_NUMA, affinity

# How close pairs are at least, and what that is worth more than not to be: what only shares a node is no pair.
STEPS: Final = ((ROOT, ROOT - FIRST_NUMA), (FIRST_NUMA, FIRST_NUMA - SOME_NUMA), (SOME_NUMA, SOME_NUMA))


class Level(NamedTuple):
    """Who is so close to whom: the partners of each anchor, and the cells in which all are, if there is nothing else.

    Masks are of the order in which both are given.
    """

    step: int
    partners_of: tuple[int, ...]
    cells: tuple[tuple[int, int], ...] | None

    def pairs(self, anchors: int, partners: int) -> int:
        """Count the *anchors* that can have one of the *partners* each."""
        if self.cells is not None:
            return sum(
                min((anchors & ones).bit_count(), (partners & others).bit_count()) for ones, others in self.cells
            )
        return len(_seated(self._wanting(anchors, partners)))

    def missed(self, anchors: int, partners: int) -> int:
        """Return the mask of those of the *partners* without each of whom there is a pair less."""
        if self.cells is not None:
            free = [(anchors & ones, partners & others) for ones, others in self.cells]
            return reduce(or_, (others for ones, others in free if others.bit_count() <= ones.bit_count()), 0)
        wanting = self._wanting(anchors, partners)
        holder = _seated(wanting)
        missed = mask_of(holder)
        # Nobody misses one whose holder can have another that is not missed.
        while spared := mask_of(one for one in places_of(missed) if wanting[holder[one]] & ~missed):
            missed &= ~spared
        return missed

    def _wanting(self, anchors: int, partners: int) -> list[int]:
        return [self.partners_of[anchor] & partners for anchor in places_of(anchors)]


class Bundles:
    """What anchors and partners are good for together, whoever is free."""

    def __init__(self, anchors: Sequence[Place], partners: Sequence[Place]) -> None:
        near = [[affinity(anchor, partner) for partner in partners] for anchor in anchors]
        steps: dict[tuple[int, ...], int] = {}
        for least, step in STEPS:
            rows = _rows(near, least)
            steps[rows] = steps.get(rows, 0) + step
        self._levels = tuple(_level(rows, step) for rows, step in steps.items())

    def pairs(self, anchors: int, partners: int) -> int:
        """Count the pairs that free *anchors* and *partners* make with what is near."""
        return self._levels[-1].pairs(anchors, partners)

    def worth(self, anchors: int, partners: int) -> int:
        """Return what the pairs are worth that they make, as close as can be; one on one root is worth ONE."""
        return sum(level.step * level.pairs(anchors, partners) for level in self._levels)

    def losses(self, anchors: int, partners: int) -> Mapping[int, int]:
        """Tell how much less the pairs are worth without each of those *partners* who are missed.

        Without several it may be more.
        """
        missed = [(level.step, level.missed(anchors, partners)) for level in self._levels]
        some = places_of(reduce(or_, (mask for _, mask in missed)))
        return {one: sum(step for step, mask in missed if mask >> one & 1) for one in some}


def _rows(near: Sequence[Sequence[int]], least: int) -> tuple[int, ...]:
    return tuple(mask_of(partner for partner, close in enumerate(row) if close >= least) for row in near)


def _level(rows: tuple[int, ...], step: int) -> Level:
    cells: dict[int, int] = {}
    for anchor, row in enumerate(rows):
        if row:
            cells[row] = cells.get(row, 0) | 1 << anchor
    is_parted = sum(row.bit_count() for row in cells) == reduce(or_, cells, 0).bit_count()
    return Level(step, rows, tuple((ones, row) for row, ones in cells.items()) if is_parted else None)


def _seated(wanting: Sequence[int]) -> dict[int, int]:
    """Tell by whom each partner is had where as many as can be have one each, by augmenting paths."""
    holder: dict[int, int] = {}

    def seat(one: int, refused: set[int]) -> bool:
        for partner in places_of(wanting[one]):
            if partner not in refused:
                refused.add(partner)
                if partner not in holder or seat(holder[partner], refused):
                    holder[partner] = one
                    return True
        return False

    for one in range(len(wanting)):
        seat(one, set())
    return holder
