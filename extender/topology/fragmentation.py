"""What is left of shared devices, and what typical pods could still do with it.

F is that of FGD (Weng et al., USENIX ATC '23): for a typical pod, all that is free on a node counts as fragments where
the pod does not fit, otherwise what is free on the devices that have too little for it. What a node is *worth* is the
rest, what is usable; a good place is one whose worth falls least beyond what is taken.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.topology.quality import ONE
from extender.topology.typical import PodAsk, Typical

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
# Rows that are looked at together, for the sake of memory.
TOGETHER: Final = 512
# More than any node has.
ENDLESS: Final = 1 << 62


class Rows(NamedTuple):
    """States of nodes: cpu, memory, model: int64[rows]; free: int64[rows, devices], 0 where a node has fewer."""

    cpu: Integers
    memory: Integers
    free: Integers
    model: Integers

    def at(self, which: Integers) -> "Rows":
        """Return the rows of *which*: int64[some]."""
        return Rows(*(column[which] for column in self))

    def fitting(self, ask: PodAsk) -> Flags:
        """Return where *ask* fits: bool[rows]."""
        enough: Flags = (self.cpu >= ask.cpu) & (self.memory >= ask.memory)
        if not ask.devices:
            return enough
        is_roomy: Flags = (self.free >= ask.amount).sum(axis=1) >= ask.devices
        allowed = ask.on(int(self.model.max(initial=0)) + 1)
        return enough & is_roomy & allowed[self.model]


class _Shapes(NamedTuple):
    """Typical asks regardless of models, for which prices stand: each column int64[shapes]."""

    cpu: Integers
    memory: Integers
    amount: Integers
    devices: Integers


class _Uses(NamedTuple):
    """Which ask can use which model, and of what shape it is, all by number: each column int64[uses]."""

    ask: Integers
    model: Integers
    shape: Integers


class Measure:
    """The worth of nodes to typical pods; *whole*: all nodes as they are when empty.

    A typical pod counts by how little of the whole fleet could ever serve it.
    """

    # What counts that a pod could use now, and the part of that for which CPU and memory last, were the node filled.
    usable, lasting = 2, 1

    def __init__(self, typical: Typical, whole: Rows) -> None:
        self.typical = typical
        shapes = sorted({ask[:4] for ask, _ in typical.served})
        self._shapes = _Shapes(*np.array(shapes, dtype=np.int64).reshape(-1, 4).T)
        self._number = {shape: number for number, shape in enumerate(shapes)}
        self._price, self._unit = self._prices(whole)

    @property
    def models(self) -> int:
        """How many models have a price."""
        return len(self._price)

    def worth(self, rows: Rows) -> Integers:
        """Return what each row is worth, in a unit of our own: int64[rows]."""
        fits, usable = self._counted(rows.free)
        return self._priced(rows, fits.sum(axis=1)[:, None], usable.sum(axis=1)[:, None])[:, 0]

    @property
    def unit(self) -> int:
        """What a unit that everybody can use is worth."""
        return self._unit * (self.usable + self.lasting)

    def after(self, rows: Rows, ask: PodAsk) -> Integers:
        """Return what rows are worth after *ask*: int64[rows, places].

        free is in ascending order; place p stands for the devices from number p on. Only those with enough mean
        anything.
        """
        parts = range(0, len(rows.cpu), TOGETHER)
        found = [self._after(Rows(*(column[part : part + TOGETHER] for column in rows)), ask) for part in parts]
        return np.concatenate(found) if found else np.zeros((0, 1), dtype=np.int64)

    def gain(self, change: Integers, ask: PodAsk) -> Integers:
        """Return by how much fragments shrink where *ask* changes the worth like that: int64, of its shape."""
        return (change + ask.total * self.unit) // self.unit

    def _after(self, rows: Rows, ask: PodAsk) -> Integers:
        before, then = self._counted(rows.free), self._counted(rows.free - ask.amount)
        places = rows.free.shape[1] - ask.devices + 1 if ask.devices else 1
        fits, usable = (
            old.sum(axis=1)[:, None] + sum((new - old)[:, first : first + places] for first in range(ask.devices))
            for old, new in zip(before, then, strict=True)
        )
        return self._priced(rows._replace(cpu=rows.cpu - ask.cpu, memory=rows.memory - ask.memory), fits, usable)

    def _counted(self, free: Integers) -> tuple[Integers, Integers]:
        """Return whether a device has enough for a shape, and how much then: int64[rows, devices, shapes]."""
        fits = (free[:, :, None] >= self._shapes.amount).astype(np.int64)
        return fits, fits * free[:, :, None]

    def _priced(self, rows: Rows, fits: Integers, usable: Integers) -> Integers:
        """Return int64[rows, places]; fits, usable: int64[rows, places, shapes]."""
        worth = self._used(rows, fits, usable) * self._price[rows.model][:, None]
        return np.asarray(worth.sum(axis=2), dtype=np.int64)

    def _used(self, rows: Rows, fits: Integers, usable: Integers) -> Integers:
        """Return what each shape could use, counted: int64[rows, places, shapes]."""
        cpu, memory = rows.cpu[:, None], rows.memory[:, None]
        is_enough = (cpu >= self._shapes.cpu) & (memory >= self._shapes.memory)
        usable = usable * (is_enough[:, None] & (fits >= self._shapes.devices))
        lasting = np.minimum(self._lasting(cpu, self._shapes.cpu), self._lasting(memory, self._shapes.memory))
        used = usable * self.usable + np.minimum(usable, lasting[:, None]) * self.lasting
        return np.asarray(used, dtype=np.int64)

    def _lasting(self, left: Integers, needed: Integers) -> Integers:
        """Return for how much of devices *left* is enough: int64[rows, shapes]."""
        enough = left * (self._shapes.amount * self._shapes.devices) // np.maximum(needed, 1)
        return np.asarray(np.where(needed > 0, enough, ENDLESS), dtype=np.int64)

    def _prices(self, whole: Rows) -> tuple[Integers, int]:
        """Return what a unit that a shape can use counts on each model, int64[models, shapes], and to all together."""
        models = int(whole.model.max(initial=0)) + 1
        uses = self._uses(models)
        weights, unit = self._weights(whole, uses, models)
        price = np.zeros((models, len(self._number)), dtype=np.int64)
        np.add.at(price, (uses.model, uses.shape), np.array(weights, dtype=np.int64)[uses.ask])
        return price, unit

    def _uses(self, models: int) -> _Uses:
        """Return what the typical asks can use of so many models."""
        served = self.typical.served
        found = [ask.numbers(models) for ask, _ in served]
        number = np.repeat(np.arange(len(served)), [len(some) for some in found])
        shape = np.array([self._number[ask[:4]] for ask, _ in served], dtype=np.int64)
        return _Uses(number, np.concatenate([*found, number[:0]]), shape[number])

    def _weights(self, whole: Rows, uses: _Uses, models: int) -> tuple[list[int], int]:
        """Return weights by which an ask's part in the worth of the empty fleet is how often it is met, and a unit."""
        served, reached = self.typical.served, np.zeros(len(self.typical.served), dtype=np.int64)
        np.add.at(reached, uses.ask, self._supply(whole, models)[uses.model, uses.shape])
        often = sum(weight for _, weight in served)
        every = ONE * (self.usable + self.lasting) * int(whole.free.sum())
        pairs = zip(served, reached.tolist(), strict=True)
        return [weight * every // (often * most) if most else 0 for (_, weight), most in pairs], ONE

    def _supply(self, whole: Rows, models: int) -> Integers:
        """Return what each shape could use of each model if all were empty: int64[models, shapes]."""
        supply = np.zeros((models, len(self._number)), dtype=np.int64)
        fits, usable = self._counted(whole.free)
        used = self._used(whole, fits.sum(axis=1)[:, None], usable.sum(axis=1)[:, None])[:, 0]
        np.add.at(supply, whole.model, used)
        return supply
