"""In which order sets of devices are tried for an ask, where the order is ours to choose."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Protocol

from extender.allocation.question import At
from extender.allocation.situation import Situation


class Preference(Protocol):
    """Orders sets of candidates, best first. Leaving a set out means that it will not be tried."""

    def sets(self, situation: Situation, at: At, mask: int, size: int) -> Iterable[tuple[int, ...]]:
        """Yield sets of *size* places out of *mask* for an ask."""
        ...


class Tightest:
    """Fills pools that are nearly full first, and leaves whole ones whole."""

    def sets(self, situation: Situation, at: At, mask: int, size: int) -> Iterator[tuple[int, ...]]:
        """Yield all sets, those out of the fullest pools first."""
        del at
        candidates = situation.board.candidates
        free: dict[int, int] = {}
        for place, usage in enumerate(situation.usages):
            free[candidates[place].pool] = free.get(candidates[place].pool, 0) + (not usage.is_held)
        places = [place for place in range(mask.bit_length()) if mask >> place & 1]
        yield from combinations(sorted(places, key=lambda place: (free[candidates[place].pool], place)), size)
