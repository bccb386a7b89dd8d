"""Which way of valuing devices is meant for an ask: what partitions leave, what shares cost, or links."""

from collections.abc import Iterable

from extender.allocation.preference import Preference
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.topology.partitioned import Partitioned
from extender.topology.shared import Shared


class Framed:
    """Leaves partitions and shares to those who know of them, and whole devices to who is there *otherwise*.

    Whole devices of which somebody has a part are not offered to the latter: they cannot be given.
    """

    def __init__(self, partitioned: Partitioned, shared: Shared, otherwise: Preference) -> None:
        self._partitioned = partitioned
        self._shared = shared
        self._otherwise = otherwise

    def sets(self, situation: Situation, at: At, mask: int, size: int) -> Iterable[tuple[int, ...]]:
        """Yield sets of *size* places out of *mask*, the best first."""
        if self._partitioned.concerns(situation, at, mask):
            return self._partitioned.sets(situation, at, mask, size)
        if self._shared.concerns(situation, at, mask):
            return self._shared.sets(situation, at, mask, size)
        if not situation.asks[at].is_admin:
            mask = self._partitioned.possible(situation, mask)
        return self._otherwise.sets(situation, at, mask, size)
