"""The published devices as columns: one row for each device, in the order of driver, pool, slice and position.

An inventory never changes: a changed slice makes another one, which shares every column that the change does not touch.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import field
from typing import Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from extender.allocation.cel import Path
from extender.allocation.cells import TRAITS, Columns, piles_of
from extender.allocation.columns import Column, blank, column_of
from extender.allocation.standing import Standing, standings
from extender.model.device import Device, ResourceSlice, Traits
from extender.model.frozen import dataclass
from extender.model.names import DeviceKey, DeviceName, DriverName, NodeName, PoolKey, PoolName

# Devices of which it is remembered where they are: those that are promised, written and shown meanwhile.
FOUND: Final = 4096
# Of a pool of so many slices it is remembered where all are, once more than so many of them were looked for.
LARGE: Final = 8
MANY: Final = 16


class SliceKey(NamedTuple):
    """Where a slice stands among the others."""

    driver: DriverName
    pool: PoolName
    name: str


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Inventory:
    """Slices sorted by their keys, and the columns of their devices. starts: int64[slices + 1], where each begins.

    home and standing have a value for each slice: the node that it is local to, if any, and what it means to its pool.
    """

    slices: tuple[ResourceSlice, ...]
    keys: tuple[SliceKey, ...]
    starts: NDArray[np.int64]
    home: Column[NodeName]
    standing: Column[Standing]
    columns: Columns
    _found: dict[DeviceKey, tuple[int, ...]] = field(default_factory=dict)
    _asked: dict[PoolKey, int] = field(default_factory=dict)
    _named: dict[PoolKey, dict[DeviceName, tuple[int, ...]]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return int(self.starts[-1])

    def column(self, path: Path) -> Column[Hashable]:
        """Return the column of *path*, a blank one where no device has a value."""
        return self.columns.get(path) or blank(self.rows)

    @property
    def traits(self) -> Column[Traits]:
        return cast("Column[Traits]", self.column(TRAITS))

    def slice_at(self, row: int) -> int:
        """Return the index of the slice that *row* is part of."""
        return int(np.searchsorted(self.starts, row, "right")) - 1

    def device(self, row: int) -> Device:
        index = self.slice_at(row)
        return self.slices[index].devices[row - int(self.starts[index])]

    def driver_at(self, row: int) -> DriverName:
        return self.keys[self.slice_at(row)].driver

    def key(self, row: int) -> DeviceKey:
        place = self.keys[self.slice_at(row)]
        return DeviceKey(place.driver, place.pool, self.device(row).name)

    def has_partitions(self, index: int) -> bool:
        """Tell whether devices of a slice draw from counters."""
        standing = self.standing.value(index)
        is_plain = standing is not None and standing.is_plain
        return not is_plain and any(device.traits.consumes_counters for device in self.slices[index].devices)

    def pool(self, driver: DriverName, name: PoolName) -> range:
        """Return the indices of the slices of a pool."""
        return _pool(self.keys, driver, name)

    def has_driver(self, driver: str) -> bool:
        """Tell whether *driver* publishes anything."""
        first = bisect_left(self.keys, (driver,))
        return first < len(self.keys) and self.keys[first].driver == driver

    def rows_of(self, device: DeviceKey) -> tuple[int, ...]:
        """Return the rows of *device*: none where it is not published, several where a pool repeats a name."""
        known = self._found.get(device)
        if known is None:
            if len(self._found) >= FOUND:
                self._found.clear()
            known = self._found[device] = self._rows_of(device)
        return known

    def newest(self, device: DeviceKey) -> Device | None:
        """Return what the newest generation says of *device*."""
        rows = self.rows_of(device)
        if len(rows) > 1:
            rows = (max(rows, key=lambda row: self.slices[self.slice_at(row)].generation),)
        return self.device(rows[0]) if rows else None

    def _rows_of(self, device: DeviceKey) -> tuple[int, ...]:
        indices, key = self.pool(device.driver, device.pool), device.pool_key
        if len(indices) >= LARGE and key not in self._named:
            self._asked[key] = self._asked.get(key, 0) + 1
            if self._asked[key] > MANY:
                self._named[key] = self._all_named(indices)
        if key in self._named:
            return self._named[key].get(device.device, ())
        return tuple(
            int(self.starts[index]) + position
            for index in indices
            for position, published in enumerate(self.slices[index].devices)
            if published.name == device.device
        )

    def _all_named(self, indices: Iterable[int]) -> dict[DeviceName, tuple[int, ...]]:
        rows: dict[DeviceName, tuple[int, ...]] = {}
        for index in indices:
            for row, published in enumerate(self.slices[index].devices, int(self.starts[index])):
                rows[published.name] = (*rows.get(published.name, ()), row)
        return rows

    def rows_by_name(self, driver: DriverName, pool: PoolName) -> dict[DeviceName, int]:
        """Return the rows of a pool's devices, the first of each name."""
        rows: dict[DeviceName, int] = {}
        for index in self.pool(driver, pool):
            for position, published in enumerate(self.slices[index].devices):
                rows.setdefault(published.name, int(self.starts[index]) + position)
        return rows

    def index(self, key: SliceKey) -> int:
        """Return where the slice with *key* is, or where it would be."""
        return bisect_left(self.keys, key)

    def with_key(self, key: SliceKey) -> ResourceSlice | None:
        """Return the slice with *key*, None where there is none."""
        index = self.index(key)
        return self.slices[index] if index < len(self.keys) and self.keys[index] == key else None

    def with_slice(self, published: ResourceSlice) -> "Inventory":
        """Add *published*, or put it in the place of the slice with its key."""
        key = key_of(published)
        index = self.index(key)
        known = index < len(self.keys) and self.keys[index] == key
        return self._spliced(index, index + known, (published,))

    def without_slice(self, key: SliceKey) -> "Inventory":
        """Remove the slice with *key*, which must be there."""
        index = self.index(key)
        return self._spliced(index, index + 1, ())

    def _spliced(self, first: int, last: int, fresh: tuple[ResourceSlice, ...]) -> "Inventory":
        """Put *fresh* in the place of the slices *first* to *last*."""
        start, stop = int(self.starts[first]), int(self.starts[last])
        count = sum(len(published.devices) for published in fresh)
        lengths = np.fromiter((len(published.devices) for published in fresh), np.int64, len(fresh))
        tail = self.starts[last + 1 :] + (count - (stop - start))
        starts = np.concatenate((self.starts[: first + 1], start + np.cumsum(lengths), tail))
        starts.setflags(write=False)
        slices = (*self.slices[:first], *fresh, *self.slices[last:])
        keys = (*self.keys[:first], *map(key_of, fresh), *self.keys[last:])
        driver, name, _ = key_of(fresh[0]) if fresh else self.keys[first]
        before, after = self.pool(driver, name), _pool(keys, driver, name)
        standing = [self.standing.dictionary.code(item) for item in standings(slices[after.start : after.stop])]
        homes = self.home.dictionary.encoded(map(home_of, fresh))
        return Inventory(
            slices=slices,
            keys=keys,
            starts=starts,
            home=self.home.spliced(first, last, homes),
            standing=self.standing.spliced(before.start, before.stop, standing),
            columns=_spliced_columns(self, start, stop, fresh, count),
        )


