"""Whether a claim may have what it holds: not where earlier claims hold it, or where it does not suffice for both."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from extender.allocation.counters import draws_of
from extender.allocation.inventory import Inventory
from extender.allocation.usage import UNUSED, Usage, add
from extender.model.device import Device
from extender.model.names import DeviceKey, DeviceName, PoolKey

K = TypeVar("K")
Uses = Mapping[DeviceKey, Usage]


def contested(mine: Uses, before: Uses, inventory: Inventory) -> DeviceKey | None:
    """Name a device of *mine* that is not enough for those *before* us and for us; None where there is none."""
    return next(_contested(mine, before, inventory), None)


def _contested(mine: Uses, before: Uses, inventory: Inventory) -> Iterator[DeviceKey]:
    for key, use in mine.items():
        earlier = before.get(key, UNUSED)
        is_taken = (use.dedicated and earlier.is_held) or (earlier.dedicated and use.is_held) or use.dedicated > 1
        if is_taken or (use.shares and _is_overdrawn(use, earlier, _published(inventory, key))):
            yield key
    yield from _partitions(mine, before, inventory)


def overdrafts(
    holders: Iterable[tuple[K, Uses]], pool: PoolKey, inventory: Inventory
) -> Iterator[tuple[K, DeviceKey | None]]:
    """Name a device of each of *holders* that is not enough for those before it and for it, if there is one.

    Holders of devices of *pool* come as they were seen, the first one first. What each adds is counted once, so that
    a pool may have thousands; who holds a whole device that somebody else holds is not looked for.
    """
    before: dict[DeviceKey, Usage] = {}
    left, devices = _counters(inventory, pool), _devices(inventory, pool)
    for holder, mine in holders:
        published = {key: device for key in mine if (device := devices.get(key.device))}
        draws = {key: draws_of(device) for key, device in published.items() if key not in before}
        for drawn in draws.values():
            for counter, amount in drawn.items():
                left[counter] = left.get(counter, 0) - amount
        short = (key for key, drawn in draws.items() if drawn and min(map(left.__getitem__, drawn)) < 0)
        thin = (key for key, device in published.items() if _is_overdrawn(mine[key], before.get(key, UNUSED), device))
        yield holder, next(chain(thin, short), None)
        for key, use in mine.items():
            before[key] = add(before[key], use) if key in before else use


def _devices(inventory: Inventory, pool: PoolKey) -> dict[DeviceName, Device]:
    """Return the devices of *pool*, the first of each name."""
    slices = (inventory.slices[index] for index in inventory.pool(*pool))
    named: dict[DeviceName, Device] = {}
    for device in chain.from_iterable(published.devices for published in slices):
        named.setdefault(device.name, device)
    return named


def _is_overdrawn(use: Usage, earlier: Usage, device: Device | None) -> bool:
    """Tell whether what *use* consumes is more than *earlier* leaves; what it does not consume is not its concern."""
    if not use.consumed:
        return False
    taken = dict(earlier.consumed)
    if device is None:
        # How much there is of what is published no more nobody knows: in doubt whoever came first has it.
        return any(name in taken for name, _ in use.consumed)
    capacities = dict(device.capacity)
    return any(
        name in capacities and nanos + taken.get(name, 0) > capacities[name].value.nanos for name, nanos in use.consumed
    )


def _partitions(mine: Uses, before: Uses, inventory: Inventory) -> Iterator[DeviceKey]:
    """Yield partitions of ours that draw from counters which do not suffice for all that are active.

    A device is charged once, however many share it: where earlier claims hold it already, we add nothing.
    """
    for pool in sorted({key.pool_key for key in mine}):
        added = [key for key in mine if key.pool_key == pool and key not in before and _draws(inventory, key)]
        if not added:
            continue
        left = _counters(inventory, pool)
        for key in (*(key for key in before if key.pool_key == pool), *added):
            for counter, amount in _draws(inventory, key).items():
                left[counter] = left.get(counter, 0) - amount
        yield from (key for key in added if any(left[counter] < 0 for counter in _draws(inventory, key)))


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
