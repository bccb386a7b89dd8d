"""What is published in pools that nodes share, by numbers: what was found out there holds for one of them."""

from collections.abc import Iterable
from itertools import count
from typing import Final
from weakref import WeakKeyDictionary

from extender.allocation.columns import are_same
from extender.allocation.inventory import Inventory
from extender.allocation.snapshot import Snapshot
from extender.model.names import PoolKey
from extender.topology.memo import Memo

# Sets of pools that nodes see together; whose slices are forgotten counts as published anew.
TOGETHER: Final = 256
Pools = tuple[PoolKey, ...]


class Editions:
    """Numbers of what is published in shared pools: as long as no slice of them is another one, the same. One writer.

    Machines, and the states of nodes, tell of shared devices only what selectors read.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._known: Memo[Pools, tuple[tuple[object, ...], int]] = Memo(TOGETHER)
        # Pools may have a slice for every node: these are compared once, not for each node that sees them.
        self._looked_up: WeakKeyDictionary[Inventory, dict[Pools, int]] = WeakKeyDictionary()

    def of(self, snapshot: Snapshot, node: int) -> int:
        """Return the number of what *node* sees of shared pools, 0 where it sees nothing."""
        view = int(snapshot.reach.view[node])
        if not view:
            return 0
        looked_up = self._looked_up.setdefault(snapshot.inventory, {})
        pools = snapshot.reach.pools[view]
        number = looked_up.get(pools)
        if number is None:
            number = looked_up[pools] = self._number(pools, snapshot.inventory)
        return number

    def _number(self, pools: Pools, inventory: Inventory) -> int:
        slices = tuple(_published(pools, inventory))
        known = self._known.get(pools)
        if known is None or not are_same(known[0], slices):
            known = self._known[pools] = slices, next(self._numbers)
        return known[1]


def _published(pools: Pools, inventory: Inventory) -> Iterable[object]:
    for key in pools:
        yield from (inventory.slices[index] for index in inventory.pool(key.driver, key.pool))
