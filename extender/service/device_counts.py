"""Devices counted by driver and class, for metrics: in pieces, and beside all else.

A class may have been made to take minutes on all devices. Nobody waits for that: whoever asks is told what was counted
last, and has what has changed since counted anew.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final
from weakref import ref

import numpy as np

from extender.allocation.cells import DRIVER
from extender.allocation.distinct import distinct
from extender.allocation.grid import Flags
from extender.allocation.inventory import Inventory
from extender.allocation.members import Members
from extender.allocation.snapshot import Snapshot
from extender.allocation.spent import Draws, drawing
from extender.allocation.work import Work
from extender.model.names import ClassName
from extender.state.belief import Belief
from extender.telemetry import keys
from extender.telemetry.scraped import DeviceCount
from extender.web.exposition import SHARE

LOG: Final = logging.getLogger(__name__)
# Pieces of one class, each of half a millisecond or one evaluation, before the next class has its turn.
TURN: Final = 1000
# What the selectors of all classes remember together, in bytes; the largest are forgotten first.
MEMORY: Final = 1 << 26


@dataclass(slots=True)
class Class:
    """What is known of a class: which devices it selects of an inventory, their counts, and *work* to know it anew."""

    name: ClassName
    members: Members
    counts: Sequence[DeviceCount]
    chosen: Flags | None = None
    work: Work[None] | None = None
    # Not kept by this: it is large, and nobody may ask any more.
    inventory: Callable[[], Inventory | None] = lambda: None

    def count(self, snapshot: Snapshot, spent: Flags | None) -> None:
        """Count the devices of *snapshot*, where it is known which of them these are, and which are *spent*."""
        if self.chosen is not None and spent is not None and self.inventory() is snapshot.inventory:
            self.counts = tuple(_counted(self.name, self.chosen, spent, snapshot))


@dataclass(slots=True)
class DeviceCounts:
    """Counts devices while *run* runs, as often as somebody asks for it, and no longer than a share of the time."""

    belief: Belief
    now: Callable[[], float]
    _classes: dict[ClassName, Class] = field(default_factory=dict)
    _draws: tuple[Callable[[], Inventory | None], Draws] | None = None
    _asked: asyncio.Event = field(default_factory=asyncio.Event)

    def counts(self) -> Sequence[DeviceCount]:
        """Tell what is known: which devices a class selects as of the last look, which of these are used as of now."""
        self._asked.set()
        snapshot = self.belief.cluster.snapshot
        known = [self._classes[name] for name in snapshot.classes if name in self._classes]
        spent = self._spent(snapshot)
        for each in known:
            each.count(snapshot, spent)
        return [count for each in known for count in each.counts]

    async def run(self) -> None:
        """Count what has changed, each time that somebody has asked, for ever."""
        while True:
            under_way = [each for each in self._classes.values() if each.work is not None]
            if not under_way:
                await self._asked.wait()
            if self._asked.is_set():
                self._asked.clear()
                self._look()
            for each in under_way:
                await self._turn(each)

    def _look(self) -> None:
        """Begin with what has changed. What is under way goes on as it was begun: otherwise it might never end."""
        snapshot, before = self.belief.cluster.snapshot, self._classes
        self._classes = {}
        for name, item in snapshot.classes.items():
            known = before.get(name)
            if known is None or known.members.selectors != item.selectors:
                known = Class(name, Members(item.selectors), known.counts if known else ())
            if known.work is None and known.inventory() is not snapshot.inventory:
                known.work = self._worked(known)
            self._classes[name] = known

    def _worked(self, known: Class) -> Work[None]:
        snapshot = self.belief.cluster.snapshot
        chosen = yield from known.members.among(snapshot.inventory)
        spent = self._spent(snapshot)
        if spent is None:
            draws = yield from drawing(snapshot.inventory)
            spent = draws.spent(snapshot.usage.codes != 0)
            # Others may have gone on with what has been published since.
            if self.belief.cluster.snapshot.inventory is snapshot.inventory or self._draws is None:
                self._draws = ref(snapshot.inventory), draws
        known.chosen, known.inventory = chosen & _newest(snapshot.inventory), ref(snapshot.inventory)
        known.count(snapshot, spent)
        known.work = None
        while sum(each.members.size for each in self._classes.values()) > MEMORY:
            max(self._classes.values(), key=lambda each: each.members.size).members.forget()

    def _spent(self, snapshot: Snapshot) -> Flags | None:
        """Tell which devices are free in vain: bool[rows]; None where it is not known what devices draw."""
        if self._draws is None or self._draws[0]() is not snapshot.inventory:
            return None
        return self._draws[1].spent(snapshot.usage.codes != 0)

    async def _turn(self, known: Class) -> None:
        for _ in range(TURN):
            if known.work is None:
                return
            started = self.now()
            try:
                next(known.work, None)
            except Exception:
                # Whatever went wrong with one class, the others are counted; it is again when devices change.
                LOG.exception("counting a class failed", extra={keys.DEVICE_CLASS: known.name})
                known.counts, known.chosen, known.work = (), None, None
                known.inventory = ref(self.belief.cluster.snapshot.inventory)
            await asyncio.sleep((self.now() - started) * (1 / SHARE - 1))


def _newest(inventory: Inventory) -> Flags:
    """Leave out what a driver has published anew and not taken down yet: bool[rows]. It would be counted twice."""
    standing = inventory.standing
    ages = standing.table(lambda item: item.age)[standing.codes]
    return np.repeat(ages == 0, np.diff(inventory.starts))


def _counted(name: ClassName, chosen: Flags, spent: Flags, snapshot: Snapshot) -> Iterator[DeviceCount]:
    """Count the *chosen* devices by driver, used, free, and *spent*: bool[rows]."""
    used = snapshot.usage.codes != 0
    drivers = snapshot.inventory.column(DRIVER)
    for code in distinct(drivers.codes[chosen]).tolist():
        of_driver = chosen & (drivers.codes == code)
        busy = int(np.count_nonzero(of_driver & used))
        blocked = int(np.count_nonzero(of_driver & spent))
        free = int(np.count_nonzero(of_driver)) - busy - blocked
        yield DeviceCount(str(drivers.dictionary.values[code]), name, free, busy, blocked)
