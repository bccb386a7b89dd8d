"""What a pod's search has worked out of one situation: who leads, who goes along, and what is worth what."""

from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import combinations
from operator import and_
from typing import NamedTuple

from extender.allocation.attempt import Pick
from extender.allocation.question import At
from extender.allocation.values import OPAQUE
from extender.topology.companions import Companions, Weights
from extender.topology.merits import Merits
from extender.topology.scene import Role, Scene
from extender.topology.shape import mask_of

Sets = Iterator[tuple[int, ...]]


class Wanted(NamedTuple):
    """Devices that one ask is to choose, after *picks*."""

    at: At
    mask: int
    size: int
    picks: tuple[Pick, ...]

    @property
    def taken(self) -> int:
        return mask_of({pick.place for pick in self.picks})


class Cast:
    """What is worked out of one situation."""

    def __init__(self, scene: Scene, weights: Weights) -> None:
        self.scene = scene
        self.companions = Companions(scene, weights)
        self.merits = Merits(self.companions)

    def agree(self, at: At, places: Iterable[int]) -> bool:
        """Tell whether the constraints of an ask would have these devices, if there were no others."""
        situation = self.scene.situation
        ask = situation.asks[at]
        for index in situation.covered[at]:
            values = situation.values[at.claim][index]
            if values.rule.is_match:
                known = [values.at(ask, place) for place in places]
                if not reduce(and_, (bits or 0 for bits in known), -1) & ~OPAQUE:
                    return False
        return True

    def partners(self, wanted: Wanted) -> Sets:
        """Yield the set that pairs best, then all sets, closest devices first."""
        leads, kind = self.scene.given(wanted.picks, Role.LEAD), self.scene.kind(wanted.at)
        if kind is None:
            return
        taken = wanted.taken & ~leads
        best = self.companions.partners(kind, leads, taken, wanted.mask, wanted.size)
        if best:
            yield best
        ranked = self.companions.nearest(kind, leads, taken, wanted.mask)
        yield from (tuple(sorted(places)) for places in combinations(ranked, wanted.size))

    def zones(self, wanted: Wanted) -> Sets:
        leads = self.scene.given(wanted.picks, Role.LEAD) or self.scene.given(wanted.picks, Role.PARTNER)
        taken = wanted.taken & ~leads
        for places in self.companions.zones(wanted.at, leads, taken, wanted.mask, wanted.size):
            yield tuple(sorted(places))