def inventory_of(slices: Iterable[ResourceSlice]) -> Inventory:
    """Build the columns of *slices* from scratch."""
    ordered = tuple(sorted(slices, key=key_of))
    starts = np.zeros(len(ordered) + 1, np.int64)
    np.cumsum([len(published.devices) for published in ordered], out=starts[1:])
    starts.setflags(write=False)
    rows = int(starts[-1])
    columns = {path: pile.column(rows) for path, pile in piles_of(ordered).items()}
    home, standing = column_of(map(home_of, ordered)), column_of(standings(ordered))
    return Inventory(ordered, tuple(map(key_of, ordered)), starts, home, standing, columns)


def home_of(published: ResourceSlice) -> NodeName | None:
    """Return the node that the devices of *published* are local to."""
    return published.selection.node_name if published.selection else None


def _pool(keys: Sequence[SliceKey], driver: DriverName, name: PoolName) -> range:
    start = bisect_left(keys, (driver, name, ""))
    stop = start
    while stop < len(keys) and keys[stop][:2] == (driver, name):
        stop += 1
    return range(start, stop)


def key_of(published: ResourceSlice) -> SliceKey:
    return SliceKey(published.driver, published.pool, published.name)


def _spliced_columns(
    inventory: Inventory, start: int, stop: int, fresh: Sequence[ResourceSlice], count: int
) -> dict[Path, Column[Hashable]]:
    piles = piles_of(fresh, inventory.columns)
    columns: dict[Path, Column[Hashable]] = {}
    for path in inventory.columns.keys() | piles.keys():
        pile = piles.get(path)
        added: Column[Hashable] = pile.column(count) if pile else blank(count)
        column = inventory.columns.get(path) or Column(np.zeros(inventory.rows, np.int32), added.dictionary)
        spliced = column.spliced(start, stop, added.codes)
        if spliced is column or pile or spliced.codes.any():
            columns[path] = spliced
    return columns
