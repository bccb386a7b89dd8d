"""Which devices nobody holds and nobody can have: counters that they share with others do not suffice any more."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from extender.allocation.counters import drawn_by
from extender.allocation.distinct import distinct
from extender.allocation.grid import Flags
from extender.allocation.inventory import Inventory
from extender.allocation.pools import CounterKey
from extender.allocation.work import Work
from extender.model.frozen import dataclass

Numbers = NDArray[np.int64]
# Amounts are added up as floats, in units: a byte in a terabyte counts, and what a float cannot tell does not.
UNIT: Final = 1_000_000_000
SLACK: Final = 1e-13
# Slices, or kinds of devices, that are gone through at a time.
PIECE: Final = 256


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """What the devices of an inventory draw, one after the other, and what there is of each counter.

    rows, places: int64[draws], the device and the counter; amounts: float64[draws]; have: float64[counters].
    """

    rows: Numbers
    places: Numbers
    amounts: NDArray[np.float64]
    have: NDArray[np.float64]

    def spent(self, used: Flags) -> Flags:
        """Tell which devices are free and cannot be had where those *used* are taken: bool[rows]."""
        found = np.zeros(len(used), np.bool_)
        active = used[self.rows]
        taken = np.bincount(self.places[active], self.amounts[active], len(self.have))
        left = self.have - taken + SLACK * self.have
        found[self.rows[self.amounts > left[self.places]]] = True
        return found & ~used


def drawing(inventory: Inventory) -> Work[Draws]:
    """Gather the draws of all devices piece by piece, by what is distinct among them."""
    column, numbers, drawn = inventory.traits, dict[CounterKey, int](), list[dict[CounterKey, int]]()
    for traits in column.dictionary.values:
        drawn.append(drawn_by(traits) if traits is not None else {})
        if len(drawn) % PIECE == 0:
            yield
    keys = [numbers.setdefault(key, len(numbers)) for item in drawn for key in item]
    amounts = np.array([amount / UNIT for item in drawn for amount in item.values()], np.float64)
    yield
    rows, at = _expanded([len(item) for item in drawn], column.codes.astype(np.int64))
    yield
    pools, declared, there_are = yield from _declared(inventory, numbers)
    yield
    drawn_from = np.repeat(pools, np.diff(inventory.starts))[rows] * len(numbers) + np.array(keys, np.int64)[at]
    # Of a counter that no pool declares there is nothing.
    counters = distinct(np.concatenate((declared, drawn_from)))
    have = np.zeros(len(counters))
    np.add.at(have, np.searchsorted(counters, declared), there_are)
    yield
    places = np.searchsorted(counters, drawn_from)
    return Draws(rows, places, amounts[at], have)


def _expanded(counts: Sequence[int], codes: Numbers) -> tuple[Numbers, Numbers]:
    """Repeat each row as often as its code counts; tell beside it which of all that are counted is meant."""
    count = np.array(counts, np.int64)
    first, count_of_row = np.cumsum(count) - count, count[codes]
    rows = np.repeat(np.arange(len(codes)), count_of_row)
    begins = np.cumsum(count_of_row) - count_of_row
    return rows, first[codes[rows]] + np.arange(len(rows)) - begins[rows]


def _declared(
    inventory: Inventory, numbers: dict[CounterKey, int]
) -> Work[tuple[Numbers, Numbers, NDArray[np.float64]]]:
    """Give each pool a number, slice by slice: int64[slices]; list what they declare of counters that are drawn from.

    That is the counter, by pool and number, and the amount: int64[declared], float64[declared].
    """
    pools: dict[object, int] = {}
    of_slice = np.zeros(len(inventory.slices), np.int64)
    counters, amounts = list[int](), list[float]()
    for index, item in enumerate(inventory.slices):
        pool = pools.setdefault((item.driver, item.pool, item.generation), len(pools))
        of_slice[index] = pool
        for shared in item.shared_counters:
            known = [(numbers.get((shared.name, counter.name)), counter.value) for counter in shared.counters]
            counters += [pool * len(numbers) + number for number, _ in known if number is not None]
            amounts += [value.nanos / UNIT for number, value in known if number is not None]
        if index % PIECE == 0:
            yield
    return of_slice, np.array(counters, np.int64), np.array(amounts, np.float64)
