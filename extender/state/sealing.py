"""Slices of closed pools sealed, and opened again, some at a time: a driver may have thousands.

What a stranger has allocated from is closed at once. The rest of a driver follows in pieces, between which others run:
no later than a watch might have told of it, and what is given meanwhile is verified before a pod is bound, as always.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from extender.allocation.inventory import SliceKey, key_of
from extender.model.claim import ResourceClaim
from extender.model.device import ResourceSlice
from extender.model.names import Uid
from extender.state.cluster import Cluster
from extender.state.foreign import Foreign
from extender.state.ownership import Ownership

# Slices that are sealed in one go, each of which takes 0.2 ms.
PIECE: Final = 8


class Sealing:
    """One writer. *is_due*: some slices are not sealed yet as they are to be."""

    def __init__(self, cluster: Cluster, ownership: Ownership) -> None:
        self._cluster, self._ownership = cluster, ownership
        self._waiting: list[SliceKey] = []

    @property
    def is_due(self) -> bool:
        return bool(self._waiting)

    def close(self, found: Sequence[Foreign]) -> None:
        """Close what *found* closes: the pools concerned at once."""
        if not self._ownership.close(found):
            return
        slices = self._cluster.snapshot.inventory.slices
        closed = [item for item in slices if item.seal is None and self._ownership.seal_of(item)]
        concerned = {pool for each in found for pool in each.pools}
        self._cluster.seal([key_of(item) for item in closed if item.pool_key in concerned], self._ownership.seal_of)
        self._add(item for item in closed if item.pool_key not in concerned)
        self.go_on()

    def open(self, with_uid: Callable[[Uid], ResourceClaim | None]) -> None:
        """Open what was closed because of claims that are gone, hold nothing any more, or are to be borne."""
        if self._ownership.foreign and self._ownership.open(with_uid):
            slices = self._cluster.snapshot.inventory.slices
            self._add(item for item in slices if item.seal is not None)
            self.go_on()

    def go_on(self) -> bool:
        """Seal or open some more; tell whether that was not all."""
        piece, self._waiting = self._waiting[:PIECE], self._waiting[PIECE:]
        self._cluster.seal(piece, self._ownership.seal_of)
        return self.is_due

    def _add(self, slices: Iterable[ResourceSlice]) -> None:
        """Have *slices* wait, each once: a stranger's claims come by the hundred, and all are of one driver."""
        self._waiting = list(dict.fromkeys((*self._waiting, *map(key_of, slices))))
