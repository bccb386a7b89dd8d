"""What is published where one node can see it: as long as that stays the same, changes elsewhere do not concern it."""

from typing import Final

from extender.allocation.snapshot import Snapshot
from extender.model.names import NodeName

# Slices, each of which is another one once it has changed; in the place of too many all that is published.
Surroundings = tuple[object, ...]
# Slices of shared pools that are told apart: one pool may have some on every node.
MOST: Final = 64


def surroundings(snapshot: Snapshot, name: NodeName) -> Surroundings:
    """Return the slices that are local to the node *name*, and all of the shared pools of which it sees anything.

    A slice elsewhere can make a shared pool whole or invalid, and draws on the same counters. Which part of a pool is
    seen follows from its slices and from the node.
    """
    layout, inventory, reach = snapshot.layout, snapshot.inventory, snapshot.reach
    node = layout.number(name)
    if node is None:
        return ()
    own = tuple(inventory.slices[index] for index in layout.local_slices(node).tolist())
    ranges = [inventory.pool(key.driver, key.pool) for key in reach.pools[int(reach.view[node])]]
    if sum(map(len, ranges)) > MOST:
        return (inventory,)
    return own + tuple(inventory.slices[index] for pool in ranges for index in pool)
