"""Which way of valuing devices is meant for an ask: what partitions leave, what shares cost, or links."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from extender.allocation.attempt import Pick
from extender.allocation.masks import mask_of
from extender.allocation.preference import Preference, Turn
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.topology.appraisal import Appraisal
from extender.topology.partitioned import Partitioned
from extender.topology.shared import Along, Shared


class Framed:
    """Leaves partitions and shares to those who know of them, and whole devices to who is there *otherwise*.

    Whole devices of which somebody has a part are not offered to the latter: they cannot be given.
    """

    def __init__(self, partitioned: Partitioned, shared: Shared, otherwise: Preference) -> None:
        self._partitioned = partitioned
        self._shared = shared
        self._otherwise = otherwise

    def beside(self, along: Along) -> "Framed":
        """Return the same where it counts for partitions and shares what can go *along* with devices, too."""
        return Framed(self._partitioned.beside(along), self._shared.beside(along), self._otherwise)

    def order(self, situation: Situation) -> Sequence[Turn]:
        return self._otherwise.order(situation)

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterable[tuple[int, ...]]:
        """Yield sets of *size* places out of *mask*, the best first."""
        seen = replace(situation, given=tuple(picks))
        if self._partitioned.concerns(seen, at, mask):
            return self._partitioned.sets(situation, at, mask, size, picks)
        if self._shared.concerns(seen, at, mask):
            return self._shared.sets(situation, at, mask, size, picks)
        if not situation.asks[at].is_admin:
            mask = self._partitioned.possible(seen, mask)
        return self._otherwise.sets(situation, at, mask, size, picks)

    def concerns(self, situation: Situation, at: At, mask: int) -> bool:
        """Tell whether partitions or shares are among *mask*."""
        return self._partitioned.concerns(situation, at, mask) or self._shared.concerns(situation, at, mask)

    def spared(self, situation: Situation, at: At, mask: int) -> int:
        """Return *mask* without what others could share, if the ask would take all of it."""
        return self._shared.spared(situation, at, mask)

    def value(self, situation: Situation, at: At, places: Sequence[int]) -> Appraisal | None:
        """Say what giving *places* to an ask is worth; None where that is for others to say."""
        mask = mask_of(places)
        if self._partitioned.concerns(situation, at, mask):
            return self._partitioned.value(situation, at, places)
        if self._shared.concerns(situation, at, mask):
            return self._shared.value(situation, at, places)
        return None
