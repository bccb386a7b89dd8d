"""Whether a claim may have what it holds: not where earlier claims hold it, or where it does not suffice for both."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from extender.allocation.counters import drawn_by
from extender.allocation.inventory import Inventory
from extender.allocation.pools import CounterKey
from extender.allocation.usage import UNUSED, Usage, add
from extender.model.device import Device
from extender.model.names import DeviceKey, DeviceName, PoolKey
from extender.state.seniority import Uses

K = TypeVar("K")


def contested(mine: Uses, before: Uses, inventory: Inventory, *, has_sufficed: bool = False) -> DeviceKey | None:
    """Name a device of *mine* that is not enough for those *before* us and for us; None where there is none.

    Slices of a node are away for half a minute when its kubelet starts anew, and come back one by one: what
    *has_sufficed* is not taken back for that.
    """
    if has_sufficed:
        mine = {key: use for key, use in mine.items() if not use.shares or inventory.rows_of(key)}
    return next(_contested(mine, before, inventory, is_in_doubt=not has_sufficed), None)


def draws_counters(uses: Uses, inventory: Inventory) -> bool:
    """Tell whether what claims have of other devices matters, too, for they draw from the same counters."""
    return any(_draws(inventory.newest(key)) for key in uses)


def _contested(mine: Uses, before: Uses, inventory: Inventory, *, is_in_doubt: bool) -> Iterator[DeviceKey]:
    for key, use in mine.items():
        earlier = before.get(key, UNUSED)
        is_taken = (use.dedicated and earlier.is_held) or (earlier.dedicated and use.is_held)
        if is_taken or (use.shares and _is_overdrawn(use, earlier, inventory.newest(key))):
            yield key
    yield from _partitions(mine, before, inventory, is_in_doubt=is_in_doubt)


def rivals(device: DeviceKey, holders: Iterable[tuple[K, Uses]], inventory: Inventory) -> Iterator[K]:
    """Name those of *holders* that have something of *device*, or draw from what that draws from."""
    drawn = _draws(inventory.newest(device)).keys()
    for holder, uses in holders:
        beside = (key for key in uses if key.pool_key == device.pool_key)
        if device in uses or any(not drawn.isdisjoint(_draws(inventory.newest(key))) for key in beside):
            yield holder


def overdrafts(
    holders: Iterable[tuple[K, Uses]], pool: PoolKey, inventory: Inventory
) -> Iterator[tuple[K, DeviceKey | None]]:
    """Name a device of each of *holders* that is not enough for those before it and for it, if there is one.

    Holders of devices of *pool* come as they were seen, the first one first. What each adds is counted once, so that
    a pool may have thousands; who holds a whole device that somebody else holds is not looked for.
    """
    before: dict[DeviceKey, Usage] = {}
    stock = _Stock(inventory, pool)
    for holder, mine in holders:
        added = [key for key in mine if key not in before]
        for key in added:
            stock.charge(key)
        thin = (
            key
            for key, use in mine.items()
            if (device := stock.devices.get(key.device)) and _is_overdrawn(use, before.get(key, UNUSED), device)
        )
        yield holder, next(chain(thin, filter(stock.is_short_for, added)), None)
        for key, use in mine.items():
            before[key] = add(before[key], use) if key in before else use


class _Stock:
    """The devices of a pool, and what is left of its counters.

    Slices of an older generation may be left over. As for the search, a generation has its own counters: a device is
    what the newest one that has it says, and draws from those. Where that has none, which is so for as long as slices
    are replaced one by one, it draws from the newest that there are.
    """

    def __init__(self, inventory: Inventory, pool: PoolKey) -> None:
        self.devices: dict[DeviceName, Device] = {}
        self._generations: dict[DeviceName, int] = {}
        self._left: dict[int, dict[CounterKey, int]] = {}
        slices = (inventory.slices[index] for index in inventory.pool(pool.driver, pool.pool))
        for published in sorted(slices, key=lambda item: -item.generation):
            for device in published.devices:
                self.devices.setdefault(device.name, device)
                self._generations.setdefault(device.name, published.generation)
            for shared in published.shared_counters:
                left = self._left.setdefault(published.generation, {})
                left.update({(shared.name, counter.name): counter.value.nanos for counter in shared.counters})

    def charge(self, key: DeviceKey) -> None:
        """Take what a device draws, once, however many share it."""
        left = self._left_for(key)
        for counter, amount in _draws(self.devices.get(key.device)).items():
            left[counter] = left.get(counter, 0) - amount

    def has_counters_of(self, key: DeviceKey) -> bool:
        """Tell whether all is published that a device draws from. Ask before anything is charged."""
        return _draws(self.devices.get(key.device)).keys() <= self._left_for(key).keys()

    def is_short_for(self, key: DeviceKey) -> bool:
        """Tell whether what was charged is more than there is of what a device draws."""
        left = self._left_for(key)
        return any(left[counter] < 0 for counter in _draws(self.devices.get(key.device)))

    def _left_for(self, key: DeviceKey) -> dict[CounterKey, int]:
        generation = self._generations.get(key.device, 0)
        if generation not in self._left:
            generation = next(iter(self._left), generation)
        return self._left.setdefault(generation, {})


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


def _partitions(mine: Uses, before: Uses, inventory: Inventory, *, is_in_doubt: bool) -> Iterator[DeviceKey]:
    """Yield partitions of ours that draw from counters which do not suffice for all that are active.

    A device is charged once, however many share it: where earlier claims hold it already, we add nothing. Where what
    it draws from is not published, there is none if that *is_in_doubt*.
    """
    for pool in sorted({key.pool_key for key in mine}):
        new = (key for key in mine if key.pool_key == pool and key not in before)
        added = [key for key in new if _draws(inventory.newest(key))]
        if not added:
            continue
        stock = _Stock(inventory, pool)
        if not is_in_doubt:
            added = [key for key in added if stock.has_counters_of(key)]
        for key in (*(key for key in before if key.pool_key == pool), *added):
            stock.charge(key)
        yield from filter(stock.is_short_for, added)


def _draws(device: Device | None) -> Mapping[CounterKey, int]:
    return drawn_by(device.traits) if device else {}
