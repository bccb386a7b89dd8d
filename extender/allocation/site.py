"""One node of a snapshot, as the exact search takes it."""

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from extender.allocation.board import Board, board_of
from extender.allocation.cel import SelectorOutcome
from extender.allocation.eligibility import Judge
from extender.allocation.features import Features
from extender.allocation.selectors import Selector
from extender.allocation.snapshot import Snapshot
from extender.allocation.tainting import Tainting
from extender.allocation.usage import UNUSED, Usage
from extender.model.frozen import dataclass
from extender.model.names import DeviceKey, DeviceName, DriverName, PoolName


@dataclass(frozen=True, slots=True)
class Site:
    """A node's board. places: int64[candidates and what is pending], the row of the inventory behind each of them."""

    snapshot: Snapshot
    board: Board
    places: NDArray[np.int64]
    # Who is asked about one device of a pool is asked about all of them.
    _pools: dict[tuple[DriverName, PoolName], dict[DeviceName, int]] = field(default_factory=dict)

    def usage_of(self, device: DeviceKey) -> Usage:
        """Return how much of *device* is taken, wherever it is."""
        pool = device.driver, device.pool
        if pool not in self._pools:
            self._pools[pool] = self.snapshot.inventory.rows_by_name(*pool)
        row = self._pools[pool].get(device.device)
        return UNUSED if row is None else self.snapshot.usage_at(row)

    def usages(self) -> tuple[Usage, ...]:
        """Return how much of each candidate is taken."""
        usage, rows = self.snapshot.usage, self.places[: len(self.board.candidates)]
        return tuple(usage.dictionary.values[code] or UNUSED for code in usage.codes[rows].tolist())

    def judge(self) -> Judge:
        """Judge candidates by what selectors say of whole columns: most of it is known from other nodes."""
        judged: dict[Selector, list[SelectorOutcome]] = {}

        def judge(selector: Selector) -> list[SelectorOutcome]:
            if selector not in judged:
                sweep = selector.sweep(self.snapshot.inventory)
                judged[selector] = [sweep.outcomes[code] for code in sweep.codes[self.places].tolist()]
            return judged[selector]

        return judge


def site_of(snapshot: Snapshot, node: int, features: Features) -> Site:
    """Lay out what a node of *snapshot* sees; done once for all snapshots that differ in what is taken only."""
    board, rows = snapshot.boards.get((node, features)) or (None, None)
    if board is None or rows is None:
        board, rows = _laid_out(snapshot, node, features)
        snapshot.boards[node, features] = board, rows
    return Site(snapshot, board, rows)


def _laid_out(snapshot: Snapshot, node: int, features: Features) -> tuple[Board, NDArray[np.int64]]:
    inventory, reach = snapshot.inventory, snapshot.reach
    indices: list[int] = snapshot.layout.local_slices(node).tolist()
    for key in reach.pools[reach.view[node]]:
        indices += inventory.pool(key.driver, key.pool)
    starts = {id(inventory.slices[index]): int(inventory.starts[index]) for index in indices}
    tainting = Tainting(tuple(snapshot.rules[name] for name in sorted(snapshot.rules)), snapshot.classes)
    shared = snapshot.boards.shared(features)
    slices = tuple(inventory.slices[index] for index in dict.fromkeys(indices))
    board = board_of(snapshot.nodes[snapshot.layout.nodes[node]], slices, tainting, features, shared)
    shown = [*(pool.here for pool in board.pools), *(pool.pending for pool in board.pools)]
    rows = [starts[id(item)] + place for items in shown for item in items for place in range(len(item.devices))]
    return board, np.array(rows, np.int64)
