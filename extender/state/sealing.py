"""Slices of closed pools sealed, and opened again, some at a time: a driver may have thousands.

What a stranger has allocated from is closed at once. The rest of a driver follows in pieces, between which others run:
no later than a watch might have told of it, and what is given meanwhile is verified before a pod is bound, as always.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from extender.allocation.inventory import SliceKey
from extender.model.claim import ResourceClaim
from extender.model.names import Uid
from extender.state.cluster import Cluster
from extender.state.foreign import Foreign, Part
from extender.state.ownership import Ownership

# Slices that are sealed in one go, each of which takes 0.2 ms.
PIECE: Final = 8


class Sealing:
    """One writer. *is_due*: some slices are not sealed yet as they are to be."""

    def __init__(self, cluster: Cluster, ownership: Ownership) -> None:
        self._cluster, self._ownership = cluster, ownership
        # Each once, in their order.
        self._waiting: dict[SliceKey, None] = {}

    @property
    def is_due(self) -> bool:
        return bool(self._waiting)

    def close(self, found: Sequence[Foreign]) -> None:
        """Close what *found* closes: the pools concerned at once."""
        if not found:
            return
        changed, concerned = self._ownership.close(found), frozenset(pool for each in found for pool in each.pools)
        self._cluster.seal(self._within(concerned), self._ownership.seal_of)
        self._add(changed - concerned)

    def open(self, uids: set[Uid], with_uid: Callable[[Uid], ResourceClaim | None]) -> None:
        """Open what was closed because of those of *uids* that no longer hold what they did, or are to be borne."""
        self._add(self._ownership.open(uids, with_uid))

    def open_all(self) -> None:
        """Open whatever is closed: in another's term what was allocated there may have come to be in use."""
        self._add(self._ownership.open_all())

    def go_on(self) -> bool:
        """Seal or open some more; tell whether that was not all."""
        piece = tuple(islice(self._waiting, PIECE))
        for key in piece:
            del self._waiting[key]
        self._cluster.seal(piece, self._ownership.seal_of)
        return self.is_due

    def _add(self, changed: frozenset[Part]) -> None:
        """Have the slices of what has *changed* wait, and begin; a stranger's further claims change nothing."""
        if changed:
            self._waiting |= dict.fromkeys(self._within(changed))
            self.go_on()

    def _within(self, parts: Iterable[Part]) -> Iterator[SliceKey]:
        """Yield the slices of *parts*: a driver may have thousands, of which none of the others is looked at."""
        keys = self._cluster.snapshot.inventory.keys
        for part in sorted(parts):
            start = bisect_left(keys, part)
            yield from keys[start : bisect_right(keys, part, start, key=lambda key: key[: len(part)])]
