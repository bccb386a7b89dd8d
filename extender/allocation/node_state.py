"""The state of a node, as far as a question can tell: two nodes in one state have the same answer."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.allocation.added import Taints
from extender.allocation.cells import SHAREABLE, TRAITS
from extender.allocation.columns import Codes, Column, Dictionary, are_same
from extender.allocation.eligibility import NODE_OPERATIONS
from extender.allocation.grid import Grid
from extender.allocation.inventory import Inventory
from extender.allocation.matches import Matches
from extender.allocation.plain import path_of
from extender.allocation.projection import project
from extender.allocation.question import Question
from extender.allocation.selectors import read_by
from extender.allocation.snapshot import Snapshot
from extender.model.device import NodeSelection
from extender.model.names import PoolKey

# States that one question remembers, and kinds of devices that it tells apart before it begins anew.
MEMORY = 1 << 17
KINDS = 1 << 17
# What one of either takes: bytes.
STATE_SIZE, KIND_SIZE = 170, 220
# What a kind takes for each further ask.
FLAGS_SIZE = 8
AnyColumn = Column[Any]
Rows = NDArray[Any]
# A state in so many bytes, whatever the node sees: long enough that no two states have one name by chance.
NAME = 16
# Flags of a match as one code.
EIGHT: Dictionary[int] = Dictionary([None, 1, 2, 3, 4, 5, 6, 7])


class Found(NamedTuple):
    """What a search found out: a verdict, and the number of the reason."""

    verdict: int
    reason: int


# Thousands of states have one of a few answers.
_shared = lru_cache(maxsize=1024)(Found)


@dataclass(slots=True, weakref_slot=True, eq=False)
class States:
    """Names the states of nodes for one question, and remembers what was found out about each.

    Names mean the same as long as the *dictionaries* of the columns are the same: numbers are only ever added.
    """

    question: Question
    dictionaries: tuple[object, ...] = ()
    known: dict[Hashable, Found] = field(default_factory=dict)
    # What these were found good for last.
    _seen: tuple[object, object] = (None, None)
    _kinds: dict[tuple[int, ...], int] = field(default_factory=dict)
    _taints: dict[Taints, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """About how many bytes these take."""
        asks = len(set(self.question.alike.values()))
        return STATE_SIZE * len(self.known) + (KIND_SIZE + FLAGS_SIZE * max(0, asks - 1)) * len(self._kinds)

    def remember(self, state: Hashable, found: Found) -> None:
        if len(self.known) >= MEMORY:
            self.known.clear()
        self.known[state] = _shared(*found)

    def continued(self, snapshot: Snapshot) -> "States":
        """Return these states if they are good for *snapshot* too, new ones otherwise. Who uses these may go on."""
        is_seen = self._seen[0] is snapshot.inventory and self._seen[1] is snapshot.usage.dictionary
        if is_seen and max(len(self._kinds), len(self._taints)) < KINDS:
            return self
        columns = (*_published(self.question, snapshot.inventory), snapshot.usage, snapshot.inventory.standing)
        dictionaries = tuple(column.dictionary for column in columns)
        if are_same(dictionaries, self.dictionaries) and max(len(self._kinds), len(self._taints)) < KINDS:
            self._seen = snapshot.inventory, snapshot.usage.dictionary
            return self
        return States(self.question, dictionaries, _seen=(snapshot.inventory, snapshot.usage.dictionary))

    def kinds(self, columns: Sequence[AnyColumn], added: Column[Taints]) -> Codes:
        """Give each row the number of everything that can be seen of it, in *columns* and of what is *added*."""
        seen: list[AnyColumn] = [*columns, added]
        projection = project(seen, len(added))
        codes = [column.codes[projection.first].tolist() for column in seen]
        # What rules add is encoded anew each time: only the taints themselves mean the same.
        codes[-1] = [
            0 if taints is None else self._taint(taints)
            for taints in map(added.dictionary.values.__getitem__, codes[-1])
        ]
        numbers = [self._kinds.setdefault(kind, len(self._kinds) + 1) for kind in zip(*codes, strict=True)]
        return np.array(numbers, np.int32)[projection.codes]

    def _taint(self, taints: Taints) -> int:
        return self._taints.setdefault(taints, len(self._taints) + 1)


class Naming:
    """Names the states of the nodes of one snapshot, each by itself: whatever else it is asked together with.

    It tells of all devices that a node sees, also of those that the question cannot be given: what is left whole
    beside a choice counts; what draws from counters may keep another device from being given; and the reason counts
    what passes the tests, though a gate keeps it back. What can be given alone would make names for verdicts at most.
    """

    def __init__(self, states: States, snapshot: Snapshot, matches: Matches, added: Column[Taints]) -> None:
        self._states, self._snapshot, self._matches, self._added = states, snapshot, matches, added
        self._pools: dict[PoolKey, bytes] = {}
        self._seen: dict[int, bytes] = {}

    def of(self, grid: Grid) -> Iterator[bytes]:
        """Name the state of each node of *grid*."""
        if not len(grid.nodes):
            return
        snapshot = self._snapshot
        there = grid.rows >= 0
        kinds = np.zeros(grid.rows.shape, np.int32)
        kinds[there] = self._kinds(grid.rows[there])
        standing = grid.of_slices(snapshot.inventory.standing.codes)
        views = snapshot.reach.view[grid.nodes].tolist()
        parts = zip(
            grid.nodes.tolist(), views, _strings(kinds, grid.rows), _strings(standing, grid.slices), strict=True
        )
        for node, view, rows, slices in parts:
            declares = NODE_OPERATIONS in snapshot.nodes[snapshot.layout.nodes[node]].declared_features
            yield _name((bytes([declares]), rows, slices, *(self._shared(node, view) if view else ())))

    def _kinds(self, rows: Rows) -> Codes:
        columns = [*_published(self._states.question, self._snapshot.inventory), self._snapshot.usage, self._added]
        *narrowed, added = [Column(column.codes[rows], column.dictionary) for column in columns]
        return self._states.kinds([*narrowed, *_flags(self._matches, rows)], added)

    def _shared(self, node: int, view: int) -> Iterator[bytes]:
        """Describe the shared pools that a node sees, and where they come among what it has to itself."""
        if view not in self._seen:
            self._seen[view] = _name(part for key in self._keys(view) for part in self._viewed(key, view))
        yield self._seen[view]
        starts = [self._indices(key).start for key in self._keys(view)]
        yield np.searchsorted(self._snapshot.layout.local_slices(node), starts).astype(np.int32).tobytes()

    def _keys(self, view: int) -> list[PoolKey]:
        return sorted(self._snapshot.reach.pools[view])

    def _indices(self, key: PoolKey) -> range:
        return self._snapshot.inventory.pool(key.driver, key.pool)

    def _viewed(self, key: PoolKey, view: int) -> Iterator[bytes]:
        """Describe a pool, and which of its slices or devices are seen with *view*."""
        if key not in self._pools:
            self._pools[key] = _name(self._content(key))
        yield self._pools[key]
        yield self._snapshot.reach.parts(key, view).tobytes()

    def _content(self, key: PoolKey) -> Iterator[bytes]:
        inventory, indices = self._snapshot.inventory, self._indices(key)
        rows = np.arange(inventory.starts[indices.start], inventory.starts[indices.stop])
        yield "/".join(key).encode()
        yield self._kinds(rows).tobytes()
        yield inventory.standing.codes[indices.start : indices.stop].tobytes()
        yield bytes(_writing(inventory.slices[index].selection) for index in indices)


def _writing(selection: NodeSelection | None) -> int:
    """Tell how devices of a slice can be written down: for one node, or by so many terms, more than one or not."""
    if selection is None or selection.node_name is not None:
        return int(selection is None)
    return 2 + (len(selection.terms) > 1)


def _name(parts: Iterable[bytes]) -> bytes:
    digest = blake2b(digest_size=NAME)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.digest()


def _strings(codes: NDArray[np.int32], places: NDArray[np.int32]) -> Iterator[bytes]:
    """Cut a matrix into its rows, each as long as its node has *places*."""
    lengths = (places >= 0).sum(axis=1).tolist()
    width = codes.shape[1] * codes.itemsize
    text = codes.tobytes()
    for index, length in enumerate(lengths):
        start = index * width
        yield text[start : start + length * codes.itemsize]


def _published(question: Question, inventory: Inventory) -> list[AnyColumn]:
    """Return the columns that decide beside which devices match each ask."""
    paths = {TRAITS, SHAREABLE, *(path for path in inventory.columns if path[0] == "capacity")}
    for part in question.claims:
        paths |= {path_of(rule.attribute) for rule in part.rules}
        for program in (item.program for slot in part.slots for ask in slot.asks for item in ask.derivations):
            if program is not None:
                paths |= read_by(program, inventory)
    return [inventory.columns[path] for path in sorted(paths) if path in inventory.columns]


def _flags(matches: Matches, rows: Rows) -> Iterator[AnyColumn]:
    """Make columns of what matches the asks among some *rows*: their codes mean the same for ever."""
    for match in matches.each:
        codes = match.matching[rows] + 2 * match.usable[rows].astype(np.int32) + 4 * match.errs[rows]
        yield Column(codes, EIGHT)
