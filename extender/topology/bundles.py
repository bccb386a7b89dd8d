"""Devices that are good for most together: an anchor, as a GPU is, without its partner is stranded."""

from collections.abc import Iterator, Mapping, Sequence

from extender.allocation.masks import mask_of, places_of
from extender.topology.aliases import Place
from extender.topology.alignment import NODE, affinity
from extender.topology.memo import Memo

# States of one structure that are remembered.
STATES = 1 << 14


class Bundles:
    """Which anchors belong with which partners, whoever is free. Masks are of the order in which both are given.

    partners_of: for each anchor the partners that are closest to it, none where nothing is known but the node;
    anchors_of: the same from the other side.
    """

    def __init__(self, anchors: Sequence[Place], partners: Sequence[Place]) -> None:
        near = [[affinity(anchor, partner) for partner in partners] for anchor in anchors]
        self.partners_of = tuple(_closest(row) for row in near)
        self.anchors_of = tuple(
            mask_of(anchor for anchor, mask in enumerate(self.partners_of) if mask >> partner & 1)
            for partner in range(len(partners))
        )
        self._groups: dict[int, int] = {}
        for partner, mask in enumerate(self.anchors_of):
            self._groups[mask] = self._groups.get(mask, 0) | 1 << partner
        # Whether partners fall into groups, each with anchors of its own: then what they cost adds up.
        self.is_grouped = all(one == other or not one & other for one in self._groups for other in self._groups)
        self._stranded: Memo[tuple[int, int], int] = Memo(STATES)
        self._losses: Memo[tuple[int, int], dict[int, int]] = Memo(STATES)

    def stranded(self, anchors: int, partners: int) -> int:
        """Count the free *anchors* for whom no free partner is left, shared out as well as can be."""
        known = self._stranded.get((anchors, partners))
        if known is None:
            wanting = [self.partners_of[anchor] & partners for anchor in places_of(anchors) if self.partners_of[anchor]]
            known = self._stranded[anchors, partners] = len(wanting) - _served(wanting)
        return known

    def losses(self, anchors: int, partners: int) -> Mapping[int, int]:
        """Tell of each free partner how many free *anchors* are stranded without it, as partners alike go one by one.

        The first ones to go may strand nobody, where there are more than anchors. Where partners are not grouped, those
        that are not alike may be all that an anchor has: that is not in it.
        """
        known = self._losses.get((anchors, partners))
        if known is None:
            known = self._losses[anchors, partners] = dict(self._lost(anchors, partners))
        return known

    def _lost(self, anchors: int, partners: int) -> Iterator[tuple[int, int]]:
        left: dict[int, int] = {}
        for partner in places_of(partners):
            alike = self.anchors_of[partner]
            before = left.get(alike, partners)
            left[alike] = before & ~(1 << partner)
            # As long as those alike suffice for all their anchors by themselves, nobody misses one.
            is_missed = self._alike(alike, left[alike]) < (alike & anchors).bit_count()
            yield partner, self.stranded(anchors, left[alike]) - self.stranded(anchors, before) if is_missed else 0

    def _alike(self, anchors: int, partners: int) -> int:
        return (self._groups.get(anchors, 0) & partners).bit_count()


def _closest(row: Sequence[int]) -> int:
    best = max(row, default=0)
    return mask_of(partner for partner, near in enumerate(row) if near == best) if best > NODE else 0


def _served(wanting: Sequence[int]) -> int:
    """Return how many can have one each, by augmenting paths."""
    holder: dict[int, int] = {}

    def seat(one: int, refused: set[int]) -> bool:
        for partner in places_of(wanting[one]):
            if partner not in refused:
                refused.add(partner)
                if partner not in holder or seat(holder[partner], refused):
                    holder[partner] = one
                    return True
        return False

    return sum(seat(one, set()) for one in range(len(wanting)))
