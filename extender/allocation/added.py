"""What taint rules add to each published device, as a column."""

from collections.abc import Iterator, Mapping

from extender.allocation.columns import Column, blank, column_of
from extender.allocation.inventory import Inventory
from extender.allocation.tainting import Tainting
from extender.model.claim import DeviceClass
from extender.model.names import ClassName, DeviceKey
from extender.model.taint import DeviceTaintRule, Taint

Taints = tuple[Taint, ...]


def added_taints(
    inventory: Inventory, rules: Mapping[str, DeviceTaintRule], classes: Mapping[ClassName, DeviceClass]
) -> Column[Taints]:
    """Work out the taints of each row; without a value where no rule concerns the device."""
    if not rules:
        return blank(inventory.rows)
    added: dict[int, Taints] = {}
    for name in sorted(rules):
        tainting = Tainting((rules[name],), classes)
        for row, taints in _concerned(inventory, rules[name], tainting):
            added[row] = added.get(row, ()) + taints
    return column_of(added.get(row) for row in range(inventory.rows))


def _concerned(inventory: Inventory, rule: DeviceTaintRule, tainting: Tainting) -> Iterator[tuple[int, Taints]]:
    selector = rule.selector
    if selector is None:
        return
    starts = inventory.starts.tolist()
    for index, key in enumerate(inventory.keys):
        if selector.driver not in (None, key.driver) or selector.pool not in (None, key.pool):
            continue
        for place, device in enumerate(inventory.slices[index].devices):
            if taints := tainting.taints(DeviceKey(key.driver, key.pool, device.name), device):
                yield starts[index] + place, taints
