"""Searches that took too long for one turn: each goes on where it was left off."""

from collections.abc import Hashable
from typing import Final, NamedTuple

from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Answer
from extender.allocation.work import Work

# Searches that are kept; each keeps the cluster that it began with.
MOST: Final = 16
# One that so many others were left off after is not gone on with any more: its pod is gone, or its node has changed.
IDLE: Final = 64
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
        self._turn = 0

    def __len__(self) -> int:
        return len(self._left)

    def take(self, key: Hashable) -> Left | None:
        """Return what is to be gone on with."""
        left = self._left.pop(key, None)
        return left[0] if left else None

    def leave(self, key: Hashable, left: Left) -> None:
        """Leave a search off until its next turn."""
        self._turn += 1
        if len(self._left) >= MOST:
            longest = next(iter(self._left))
            if self._turn - self._left[longest][1] <= IDLE:
                return
            del self._left[longest]
        self._left[key] = left, self._turn
