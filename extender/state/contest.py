"""Whether a claim may have what it holds: not where earlier claims hold it, or where it does not suffice for both."""

from collections.abc import Iterable, Iterator, Mapping

from extender.allocation.counters import draws_of
from extender.allocation.inventory import Inventory
from extender.allocation.usage import UNUSED, Usage, add
from extender.model.device import Device
from extender.model.names import DeviceKey, PoolKey

Uses = Mapping[DeviceKey, Usage]


def contested(mine: Uses, before: Uses, inventory: Inventory) -> DeviceKey | None:
    """Name a device of *mine* that is not enough for those *before* us and for us; None where there is none."""
    return next(_contested(mine, before, inventory), None)


def _contested(mine: Uses, before: Uses, inventory: Inventory) -> Iterator[DeviceKey]:
    for key, use in mine.items():
        earlier = before.get(key, UNUSED)
        is_taken = (use.dedicated and earlier.is_held) or (earlier.dedicated and use.is_held) or use.dedicated > 1
        if is_taken or (use.shares and _is_overdrawn(add(use, earlier), _published(inventory, key))):
            yield key
    yield from _partitions(mine, before, inventory)


def _is_overdrawn(total: Usage, device: Device | None) -> bool:
    capacities = dict(device.capacity) if device else {}
    return any(name in capacities and nanos > capacities[name].value.nanos for name, nanos in total.consumed)


def _partitions(mine: Uses, before: Uses, inventory: Inventory) -> Iterator[DeviceKey]:
    """Yield partitions of ours whose pool has not enough counters for all that are active."""
    for pool in {key.pool_key for key in mine}:
        ours = [key for key in mine if key.pool_key == pool]
        if not any(_draws(inventory, key) for key in ours):
            continue
        left = _counters(inventory, pool)
        active = {key for key in (*before, *ours) if key.pool_key == pool}
        for key in active:
            for counter, amount in _draws(inventory, key).items():
                left[counter] = left.get(counter, 0) - amount
        if min(left.values(), default=0) < 0:
            yield ours[0]


def _counters(inventory: Inventory, pool: PoolKey) -> dict[tuple[str, str], int]:
    slices = (inventory.slices[index] for index in inventory.pool(pool.driver, pool.pool))
    return {
        (shared.name, counter.name): counter.value.nanos
        for published in slices
        for shared in published.shared_counters
        for counter in shared.counters
    }


def _draws(inventory: Inventory, key: DeviceKey) -> Mapping[tuple[str, str], int]:
    device = _published(inventory, key)
    return draws_of(device) if device else {}


def _published(inventory: Inventory, key: DeviceKey) -> Device | None:
    rows: Iterable[int] = inventory.rows_of(key)
    return next((inventory.device(row) for row in rows), None)
