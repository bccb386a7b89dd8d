"""Which nodes see which of the pools that are not one node's own."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.allocation.inventory import Inventory
from extender.allocation.layout import Layout
from extender.allocation.pools import Unreadable, reaches
from extender.model.device import NodeSelection, ResourceSlice
from extender.model.names import NodeName, PoolKey
from extender.model.node import Node

# What a node sees of the shared slices, bit by bit. UNTOLD: nobody can tell, its selector cannot be read.
View = tuple[int, ...]
UNTOLD = 2


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """Shared pools are seen in a few different ways. view: int32[nodes], 0 where a node sees none of them.

    seen and pools have, for each way, what is seen bit by bit, and the pools that it is part of.
    """

    view: NDArray[np.int32]
    seen: tuple[View, ...]
    pools: tuple[tuple[PoolKey, ...], ...]


def reach_of(inventory: Inventory, layout: Layout, nodes: Mapping[NodeName, Node]) -> Reach:
    """Work out what each node of *layout* sees."""
    standings = inventory.standing.dictionary.values
    is_shared = [standing is not None and standing.shared_pool is not None for standing in standings]
    shared = np.flatnonzero(np.array(is_shared, np.bool_)[inventory.standing.codes]).tolist()
    views: dict[View, int] = {(): 0}
    pools: list[tuple[PoolKey, ...]] = [()]
    view = np.zeros(len(layout.nodes), np.int32)
    for place, name in enumerate(layout.nodes) if shared else ():
        seen = _view(inventory, shared, nodes[name])
        code = views.setdefault(seen, len(views))
        if code == len(pools):
            pools.append(_pools(inventory, shared, nodes[name]))
        view[place] = code
    view.setflags(write=False)
    return Reach(view, tuple(views), tuple(pools))


def _view(inventory: Inventory, shared: list[int], node: Node) -> View:
    """Tell what *node* sees of the shared slices, bit by bit; nothing at all is the empty view."""
    seen = tuple(bit for index in shared for bit in _bits(inventory.slices[index], node))
    return seen if any(seen) else ()


def _pools(inventory: Inventory, shared: list[int], node: Node) -> tuple[PoolKey, ...]:
    return tuple(
        dict.fromkeys(inventory.slices[index].pool_key for index in shared if any(_bits(inventory.slices[index], node)))
    )


def _bits(item: ResourceSlice, node: Node) -> Iterator[int]:
    if item.selection is not None:
        yield _sees(item.selection, node)
        return
    for device in item.devices:
        yield _sees(device.traits.selection, node) if device.traits.selection else 0


def _sees(selection: NodeSelection, node: Node) -> int:
    try:
        return int(reaches(selection, node))
    except Unreadable:
        return UNTOLD
