"""One node of a snapshot, as the exact search takes it."""

from dataclasses import dataclass

from extender.allocation.board import Board, board_of
from extender.allocation.cel import Budget, Outcome, Verdict
from extender.allocation.eligibility import Judge
from extender.allocation.features import Features
from extender.allocation.question import Test
from extender.allocation.snapshot import Snapshot
from extender.allocation.tainting import Tainting
from extender.allocation.usage import UNUSED, Usage
from extender.model.names import DeviceKey


@dataclass(frozen=True, slots=True)
class Site:
    """A node's board, and the row of the inventory behind each of its candidates."""

    snapshot: Snapshot
    board: Board
    rows: tuple[int, ...]

    def usage_of(self, device: DeviceKey) -> Usage:
        """Return how much of *device* is taken, wherever it is."""
        rows = self.snapshot.inventory.rows_of(device)
        return self.snapshot.usage_at(rows[0]) if rows else UNUSED

    def judge(self, budget: Budget) -> Judge:
        """Judge candidates by what selectors say of whole columns: most of it is known from other nodes."""
        sweeps = {}

        def judge(test: Test, place: int) -> Outcome:
            if test.selector is None:
                return Outcome(Verdict.ERROR, test.error)
            if test.text not in sweeps:
                sweeps[test.text] = test.selector.sweep(self.snapshot.inventory, budget)
            return sweeps[test.text].outcome(self.rows[place])

        return judge


def site_of(snapshot: Snapshot, node: int, features: Features) -> Site:
    """Lay out what a node of *snapshot* sees."""
    inventory, reach = snapshot.inventory, snapshot.reach
    indices: list[int] = snapshot.layout.local_slices(node).tolist()
    for key in reach.pools[reach.view[node]]:
        indices += inventory.pool(key.driver, key.pool)
    starts = {id(inventory.slices[index]): int(inventory.starts[index]) for index in indices}
    tainting = Tainting(tuple(snapshot.rules[name] for name in sorted(snapshot.rules)), snapshot.classes)
    slices = tuple(inventory.slices[index] for index in dict.fromkeys(indices))
    board = board_of(snapshot.nodes[snapshot.layout.nodes[node]], slices, tainting, features)
    rows = tuple(
        starts[id(item)] + place for pool in board.pools for item in pool.here for place in range(len(item.devices))
    )
    return Site(snapshot, board, rows)
