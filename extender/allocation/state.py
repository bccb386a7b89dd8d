"""The state of a node, as far as a question can tell: two nodes in one state have the same answer."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from extender.allocation.added import Taints
from extender.allocation.columns import Codes, Column, Dictionary
from extender.allocation.eligibility import NODE_OPERATIONS
from extender.allocation.grid import Grid
from extender.allocation.inventory import SHAREABLE, TRAITS, Inventory
from extender.allocation.offer import Offers
from extender.allocation.plain import path_of
from extender.allocation.projection import project
from extender.allocation.question import Question
from extender.allocation.snapshot import Snapshot
from extender.model.names import PoolKey

# States that one question remembers.
MEMORY = 1 << 17
AnyColumn = Column[Any]
# Flags of an offer as one code.
EIGHT: Dictionary[int] = Dictionary([None, 1, 2, 3, 4, 5, 6, 7])


class Found(NamedTuple):
    """What a search found out: a verdict, and the number of the reason."""

    verdict: int
    reason: int


@dataclass(slots=True)
class States:
    """Names the states of nodes for one question, and remembers what was found out about each."""

    question: Question
    known: dict[Hashable, Found] = field(default_factory=dict)
    _kinds: dict[tuple[int, ...], int] = field(default_factory=dict)
    _dictionaries: list[object] = field(default_factory=list)

    def remember(self, state: Hashable, found: Found) -> None:
        if len(self.known) >= MEMORY:
            self.known.clear()
        self.known[state] = found

    def of(self, snapshot: Snapshot, grid: Grid, offers: Offers, added: Column[Taints]) -> Iterator[Hashable]:
        """Name the state of each node of *grid*."""
        if not len(grid.nodes):
            return
        kinds = self._kinds_of_rows(snapshot, offers, added)
        standing = np.append(snapshot.inventory.standing.codes, 0)[grid.slices]
        local = np.ascontiguousarray(np.hstack((grid.of_rows(kinds), standing), dtype=np.int32))
        views = snapshot.reach.view[grid.nodes].tolist()
        seen = {view: self._seen(snapshot, view, kinds) for view in set(views)}
        for node, view, row in zip(grid.nodes.tolist(), views, local, strict=True):
            features = snapshot.nodes[snapshot.layout.nodes[node]].declared_features
            yield NODE_OPERATIONS in features, row.tobytes(), seen[view]

    def _seen(self, snapshot: Snapshot, view: int, kinds: Codes) -> Hashable:
        """Describe the shared pools that are seen in one way: which, what of them, and their own state."""
        reach = snapshot.reach
        return reach.seen[view], tuple(_pool(snapshot.inventory, key, kinds) for key in reach.pools[view])

    def _kinds_of_rows(self, snapshot: Snapshot, offers: Offers, added: Column[Taints]) -> Codes:
        """Give each row the number of everything that can be seen of it; numbers last as long as the dictionaries."""
        columns = [*_published(self.question, snapshot.inventory), snapshot.usage, added]
        dictionaries: list[object] = [column.dictionary for column in columns[:-1]]
        dictionaries.append(snapshot.rules or None)
        if not _are_same(dictionaries, self._dictionaries):
            self.known.clear()
            self._kinds.clear()
            self._dictionaries = dictionaries
        columns += _flags(offers)
        projection = project(columns, snapshot.inventory.rows)
        combinations = zip(*(column.codes[projection.first].tolist() for column in columns), strict=True)
        numbers = [self._kinds.setdefault(codes, len(self._kinds) + 1) for codes in combinations]
        return np.array(numbers, np.int32)[projection.codes]


def _published(question: Question, inventory: Inventory) -> list[AnyColumn]:
    """Return the columns that decide beside what each ask is offered."""
    paths = {TRAITS, SHAREABLE, *(path for path in inventory.columns if path[0] == "capacity")}
    for part in question.claims:
        paths |= {path_of(rule.attribute) for rule in part.rules}
        for program in (item.program for slot in part.slots for ask in slot.asks for item in ask.derivations):
            if program is not None:
                paths |= inventory.columns.keys() if program.reads is None else program.reads
    return [inventory.columns[path] for path in sorted(paths) if path in inventory.columns]


def _flags(offers: Offers) -> Iterator[AnyColumn]:
    """Make columns of what the asks are offered: their codes mean the same for ever."""
    for offer in offers.of.values():
        codes = offer.matching.astype(np.int32) + 2 * offer.usable + 4 * offer.errs
        yield Column(codes, EIGHT)


def _pool(inventory: Inventory, key: PoolKey, kinds: Codes) -> Hashable:
    indices = inventory.pool(key.driver, key.pool)
    first, last = int(inventory.starts[indices.start]), int(inventory.starts[indices.stop])
    codes = inventory.standing.codes[indices.start : indices.stop]
    return key, kinds[first:last].tobytes(), codes.tobytes()


def _are_same(left: list[object], right: list[object]) -> bool:
    return len(left) == len(right) and all(one is other for one, other in zip(left, right, strict=True))
