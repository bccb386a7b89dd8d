"""What taint rules add to each published device, as a column."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from extender.allocation.cel import Path
from extender.allocation.cells import FAULT
from extender.allocation.columns import Column, Dictionary, frozen
from extender.allocation.inventory import Inventory
from extender.allocation.projection import project
from extender.allocation.selectors import PIECE, read_by
from extender.allocation.tainting import may_match, program_of, texts_of
from extender.allocation.work import Work
from extender.model.claim import DeviceClass
from extender.model.names import ClassName
from extender.model.taint import DeviceTaintRule, Taint, TaintSelector

# Devices that expressions are asked about between two pauses; a rule may have several expressions.
EVALUATIONS = 64
Taints = tuple[Taint, ...]
Rows = NDArray[np.int64]


def added_taints(
    inventory: Inventory,
    rules: Mapping[str, DeviceTaintRule],
    classes: Mapping[ClassName, DeviceClass],
    dictionary: Dictionary[Taints],
) -> Work[Column[Taints]]:
    """Work out the taints of each row, encoded by *dictionary*; without a value where no rule concerns the device."""
    codes = np.zeros(inventory.rows, np.int32)
    for name in sorted(rules):
        rows = yield from _concerned(inventory, rules[name].selector, classes)
        before, places = np.unique(codes[rows], return_inverse=True)
        taints = [(*(dictionary.values[code] or ()), rules[name].taint) for code in before.tolist()]
        codes[rows] = np.array([dictionary.code(item) for item in taints], np.int32)[places]
        yield
    return frozen(codes, dictionary)


def _concerned(
    inventory: Inventory, selector: TaintSelector | None, classes: Mapping[ClassName, DeviceClass]
) -> Work[Rows]:
    """Find the rows that a rule with *selector* taints; one without any taints nothing."""
    texts = None if selector is None else texts_of(selector, classes)
    if selector is None or texts is None:
        return np.zeros(0, np.int64)
    rows = yield from _named(inventory, selector)
    return (yield from _matching(inventory, rows, texts)) if texts else rows


def _named(inventory: Inventory, selector: TaintSelector) -> Work[Rows]:
    """Find the rows that *selector* accepts by their names."""
    chosen = _slices(inventory, selector)
    if selector.device is None:
        is_chosen = np.zeros(len(inventory.slices), np.bool_)
        is_chosen[chosen] = True
        return np.flatnonzero(np.repeat(is_chosen, np.diff(inventory.starts)))
    found: list[int] = []
    for count, index in enumerate(chosen, start=1):
        start = int(inventory.starts[index])
        devices = inventory.slices[index].devices
        found += [start + place for place, device in enumerate(devices) if device.name == selector.device]
        if count % PIECE == 0:
            yield
    return np.array(found, np.int64)


def _slices(inventory: Inventory, selector: TaintSelector) -> Sequence[int]:
    """Find the slices of the driver and the pool of *selector*; slices are sorted by these."""
    keys, driver, pool = inventory.keys, selector.driver, selector.pool
    if driver is None:
        return [index for index, key in enumerate(keys) if pool in (None, key.pool)]
    if pool is not None:
        return inventory.pool(driver, pool)
    return range(bisect_left(keys, (driver,)), bisect_right(keys, driver, key=lambda key: key.driver))


def _matching(inventory: Inventory, rows: Rows, texts: Sequence[str | None]) -> Work[Rows]:
    """Keep the rows that may match all *texts*: one evaluation for each kind of device, as far as the texts can see."""
    columns = [inventory.column(path) for path in sorted(_read(inventory, texts))]
    projection = project([Column(column.codes[rows], column.dictionary) for column in columns], len(rows))
    matching = np.zeros(len(projection.first), np.bool_)
    for kind, row in enumerate(rows[projection.first].tolist()):
        driver, device = inventory.driver_at(row), inventory.device(row)
        matching[kind] = all(may_match(text, driver, device) for text in texts)
        if (kind + 1) % EVALUATIONS == 0:
            yield
    return rows[matching[projection.codes]]


def _read(inventory: Inventory, texts: Sequence[str | None]) -> set[Path]:
    """Name the columns that can make a difference to *texts*."""
    paths: set[Path] = {FAULT}
    for program in (program_of(text) for text in texts if text is not None):
        if program is not None:
            paths |= read_by(program, inventory)
    return paths
