"""The devices that pods share as a fleet, with the CPU and memory beside them, kept up to date; and what is typical."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np

from extender.allocation.distinct import distinct
from extender.allocation.passage import passage
from extender.allocation.snapshot import Snapshot
from extender.model.footprint import CPU
from extender.model.names import NodeName
from extender.state.loads import Loads
from extender.topology.configuration import Configuration
from extender.topology.fragmentation import Integers, Measure, Rows
from extender.topology.holdings import NOBODY, Holdings, holdings_of
from extender.topology.portions import WHOLE, Catalogue
from extender.topology.shared import PLENTY, Beside
from extender.topology.sharing import Fleet, Placer
from extender.topology.typical import NOTHING, Census, PodAsk, Typical

MEMORY: Final = "memory"
MIB: Final = 1 << 20
# Beyond so many models, those that no node has any more are forgotten once they are more than half of all.
MODELS: Final = 256
EMPTY: Final = Rows(*(np.zeros(shape, np.int64) for shape in (0, 0, (0, 1), 0)))
NONE: Final = Holdings(EMPTY.cpu, EMPTY.model, EMPTY.free, EMPTY.cpu, 0)


class Room(NamedTuple):
    """CPU in thousandths and memory in MiB of some nodes: int64[nodes] each."""

    cpu: Integers
    memory: Integers


class Commons:
    """The shared devices of a cluster, and what is asked of them. One writer.

    *placer* knows what each row of *holdings* is worth; *whole* is what they are when empty.
    """

    def __init__(self, loads: Loads) -> None:
        self._loads = loads
        self._begin(Configuration())

    def _begin(self, configuration: Configuration) -> None:
        """Forget everything: what numbers stand for is another matter from now on."""
        self.catalogue, self.holdings = Catalogue(configuration), NONE
        self.placer = Placer(Fleet(EMPTY), Measure(NOTHING, EMPTY))
        self._census, self._typical, self._expected = Census(), NOTHING, 0
        self.whole = EMPTY
        self._seen: tuple[Snapshot, tuple[int, bool]] | None = None

    def use(self, configuration: Configuration) -> None:
        """Tell models apart as *configuration* does."""
        if configuration != self.catalogue.configuration:
            self._begin(configuration)

    def look(self, snapshot: Snapshot) -> None:
        """Bring the fleet up to date; only rows that changed are set anew."""
        version, seen = (self._loads.version, self._loads.is_known), self._seen
        if seen and seen[0] is snapshot and seen[1] == version:
            return
        is_same = seen and seen[0].inventory is snapshot.inventory and seen[0].layout is snapshot.layout
        if not is_same:
            self._lay(self._holdings(snapshot))
        if len(self.holdings.node):
            way = passage(seen[0], snapshot) if seen else None
            # Where nodes are numbered anew, so are rows.
            self._renew(snapshot, None if way is None or way.origin is not None else way.changed)
        self._seen = snapshot, version

    def meet(self, asks: Iterable[PodAsk]) -> None:
        """Count a pod that asks for shares: it tells what is typical."""
        for ask in asks:
            typical = self._census.meet(ask)
            if typical:
                self._expect(typical)

    def best_of(self, found: Integers, lacking: int) -> Integers:
        """Return the best of each node's rows, *lacking* where there are none: int64[nodes]; found: int64[rows]."""
        best = np.full(self.holdings.nodes, lacking)
        np.maximum.at(best, self.holdings.node, found)
        return best

    def free_on(self, node: NodeName) -> Beside:
        """Return what is free on a node beside its devices, as far as it is known."""
        free = self._loads.free(node) or {}
        cpu, memory = free.get(CPU, PLENTY), free.get(MEMORY, PLENTY * MIB)
        return Beside(max(0, cpu), max(0, memory // MIB))

    def _holdings(self, snapshot: Snapshot) -> Holdings:
        """Find what there is to share. Asks have a bit for each model: those that are gone are forgotten."""
        found = holdings_of(snapshot, self.catalogue)
        there = distinct(found.model).tolist()
        if len(self.catalogue.devices) <= max(MODELS, 2 * len(there)):
            return found
        self.catalogue, numbers = self.catalogue.renumbered(there)
        self._expected = sum(number < self._expected for number in there)
        self._census.renumber(numbers)
        self._typical = self._typical.renumbered(numbers)
        # Rows that look alike are others now.
        self.holdings = NONE
        return holdings_of(snapshot, self.catalogue)

    def _lay(self, holdings: Holdings) -> None:
        """Begin another fleet where the rows are not what they were."""
        if not holdings.is_like(self.holdings):
            self.whole = EMPTY
        self.holdings = holdings
        fresh = {
            PodAsk(0, 0, WHOLE, 1, 1 << number): 1 for number in range(self._expected, len(self.catalogue.devices))
        }
        if not self._expected:
            self._census = Census(Typical.of(fresh))
        elif fresh:
            self.meet(fresh)
        self._typical = Typical.of(fresh | dict(self._typical.asks))
        self._expected = len(self.catalogue.devices)

    def _renew(self, snapshot: Snapshot, changed: Integers | None) -> None:
        """Set what is left of the devices of *changed* nodes, all if None, and what is free on any."""
        holdings, names = self.holdings, snapshot.layout.nodes
        whole, free = (Room(*(column[holdings.node] for column in room)) for room in self._rooms(names))
        devices = np.where(holdings.devices == NOBODY, 0, WHOLE)
        is_new = len(self.whole.cpu) != len(holdings.node)
        everything = np.arange(len(holdings.node))
        if is_new:
            left = holdings.left(snapshot.usage, everything, self.catalogue)
            self.whole = Rows(*whole, devices, holdings.model)
            self.placer = Placer(Fleet(Rows(*free, left, holdings.model)), Measure(self._typical, self.whole))
            return
        if not all(map(np.array_equal, whole, self.whole)):
            self.whole = Rows(*whole, devices, holdings.model)
            self._expect(self._typical)
        rows = everything if changed is None else holdings.rows_of(changed)
        self._set(rows, holdings.left(snapshot.usage, rows, self.catalogue), free)

    def _set(self, rows: Integers, left: Integers, free: Room) -> None:
        fleet = self.placer.fleet
        known = fleet.rows
        is_moved = (free.cpu != known.cpu) | (free.memory != known.memory)
        is_moved[rows] |= (left != known.free[rows]).any(axis=1)
        place = np.full(len(is_moved), -1)
        place[rows] = np.arange(len(rows))
        for row in np.flatnonzero(is_moved).tolist():
            devices = left[place[row]] if place[row] >= 0 else known.free[row].copy()
            fleet.set(row, int(free.cpu[row]), int(free.memory[row]), devices)

    def _rooms(self, names: tuple[NodeName, ...]) -> tuple[Room, Room]:
        """Return what nodes have, and what is free of it: plenty where nothing is known."""
        rows = self._loads.rows_of(names)
        has = [self._loads.allocatable(resource, rows) for resource in (CPU, MEMORY)]
        used = [self._loads.used(resource, rows) for resource in (CPU, MEMORY)]
        free = [
            np.where(all_of > 0, np.maximum(all_of - taken, 0), PLENTY * MIB)
            if self._loads.is_known
            else np.full(len(rows), PLENTY * MIB)
            for all_of, taken in zip(has, used, strict=True)
        ]
        whole = [np.where(all_of > 0, all_of, PLENTY * MIB) for all_of in has]
        return _room(*whole), _room(*free)

    def _expect(self, typical: Typical) -> None:
        self._typical = typical
        self.placer.follow(Measure(typical, self.whole))


def _room(cpu: Integers, memory: Integers) -> Room:
    return Room(np.minimum(cpu, PLENTY), np.minimum(memory // MIB, PLENTY))
