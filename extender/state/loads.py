"""What bound pods take of nodes, change by change.

Kept beside the snapshots, not in them: pods come and go far more often than devices.
"""

from collections import defaultdict
from collections.abc import Iterator, KeysView, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from extender.model.change import Change, Changed, Gone, Listed, kind_of, relisted
from extender.model.footprint import Footprint, amount
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Node
from extender.model.problem import Problem
from extender.model.quantity import Amounts, Quantity
from extender.state.node_rows import NodeRows, Rows
from extender.state.table import Numbers, Table

FEWEST: Final = 64
# One of so many pods may be another when they are listed again: with more, one by one is as slow as all anew.
SAME: Final = 4


class Loads:
    """What nodes have and what is taken of it, in columns. One writer.

    *is_known* tells whether bound pods were ever listed: as long as they were not, nothing is known to be free.
    *version* counts the changes that made a difference, and the lists of bound pods.
    """

    def __init__(self) -> None:
        self.is_known = False
        self.version = 0
        self._node_rows = NodeRows()
        self._allocatable, self._used = Table(FEWEST), Table(FEWEST)
        # Those that were asked for last, and how often a row was given or taken back until then.
        self._rows: tuple[tuple[NodeName, ...], int, Rows] = (), -1, np.zeros(0, np.int64)
        self._nodes: dict[NodeName, Amounts] = {}
        self._footprints: dict[ObjectKey, Footprint] = {}
        self._node_of: dict[Uid, NodeName] = {}
        # int64[rows]: how many bound pods there are.
        self._pods = np.zeros(FEWEST, np.int64)

    def __iter__(self) -> Iterator[Footprint]:
        """Yield the bound pods that have not finished."""
        return iter(self._footprints.values())

    def __len__(self) -> int:
        """Return how many bound pods are known."""
        return len(self._footprints)

    def has(self, key: ObjectKey, uid: Uid) -> bool:
        """Tell whether the pod *key* with *uid* is bound and has not finished."""
        return self.node_of(key, uid) is not None

    def node_of(self, key: ObjectKey, uid: Uid) -> NodeName | None:
        """Name the node of the pod *key* with *uid*, where it is bound and has not finished."""
        known = self._footprints.get(key)
        return known.node if known is not None and known.uid == uid else None

    @property
    def bound(self) -> KeysView[Uid]:
        """Return the pods that are known to be bound, and have not finished."""
        return self._node_of.keys()

    def is_on(self, pod: Uid, node: NodeName) -> bool:
        """Tell whether *pod* is known to be bound to *node*, and has not finished."""
        return self._node_of.get(pod) == node

    def is_elsewhere(self, pod: Uid, node: NodeName) -> bool:
        """Tell whether *pod* is known to be bound to another node than *node*."""
        return self._node_of.get(pod, node) != node

    def footprint(self, key: ObjectKey) -> Footprint | None:
        """Return the bound pod *key*, where it takes anything."""
        return self._footprints.get(key)

    def free(self, node: NodeName) -> dict[str, int] | None:
        """Return what is free on *node* of all that it has, less than nothing where too much is taken.

        None where the node is not known, or not what is taken of it.
        """
        if not self.is_known or node not in self._nodes:
            return None
        used = self._used.at(self._node_rows.row_for(node))
        return {resource: number - used.get(resource, 0) for resource, number in self._nodes[node]}

    def rows_of(self, nodes: tuple[NodeName, ...]) -> Rows:
        """Return the rows of *nodes*, for the columns below: int64[nodes]. Most ask for those of a layout, again."""
        if self._rows[0] is not nodes or self._rows[1] != self._node_rows.changes:
            self._rows = nodes, self._node_rows.changes, self._node_rows.rows_of(nodes)
            self._rows[2].setflags(write=False)
        return self._rows[2]

    def allocatable(self, resource: str, rows: Rows) -> Numbers:
        """Return how much of *resource* nodes have, nothing where they are not known: int64[rows]."""
        return self._allocatable.of(resource, rows)

    def used(self, resource: str, rows: Rows) -> Numbers:
        """Return how much of *resource* bound pods take: int64[rows]."""
        return self._used.of(resource, rows)

    def apply(self, change: Change) -> None:
        """Take *change* over, as far as it is about nodes or bound pods."""
        kind = kind_of(change)
        if kind == Footprint.__name__:
            self._apply_to_pods(change)
        elif kind == Node.__name__:
            self._apply_to_nodes(change)

    def _apply_to_pods(self, change: Change) -> None:
        match change:
            case Changed(Footprint() as footprint):
                self._put(footprint)
            case Changed(Problem(key=key)) | Gone(_, key):
                self._drop(key)
            case Listed(_, items):
                self._list([item for item in items if isinstance(item, Footprint)])
                self.is_known = True

    def _apply_to_nodes(self, change: Change) -> None:
        match change:
            case Changed(Node() as node):
                self._put_node(node)
            case Changed(Problem(key=key)) | Gone(_, key):
                self._drop_node(NodeName(key.name))
            case Listed(_, items):
                nodes = [item for item in items if isinstance(item, Node)]
                for name in self._nodes.keys() - {node.name for node in nodes}:
                    self._drop_node(name)
                for node in nodes:
                    self._put_node(node)

    def _put(self, footprint: Footprint) -> None:
        before = self._footprints.get(footprint.key)
        if not footprint.amounts:
            self._drop(footprint.key)
            return
        self._footprints[footprint.key] = footprint
        if before is not None:
            self._node_of.pop(before.uid, None)
        self._node_of[footprint.uid] = footprint.node
        if before is None:
            self._take(footprint, 1)
        elif (before.node, before.amounts) != (footprint.node, footprint.amounts):
            # In this order a row is not given away in between.
            self._take(footprint, 1)
            self._take(before, -1)

    def _drop(self, key: ObjectKey) -> None:
        before = self._footprints.pop(key, None)
        if before is not None:
            self._node_of.pop(before.uid, None)
            self._take(before, -1)

    def _take(self, footprint: Footprint, sign: int) -> None:
        row = self._row_for(footprint.node)
        self._used.add(row, footprint.amounts, sign)
        self._pods[row] += sign
        self.version += 1
        self._tidy(footprint.node)

    def _list(self, footprints: Sequence[Footprint]) -> None:
        news, gone = relisted(self._footprints.values(), footprints, lambda item: item.key)
        self.version += 1
        if SAME * (len(news) + len(gone)) > len(footprints):
            self._begin(footprints)
            return
        for key in gone:
            self._drop(key)
        for item in news:
            self._put(item)

    def _begin(self, footprints: Sequence[Footprint]) -> None:
        """Begin anew: column by column, for there may be a hundred thousand."""
        self._footprints = {item.key: item for item in footprints if item.amounts}
        self._node_of = {item.uid: item.node for item in self._footprints.values()}
        taking = tuple(self._footprints.values())
        for node in {item.node for item in taking}:
            self._row_for(node)
        rows = self._node_rows.rows_of([item.node for item in taking])
        self._used = Table(len(self._pods))
        for resource, takers, numbers in _by_resource([item.amounts for item in taking]):
            self._used.add_all(rows[takers], resource, numbers)
        self._pods = np.bincount(rows, minlength=len(self._pods)).astype(np.int64)
        self._tidy(*self._node_rows)

    def _put_node(self, node: Node) -> None:
        has = _counted(node.allocatable)
        if self._nodes.get(node.name) == has:
            return
        row = self._row_for(node.name)
        self._allocatable.add(row, self._nodes.get(node.name, ()), -1)
        self._allocatable.add(row, has, 1)
        self._nodes[node.name] = has
        self.version += 1

    def _drop_node(self, name: NodeName) -> None:
        has = self._nodes.pop(name, None)
        if has is not None:
            self._allocatable.add(self._row_for(name), has, -1)
            self.version += 1
            self._tidy(name)

    def _row_for(self, node: NodeName) -> int:
        row = self._node_rows.row_for(node)
        if row >= len(self._pods):
            self._pods = np.append(self._pods, np.zeros_like(self._pods))
            self._allocatable.grow(len(self._pods))
            self._used.grow(len(self._pods))
        return row

    def _tidy(self, *nodes: NodeName) -> None:
        """Take back the rows of nodes that are not known, and have no pods any more."""
        for node in nodes:
            row = self._node_rows.get(node)
            if row is not None and not self._pods[row] and node not in self._nodes:
                self._node_rows.take_back(node)


