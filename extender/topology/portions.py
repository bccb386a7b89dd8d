"""Devices that are shared, in thousandths: which are of one model, what is left of each, what an ask takes of it."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.allocation.board import Board
from extender.allocation.capacity import Draw
from extender.allocation.usage import Usage
from extender.model.device import Capacity, Device
from extender.model.names import DeviceKey, DriverName, PoolName
from extender.model.quantity import Quantity
from extender.topology.aliases import Member, values_of
from extender.topology.configuration import Configuration
from extender.topology.memo import Memo
from extender.topology.policy import STEP, Placing
from extender.topology.quality import ONE

# All of a device.
WHOLE: Final = 1000
BOARDS: Final = 1 << 14
# What is lost where a device that others could share is taken as a whole. Nobody looks at its links: it counts as one
# that is in good sets of all sizes, which is worse than most that nobody can share.
ALONE: Final = ONE // 4
# Gains of so many thousandths are half of what values can come to.
MIDDLE: Final = 16 * WHOLE


class Model(NamedTuple):
    """Devices that serve the same asks: of one driver and product, with the same capacities."""

    driver: DriverName
    product: str
    capacities: tuple[tuple[object, ...], ...]


class Catalogue:
    """Models by number, as they are first met; *devices* has one of each. One writer."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.devices: list[Device] = []
        self._numbers: dict[Model, int] = {}
        self._boards: Memo[str, tuple[Board, dict[int, int]]] = Memo(BOARDS)

    def number(self, driver: DriverName, device: Device) -> int:
        """Return the number of a device's model."""
        model = Model(
            driver, self._product(driver, device), tuple(_stated(name, capacity) for name, capacity in device.capacity)
        )
        number = self._numbers.setdefault(model, len(self.devices))
        if number == len(self.devices):
            self.devices.append(device)
        return number

    def renumbered(self, kept: Iterable[int]) -> tuple["Catalogue", dict[int, int]]:
        """Return a catalogue of the models that are *kept*, and their numbers there by those here."""
        fresh, models = Catalogue(self.configuration), list(self._numbers)
        numbers = {old: new for new, old in enumerate(kept)}
        fresh.devices = [self.devices[number] for number in numbers]
        fresh._numbers = {models[old]: new for old, new in numbers.items()}
        return fresh, numbers

    def on(self, board: Board) -> dict[int, int]:
        """Return the models of those candidates of a board that are shared, by their places."""
        known = self._boards.get(board.node.name)
        if known is None or known[0] is not board:
            listed = enumerate(board.candidates)
            models = {at: self.number(item.key.driver, item.device) for at, item in listed if is_shared(item.device)}
            known = self._boards[board.node.name] = board, models
        return known[1]

    def aliases(self, driver: DriverName | None = None) -> list[str]:
        """Name the attributes that tell products of *driver*, or of anybody."""
        kinds = (kind for kind in self.configuration.kinds if driver is None or kind.match.driver in ("", driver))
        return [name for kind in kinds for alias, names in kind.aliases if alias == "product" for name in names]

    def _product(self, driver: DriverName, device: Device) -> str:
        member = Member(DeviceKey(driver, PoolName(""), device.name), device)
        told = (values_of(member, name) for name in self.aliases(driver))
        return next((str(value) for values in told for kind, value in sorted(values) if kind == "string"), "")


def is_shared(device: Device) -> bool:
    """Tell whether *device* has capacity for several."""
    return device.traits.allow_multiple_allocations and bool(device.capacity)


def left_of(device: Device, usage: Usage, besides: Iterable[Mapping[str, int]] = ()) -> int:
    """Return what is left of a device: of its capacities that of which least is. *besides*: taken in this attempt.

    Rounded like what is taken: what fits must seem to fit, to the last share of a device in thirds.
    """
    if usage.dedicated:
        return 0
    consumed = dict(usage.consumed)
    for drawn in besides:
        consumed = {name: consumed.get(name, 0) + drawn.get(name, 0) for name in consumed.keys() | drawn.keys()}
    parts = (
        _thousandths(capacity.value.nanos - consumed.get(name, 0), capacity.value.nanos)
        for name, capacity in device.capacity
        if capacity.value.nanos > 0
    )
    # What others have written may be less than nothing; no device has more left than all of it.
    return min(WHOLE, max(0, min(parts, default=0)))


def taken_of(device: Device, drawn: Draw) -> int:
    """Return what an ask takes of a device: of its capacities that of which most is."""
    amounts = dict(drawn.amounts)
    parts = (
        _thousandths(amounts[name].nanos, capacity.value.nanos)
        for name, capacity in device.capacity
        if name in amounts and capacity.value.nanos > 0
    )
    # What takes nothing would fit where there is no device at all.
    return max(1, max(parts, default=1))


def is_spoilt(device: Device, asked: Iterable[tuple[str, Quantity]]) -> bool:
    """Tell whether less is *asked* of each capacity than a device has: what nobody shares goes with all of it."""
    capacities = dict(device.capacity)
    return all(name in capacities and amount.nanos < capacities[name].value.nanos for name, amount in asked)


def valued(gains: NDArray[np.int64], *, is_all: bool) -> NDArray[np.int64]:
    """Return what gains in thousandths are worth: half of ONE for each device, but never half a STEP.

    Gains of scarce devices have no bound, and must not outweigh what was asked for first. Different ones stay different
    up to some three hundred devices. *is_all*: all of each device is taken, for no amount was named.
    """
    return np.asarray(STEP // 2 * gains // (np.abs(gains) + MIDDLE) - is_all * ALONE, dtype=np.int64)


def spared(free: NDArray[np.int64], whole: NDArray[np.int64], total: int, placing: Placing) -> NDArray[np.int64]:
    """Return what is left to packing or spreading where *total* is taken of what is *free* on nodes with *whole*."""
    spare = 2 * ONE * (free - total) // np.maximum(whole, 1)
    return np.asarray(spare if placing is Placing.SPREAD else -spare, dtype=np.int64)


def _thousandths(amount: int, capacity: int) -> int:
    """Round down, but nothing is only what is nothing."""
    return max(min(1, amount), WHOLE * amount // capacity)


def _stated(name: str, capacity: Capacity) -> tuple[object, ...]:
    return name, capacity.value.spelling, str(capacity.policy)
