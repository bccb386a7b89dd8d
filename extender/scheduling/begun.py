"""Searches that took too long for one turn: each goes on where it was left off."""

from collections.abc import Hashable
from typing import Final, NamedTuple

from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Answer
from extender.allocation.work import Work
from extender.topology.memo import Memo

# Searches that are kept; each keeps the cluster that it began with.
MOST: Final = 16
# One is not gone on with any more where another was turned away so often since, or so many were: its pod is gone, or
# its node has changed. Whoever takes turns with it is turned away once for each turn of its own.
OFTEN: Final = 6
MANY: Final = 1024
Searching = Work[Answer]


class Left(NamedTuple):
    """A search of a cluster, and how many were given up before it by the look that it is part of."""

    work: Searching
    snapshot: Snapshot
    given_up: int = 0


class Begun:
    """Keeps searches by what tells them apart. One writer.

    One that is gone on with is not put out by a new one, which begins again in its next turn then: where more take
    turns than are kept, none would ever end otherwise.
    """

    def __init__(self) -> None:
        self._left: dict[Hashable, tuple[Left, int]] = {}
        # When those were turned away that there was no room for, the last few times: by hashes, for what tells searches
        # apart may be large, and gone by then.
        self._turned_away = Memo[int, tuple[int, ...]](MANY)
        self._turn = 0

    def __len__(self) -> int:
        return len(self._left)

    def take(self, key: Hashable) -> Left | None:
        """Return the search that was left off under *key*, to be gone on with."""
        left = self._left.pop(key, None)
        return left[0] if left else None

    def leave(self, key: Hashable, left: Left) -> None:
        """Leave a search off until its next turn."""
        self._turn += 1
        if len(self._left) >= MOST and not self._has_room(key):
            return
        self._turned_away.pop(hash(key), None)
        self._left[key] = left, self._turn

    def _has_room(self, key: Hashable) -> bool:
        """Put out what nobody goes on with; tell whether there was any."""
        longest = next(iter(self._left))
        since, times = self._left[longest][1], (*self._turned_away.pop(hash(key), ()), self._turn)[-OFTEN:]
        if (len(times) == OFTEN and times[0] > since) or self._turn - since > MANY:
            del self._left[longest]
            return True
        self._turned_away[hash(key)] = times
        return False