@lru_cache(maxsize=1024)
def _counted(allocatable: tuple[tuple[str, Quantity], ...]) -> Amounts:
    """Count what a node has: one value serves all nodes of a kind."""
    return tuple((name, amount(name, quantity)) for name, quantity in allocatable)


def _by_resource(taking: Sequence[Amounts]) -> Iterator[tuple[str, Numbers, Numbers]]:
    """Yield each resource with who takes of it, int64[takers], and how much. Those who take alike are read once."""
    kinds = {id(amounts): amounts for amounts in taking}
    place = {kind: number for number, kind in enumerate(kinds)}
    codes = np.fromiter((place[id(amounts)] for amounts in taking), np.int64, len(taking))
    # Who takes alike stands side by side in *order*.
    order, counts = np.argsort(codes, kind="stable"), np.bincount(codes, minlength=len(kinds))
    ends, found = np.cumsum(counts), defaultdict[str, list[tuple[int, int]]](list)
    for kind, amounts in enumerate(kinds.values()):
        for resource, number in amounts:
            found[resource].append((kind, number))
    for resource in sorted(found):
        of, numbers = np.array(found[resource], np.int64).T
        takers = counts[of]
        places = np.arange(takers.sum()) + np.repeat(ends[of] - np.cumsum(takers), takers)
        yield resource, order[places], np.repeat(numbers, takers)
