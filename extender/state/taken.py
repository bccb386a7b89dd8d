"""What is promised, taken on top of what the cluster shows, and brought up to date by what has changed alone."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from extender.allocation.columns import differing
from extender.allocation.inventory import Inventory
from extender.allocation.snapshot import Snapshot, overlay, with_usage
from extender.allocation.usage import UNUSED, Hold, Usage, add, subtract
from extender.model.names import DeviceKey


class Taken:
    """The sum of all holds, and the last snapshot with them taken. One writer."""

    def __init__(self) -> None:
        self._usage: dict[DeviceKey, Usage] = {}
        self._touched: set[DeviceKey] = set()
        # The same sum by rows of an inventory, but for what was touched since.
        self._inventory: Inventory | None = None
        self._of_row: dict[int, Usage] = {}
        self._seen: tuple[Snapshot, Snapshot] | None = None
        # What was left out of that last, and the same without it.
        self._spared: tuple[tuple[Hold, ...], Snapshot] | None = None

    def change(self, before: Iterable[Hold], after: Iterable[Hold]) -> None:
        """Take *after* in place of *before*, which was taken so far."""
        for hold in before:
            self._put(hold.device, subtract(self._usage[hold.device], hold.usage))
        for hold in after:
            self._put(hold.device, add(self._usage.get(hold.device, UNUSED), hold.usage))

    def of(self, device: DeviceKey) -> Usage:
        """Return how much of *device* is held."""
        return self._usage.get(device, UNUSED)

    def over(self, snapshot: Snapshot) -> Snapshot:
        """Return *snapshot* with everything taken; the same object as long as nothing changes."""
        if not self._usage:
            self._seen = self._spared = self._inventory = None
            self._touched = set()
            return snapshot
        if self._seen is None or self._seen[0] is not snapshot or self._touched:
            self._seen, self._spared = (snapshot, self._renewed(snapshot)), None
            self._touched = set()
        return self._seen[1]

    def without(self, snapshot: Snapshot, holds: tuple[Hold, ...]) -> Snapshot:
        """Return *snapshot* with everything taken but *holds*, which are part of it."""
        full = self.over(snapshot)
        if not holds:
            return full
        if self._spared is None or self._spared[0] != holds:
            self._spared = holds, _set(full, self._rest(snapshot, holds))
        return self._spared[1]

    def _put(self, device: DeviceKey, usage: Usage) -> None:
        self._touched.add(device)
        if usage.is_held:
            self._usage[device] = usage
        else:
            self._usage.pop(device, None)

    def _rest(self, snapshot: Snapshot, holds: tuple[Hold, ...]) -> dict[int, Usage]:
        left = {hold.device: self._usage[hold.device] for hold in holds}
        for hold in holds:
            left[hold.device] = subtract(left[hold.device], hold.usage)
        return _rows(snapshot, left)

    def _renewed(self, snapshot: Snapshot) -> Snapshot:
        """Bring the last snapshot up to date: what the cluster shows otherwise than before, and what was touched."""
        changed = _changed(self._seen[0], snapshot) if self._seen else None
        touched = self._located(snapshot.inventory)
        if self._seen is None or changed is None:
            return overlay(snapshot, [Hold(device, usage) for device, usage in self._usage.items()])
        known, rows = self._seen[1], touched.union(changed)
        wanted = {row: _sum(snapshot.usage_at(row), self._of_row.get(row)) for row in rows}
        base = known if self._seen[0] is snapshot else replace(snapshot, usage=known.usage, free=known.free)
        return _set(base, wanted)

    def _located(self, inventory: Inventory) -> set[int]:
        """Find the rows of what is held; return those of what was touched."""
        if self._inventory is not inventory:
            self._inventory, self._of_row = inventory, {}
            for device, usage in self._usage.items():
                self._of_row |= dict.fromkeys(inventory.rows_of(device), usage)
        rows = set[int]()
        for device in self._touched:
            held = self._usage.get(device)
            for row in inventory.rows_of(device):
                rows.add(row)
                if held is None:
                    self._of_row.pop(row, None)
                else:
                    self._of_row[row] = held
        return rows


def _sum(shown: Usage, held: Usage | None) -> Usage:
    return shown if held is None else add(shown, held)


def _rows(snapshot: Snapshot, usages: Mapping[DeviceKey, Usage]) -> dict[int, Usage]:
    """Say how much of each row is taken with *usages* on top of what *snapshot* shows."""
    return {
        row: add(snapshot.usage_at(row), usage)
        for device, usage in usages.items()
        for row in snapshot.inventory.rows_of(device)
    }


def _set(base: Snapshot, wanted: Mapping[int, Usage]) -> Snapshot:
    return with_usage(base, {row: usage for row, usage in wanted.items() if base.usage_at(row) != usage})


def _changed(before: Snapshot, after: Snapshot) -> list[int] | None:
    """Return the rows that are used otherwise than before; None where rows mean something else by now."""
    if before.inventory is not after.inventory or before.layout is not after.layout:
        return None
    rows = differing(before.usage, after.usage)
    return None if rows is None else rows.tolist()
