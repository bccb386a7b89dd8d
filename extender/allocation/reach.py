"""Which nodes see which of the pools that are not one node's own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.allocation.columns import Column, column_of
from extender.allocation.inventory import Inventory
from extender.allocation.layout import Layout
from extender.allocation.pools import Unreadable, reaches
from extender.allocation.projection import project
from extender.model.device import NodeSelection
from extender.model.frozen import dataclass
from extender.model.names import NodeName, PoolKey
from extender.model.node import Node
from extender.model.node_selector import NodeSelector

UNTOLD = 2
# Ways that no node sees any more are kept until they outnumber the nodes by this factor (labels come and go).
WASTE = 2
SPARE = 1024
Bits = NDArray[np.int8]


class Spot(NamedTuple):
    """What is seen or not as one: a slice by its place in its pool, or a device of a slice in which each has its own.

    device is the place in the slice, -1 for all of it.
    """

    pool: PoolKey
    place: int
    device: int
    selection: NodeSelection | None


# What a node sees of shared slices: pool, place in the pool, device, and UNTOLD where its selector cannot be read.
View = tuple[tuple[PoolKey, int, int, int], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """Shared pools are seen in a few different ways. view: int32[nodes], 0 where a node sees none of them.

    seen and pools have, for each way, what is seen, and the pools that it is part of. Both are append-only, and shared
    with the reach of other nodes over the same slices, so that ways given out stay true. sights: int8[nodes] for each
    selection that names no node.
    """

    view: NDArray[np.int32]
    seen: list[View]
    pools: list[tuple[PoolKey, ...]]
    ways: dict[View, int]
    spots: tuple[Spot, ...]
    sights: Mapping[NodeSelection, Bits]

    def way(self, row: Bits) -> int:
        """Give what a node sees, int8[spots], a number."""
        spots = ((self.spots[index], int(row[index])) for index in np.flatnonzero(row).tolist())
        view = tuple((spot.pool, spot.place, spot.device, bit) for spot, bit in spots)
        known = self.ways.setdefault(view, len(self.seen))
        if known == len(self.seen):
            self.seen.append(view)
            self.pools.append(tuple(dict.fromkeys(pool for pool, *_ in view)))
        return known


def reach_of(
    inventory: Inventory,
    layout: Layout,
    nodes: Mapping[NodeName, Node],
    known: Mapping[NodeSelection, Bits] | None = None,
) -> Reach:
    """Work out what each node of *layout* sees; *known* are sights of the same nodes."""
    spots = tuple(_spots(inventory))
    sighted = {spot.selection for spot in spots if spot.selection and spot.selection.node_name is None}
    labels = Labels(layout.nodes, nodes)
    sights = {item: known[item] if known and item in known else labels.sight(item) for item in sighted}
    reach = Reach(np.zeros(len(layout.nodes), np.int32), [()], [()], {(): 0}, spots, sights)
    if not spots:
        reach.view.setflags(write=False)
        return reach
    ways: dict[bytes, int] = {}
    for node, row in enumerate(_matrix(reach, layout)):
        key = row.tobytes()
        if key not in ways:
            ways[key] = reach.way(row)
        reach.view[node] = ways[key]
    reach.view.setflags(write=False)
    return reach


def moved(reach: Reach, layout: Layout, nodes: Mapping[NodeName, Node], changed: Iterable[int]) -> Reach:
    """Work out anew what the nodes *changed* see, indices into *layout*; return the same where that is the same."""
    if not reach.spots:
        return reach
    view, sights = reach.view.copy(), dict(reach.sights)
    for index in changed:
        node = nodes[layout.nodes[index]]
        for selection, bits in sights.items():
            bit = _sees(selection, node)
            if bits[index] != bit:
                fresh = sights[selection] = bits.copy()
                fresh[index] = bit
        row = [_bit(spot.selection, sights, index, node.name) for spot in reach.spots]
        view[index] = reach.way(np.array(row, np.int8))
    if np.array_equal(view, reach.view):
        return reach
    view.setflags(write=False)
    return replace(reach, view=view, sights=sights)


def is_wasteful(reach: Reach) -> bool:
    """Tell whether most ways are not those of any node now."""
    return len(reach.seen) > WASTE * len(reach.view) + SPARE


def _bit(selection: NodeSelection | None, sights: Mapping[NodeSelection, Bits], index: int, name: NodeName) -> int:
    if selection is None:
        return 0
    return int(selection.node_name == name) if selection.node_name is not None else int(sights[selection][index])


def _matrix(reach: Reach, layout: Layout) -> Bits:
    """Gather what is seen: int8[nodes, spots]."""
    matrix = np.zeros((len(reach.spots), len(layout.nodes)), np.int8)
    index = {name: place for place, name in enumerate(layout.nodes)}
    for row, spot in zip(matrix, reach.spots, strict=True):
        if spot.selection is None:
            continue
        if spot.selection.node_name is None:
            row[:] = reach.sights[spot.selection]
        elif spot.selection.node_name in index:
            row[index[spot.selection.node_name]] = 1
    return np.ascontiguousarray(matrix.T)


def _spots(inventory: Inventory) -> Iterator[Spot]:
    """Yield the parts of all slices of shared pools."""
    standings = inventory.standing.dictionary.values
    is_shared = [standing is not None and standing.shared_pool is not None for standing in standings]
    pool, start = None, 0
    for index in np.flatnonzero(np.array(is_shared, np.bool_)[inventory.standing.codes]).tolist():
        item = inventory.slices[index]
        if item.pool_key != pool:
            pool, start = item.pool_key, index
        if item.selection is not None:
            yield Spot(pool, index - start, -1, item.selection)
            continue
        for place, device in enumerate(item.devices):
            yield Spot(pool, index - start, place, device.traits.selection)


class Labels:
    """The labels of nodes as columns, each made when a selector first reads it."""

    def __init__(self, names: Sequence[NodeName], nodes: Mapping[NodeName, Node]) -> None:
        self._names, self._nodes = names, nodes
        self._columns: dict[str, Column[str]] = {}

    @cached_property
    def _labels(self) -> list[dict[str, str]]:
        return [dict(self._nodes[name].labels) for name in self._names]

    def _column(self, key: str) -> Column[str]:
        if key not in self._columns:
            self._columns[key] = column_of(labels.get(key) for labels in self._labels)
        return self._columns[key]

    def sight(self, selection: NodeSelection) -> Bits:
        """Tell which nodes see what has *selection*, which names none: one evaluation for all that look alike to it."""
        columns: list[Column[Any]] = []
        if selection.selector is not None:
            keys = {item.key for term in selection.selector.terms for item in term.expressions}
            columns = [self._column(key) for key in sorted(keys)]
            named = _named(selection.selector)
            if named:
                columns.append(column_of(name if name in named else None for name in self._names))
        projection = project(columns, len(self._names))
        nodes = (self._nodes[self._names[index]] for index in projection.first.tolist())
        return np.array([_sees(selection, node) for node in nodes], np.int8)[projection.codes]


def _named(selector: NodeSelector) -> frozenset[str]:
    """Return the nodes that *selector* can tell from others by their names."""
    return frozenset(value for term in selector.terms for item in term.fields for value in item.values)


def _sees(selection: NodeSelection, node: Node) -> int:
    try:
        return int(reaches(selection, node))
    except Unreadable:
        return UNTOLD
