"""The nodes of a fleet that shares devices, and where on them a pod does the least damage."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from extender.topology.fragmentation import Integers, Measure, Rows
from extender.topology.memo import Memo
from extender.topology.typical import PodAsk

# Kinds of pods for which all nodes are remembered.
KINDS: Final = 1 << 10
# Where a pod does not fit.
NOWHERE: Final = np.iinfo(np.int64).min
# So many rows are worth a look at which are the same.
MANY: Final = 16


class Spot(NamedTuple):
    """A row of the fleet, the places of the devices there, and by how much fragments shrink."""

    row: int
    devices: tuple[int, ...]
    gain: int


class Fleet:
    """Nodes in the order of their names, as columns that change; whoever looks can tell what changed since."""

    def __init__(self, rows: Rows) -> None:
        self.rows = Rows(*(column.copy() for column in rows))
        self.clock = 0
        self._changed = np.zeros(len(rows.cpu), dtype=np.int64)

    def since(self, clock: int) -> Integers:
        """Return the rows that changed after *clock*, or all if it is before everything: int64[some]."""
        return np.flatnonzero(self._changed > clock)

    def set(self, row: int, cpu: int, memory: int, free: Integers) -> None:
        """Say what is free on a node now; free: int64[devices]."""
        self.rows.cpu[row], self.rows.memory[row], self.rows.free[row] = cpu, memory, free
        self.clock += 1
        self._changed[row] = self.clock


@dataclass(slots=True)
class _View:
    """All nodes to one kind of pod: gain, place: int64[nodes], up to date with the fleet's clock at *seen*."""

    gain: Integers
    place: Integers
    seen: int = -1


class Placer:
    """Finds the best places of a fleet by a measure; only nodes that changed are looked at again."""

    def __init__(self, fleet: Fleet, measure: Measure) -> None:
        self.fleet = fleet
        self.measure = measure
        self._views: Memo[PodAsk, _View] = Memo(KINDS)

    def follow(self, measure: Measure) -> None:
        """Use another measure from now on."""
        self.measure = measure
        self._views.clear()

    def gains(self, ask: PodAsk) -> Integers:
        """Return the gain of each node at its best devices, NOWHERE where *ask* does not fit: int64[nodes]."""
        return self._view(ask).gain.copy()

    def spot(self, ask: PodAsk, row: int) -> Spot | None:
        """Return the best devices of a node, None where *ask* does not fit."""
        view = self._view(ask)
        if view.gain[row] == NOWHERE:
            return None
        fullest, place = np.argsort(self.fleet.rows.free[row], kind="stable"), int(view.place[row])
        return Spot(row, tuple(fullest[place : place + ask.devices].tolist()), int(view.gain[row]))

    def _view(self, ask: PodAsk) -> _View:
        view = self._views.get(ask)
        if view is None:
            nodes = len(self.fleet.rows.cpu)
            view = self._views[ask] = _View(np.full(nodes, NOWHERE), np.zeros(nodes, dtype=np.int64))
        if view.seen < self.fleet.clock:
            self._renew(view, ask, self.fleet.since(view.seen))
            view.seen = self.fleet.clock
        return view

    def _renew(self, view: _View, ask: PodAsk, changed: Integers) -> None:
        rows = self.fleet.rows.at(changed)
        fitting = rows.fitting(ask)
        view.gain[changed[~fitting]] = NOWHERE
        if not fitting.any():
            return
        kinds, kind = _distinct(_tightest_first(rows.at(np.flatnonzero(fitting))))
        gains = self._gains(kinds, ask)
        # Of equal places the first, which has the least free.
        place = gains.argmax(axis=1)
        view.gain[changed[fitting]], view.place[changed[fitting]] = gains.max(axis=1)[kind], place[kind]

    def _gains(self, rows: Rows, ask: PodAsk) -> Integers:
        """Return the gain at each place of each row, NOWHERE where there is not enough: int64[rows, places]."""
        change = self.measure.after(rows, ask) - self.measure.worth(rows)[:, None]
        gains = self.measure.gain(change, ask)
        gains[rows.free[:, : gains.shape[1]] < ask.amount] = NOWHERE
        return gains


def _tightest_first(rows: Rows) -> Rows:
    return rows._replace(free=np.sort(rows.free, axis=1))


def _distinct(rows: Rows) -> tuple[Rows, Integers]:
    """Return the rows that differ, and which of them each row is: int64[rows]."""
    if len(rows.cpu) < MANY:
        return rows, np.arange(len(rows.cpu))
    table = np.column_stack(rows)
    keys = np.ascontiguousarray(table).view(np.dtype((np.void, table.itemsize * table.shape[1])))[:, 0]
    _, first, kind = np.unique(keys, return_index=True, return_inverse=True)
    return rows.at(first), kind
