"""Which nodes see which of the pools that are not one node's own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.allocation.columns import Column, column_of
from extender.allocation.distinct import distinct
from extender.allocation.inventory import Inventory
from extender.allocation.layout import Layout
from extender.allocation.pools import Unreadable, reaches
from extender.allocation.projection import project
from extender.model.device import NodeSelection
from extender.model.frozen import dataclass
from extender.model.names import NodeName, PoolKey
from extender.model.node import Node
from extender.model.node_selector import NodeSelector, problem_of

UNTOLD = 2
# Ways that no node sees any more are kept until they outnumber the nodes by this factor (labels come and go).
WASTE = 2
SPARE = 1024
# Up to so many nodes are asked one by one: of more it is cheaper to ask those that look alike together.
FEW = 64
Bits = NDArray[np.int8]
# A slice of a pool and a device of it by their places, -1 for all of it, and who sees that.
Part = tuple[int, int, NodeSelection | None]
# What a node sees of shared slices: which selections, by number, and UNTOLD where one cannot be read.
View = tuple[tuple[int, int], ...]


class Spots(NamedTuple):
    """What of shared pools is seen or not as one, and by which selection.

    parts: int32[spots, 3] for each pool: the place of a slice in it, that of a device in the slice, -1 where the slice
    has one selection, and the number of the selection, -1 where there is none. pools: by the number of a selection,
    those that have it. named: the numbers of those that name a node. selections: the others, numbered first.
    """

    parts: Mapping[PoolKey, NDArray[np.int32]]
    pools: tuple[tuple[PoolKey, ...], ...]
    named: Mapping[NodeName, tuple[int, ...]]
    selections: tuple[NodeSelection, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """Shared pools are seen in a few different ways. view: int32[nodes], 0 where a node sees none of them.

    seen and pools have, for each way, what is seen, and the pools that it is part of. Both are append-only, and shared
    with the reach of other nodes over the same slices, so that ways given out stay true. Ways are told by selections,
    for of devices each node may see thousands. sights: int8[nodes] for each selection that names no node.
    """

    view: NDArray[np.int32]
    seen: list[View]
    pools: list[tuple[PoolKey, ...]]
    ways: dict[View, int]
    spots: Spots
    sights: Mapping[NodeSelection, Bits]

    @property
    def is_any(self) -> bool:
        """Whether there are any shared pools."""
        return bool(self.spots.parts)

    def way(self, row: Bits, name: NodeName) -> int:
        """Give what the node *name* sees a number; row: int8[sights]."""
        shown = np.flatnonzero(row)
        own = ((number, 1) for number in self.spots.named.get(name, ()))
        view = (*zip(shown.tolist(), row[shown].tolist(), strict=True), *own)
        known = self.ways.setdefault(view, len(self.seen))
        if known == len(self.seen):
            self.seen.append(view)
            self.pools.append(tuple(sorted({pool for number, _ in view for pool in self.spots.pools[number]})))
        return known

    def parts(self, pool: PoolKey, way: int) -> NDArray[np.int32]:
        """Return what is seen of *pool*: int32[parts, 3], a slice and a device by their places, and UNTOLD or 1."""
        parts, bits = self.spots.parts[pool], np.zeros(len(self.spots.pools) + 1, np.int32)
        for number, bit in self.seen[way]:
            bits[number] = bit
        seen = bits[parts[:, 2]]
        return np.column_stack((parts[:, :2], seen))[seen > 0]


def reach_of(
    inventory: Inventory, layout: Layout, nodes: Mapping[NodeName, Node], known: Mapping[NodeSelection, Bits]
) -> Reach:
    """Work out what each node of *layout* sees; *known* are sights of the same nodes."""
    spots, labels = _spots(inventory), Labels(layout.nodes, nodes)
    sights = {item: known[item] if item in known else labels.sight(item) for item in spots.selections}
    reach = Reach(np.zeros(len(layout.nodes), np.int32), [()], [()], {(): 0}, spots, sights)
    if not reach.is_any:
        reach.view.setflags(write=False)
        return reach
    matrix = np.zeros((len(layout.nodes), len(sights)), np.int8)
    for number, bits in enumerate(sights.values()):
        matrix[:, number] = bits
    ways: dict[tuple[bytes, tuple[int, ...]], int] = {}
    for node, row in enumerate(matrix):
        name = layout.nodes[node]
        key = row.tobytes(), spots.named.get(name, ())
        if key not in ways:
            ways[key] = reach.way(row, name)
        reach.view[node] = ways[key]
    reach.view.setflags(write=False)
    return reach


def moved(reach: Reach, layout: Layout, nodes: Mapping[NodeName, Node], changed: Iterable[int]) -> Reach:
    """Work out anew what the nodes *changed* see, indices into *layout*; return the same where that is the same."""
    if not reach.is_any:
        return reach
    view, sights = reach.view.copy(), dict(reach.sights)
    for index in changed:
        node = nodes[layout.nodes[index]]
        for selection, bits in sights.items():
            bit = _sees(selection, node)
            if bits[index] != bit:
                fresh = sights[selection] = bits.copy()
                fresh[index] = bit
        view[index] = reach.way(np.array([bits[index] for bits in sights.values()], np.int8), node.name)
    if np.array_equal(view, reach.view):
        return reach
    view.setflags(write=False)
    return replace(reach, view=view, sights=sights)


def carried(
    reach: Reach, before: Mapping[NodeName, Node], layout: Layout, nodes: Mapping[NodeName, Node]
) -> dict[NodeSelection, Bits]:
    """Take over the sights of *reach*, which is that of other nodes: those of *before*. None where most are others."""
    place_of = {name: place for place, name in enumerate(sorted(before))}
    origin = [place_of[name] if before.get(name) is nodes[name] else -1 for name in layout.nodes]
    fresh = [place for place, known in enumerate(origin) if known < 0]
    if len(fresh) > FEW or not before:
        return {}
    sights = {}
    for selection, bits in reach.sights.items():
        sights[selection] = mine = bits[origin]
        for place in fresh:
            mine[place] = _sees(selection, nodes[layout.nodes[place]])
    return sights


def is_wasteful(reach: Reach) -> bool:
    """Tell whether most ways are not those of any node now."""
    return len(reach.seen) > WASTE * len(reach.view) + SPARE


def _spots(inventory: Inventory) -> Spots:
    """Gather the parts of all slices of shared pools."""
    standings = inventory.standing.dictionary.values
    is_shared = [standing is not None and standing.shared_pool is not None for standing in standings]
    parts: dict[PoolKey, list[Part]] = {}
    start = 0
    for index in np.flatnonzero(np.array(is_shared, np.bool_)[inventory.standing.codes]).tolist():
        item = inventory.slices[index]
        if item.pool_key not in parts:
            start = index
        mine = parts.setdefault(item.pool_key, [])
        if item.selection is not None:
            mine.append((index - start, -1, item.selection))
        else:
            mine += [(index - start, place, device.traits.selection) for place, device in enumerate(item.devices)]
    return _numbered(parts)


def _numbered(parts: Mapping[PoolKey, Sequence[Part]]) -> Spots:
    """Give each selection a number, those first that name no node."""
    # Thousands of devices have one object as theirs: to tell by its value that it is one would take long.
    objects = {id(item): item for mine in parts.values() for *_, item in mine if item is not None}
    every = dict.fromkeys(objects.values())
    others = tuple(item for item in every if item.node_name is None)
    numbers = {item: number for number, item in enumerate(dict.fromkeys((*others, *every)))}
    codes = {key: numbers[item] for key, item in objects.items()}
    told = {
        pool: np.array([(at, device, codes.get(id(item), -1)) for at, device, item in mine], np.int32).reshape(-1, 3)
        for pool, mine in parts.items()
    }
    pools: list[list[PoolKey]] = [[] for _ in numbers]
    for pool, mine in told.items():
        for number in distinct(mine[mine[:, 2] >= 0, 2]).tolist():
            pools[number].append(pool)
    named: dict[NodeName, tuple[int, ...]] = {}
    for item, number in numbers.items():
        if item.node_name is not None:
            named[item.node_name] = (*named.get(item.node_name, ()), number)
    return Spots(told, tuple(map(tuple, pools)), named, others)


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
            if not selection.all_nodes and problem_of(selection.selector):
                return np.full(len(self._names), UNTOLD, np.int8)
        projection = project(columns, len(self._names))
        nodes = (self._nodes[self._names[index]] for index in projection.first.tolist())
        return np.array([reaches(selection, node, is_sound=True) for node in nodes], np.int8)[projection.codes]


def _named(selector: NodeSelector) -> frozenset[str]:
    """Return the nodes that *selector* can tell from others by their names."""
    return frozenset(value for term in selector.terms for item in term.fields for value in item.values)


def _sees(selection: NodeSelection, node: Node) -> int:
    try:
        return int(reaches(selection, node))
    except Unreadable:
        return UNTOLD
