"""The boards that were laid out of a snapshot, and what several of them have in common."""

from collections.abc import Collection
from typing import Final

import numpy as np
from numpy.typing import NDArray

from extender.allocation.board import Board, Shared, is_local
from extender.allocation.features import Features
from extender.model.names import DeviceKey
from extender.model.taint import Taint

# Boards that are kept; with more nodes than that in one question, all of them would be made anew.
BOARDS: Final = 1 << 14
# What all of them may take, in bytes: where nodes see thousands of devices of others, each board names all of these.
ROOM: Final = 256 << 20
# What a board takes for each of its candidates, and a candidate that is on no other board.
PLACE_SIZE, CANDIDATE_SIZE = 16, 160
Key = tuple[int, Features]
# A board, and int64[candidates and what is pending]: the row of the inventory behind each of them.
Laid = tuple[Board, NDArray[np.int64]]
# For which taints pods are evicted that have a device, as far as that was asked.
Evicting = dict[tuple[DeviceKey, Features], tuple[Taint, ...]]


class Boards(dict[Key, Laid]):
    """Boards by the number of the node. All are forgotten where there are too many, or they take too much."""

    def __init__(self, room: int = ROOM) -> None:
        super().__init__()
        self._room, self._taken = room, 0
        self._shared: dict[Features, Shared] = {}
        self.evicting: Evicting = {}

    def __setitem__(self, key: Key, laid: Laid) -> None:
        size = size_of(laid[0])
        if len(self) >= BOARDS or self._taken + size > self._room:
            self.clear()
            self._shared, self._taken = {}, 0
        self._taken += size
        super().__setitem__(key, laid)

    def shared(self, features: Features) -> Shared:
        """Return the candidates that boards have in common, to be added to."""
        return self._shared.setdefault(features, {})

    def without(self, nodes: Collection[int]) -> "Boards":
        """Return those of all other nodes; these stay as they are."""
        others = Boards(self._room)
        others.update({key: laid for key, laid in self.items() if key[0] not in nodes})
        others._taken = self._taken - sum(size_of(laid[0]) for key, laid in self.items() if key[0] in nodes)
        others._shared = self._shared
        return others


def size_of(board: Board) -> int:
    """Tell about how many bytes *board* takes that no other board has."""
    own = sum(len(item.devices) for pool in board.pools for item in (*pool.here, *pool.pending) if is_local(item))
    return PLACE_SIZE * (len(board.candidates) + len(board.pending)) + CANDIDATE_SIZE * own
