"""What is left of devices that are shared, and how much of it is too little for what is asked for: fragmentation."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from extender.topology.quality import ONE

Amounts = tuple[int, ...]
# Of what is asked for, the rarest is left out: what is typical is this part of it, of a hundred.
TYPICAL: Final = 95
# Differences below this, of ONE, do not count: it is a percent of FGD's score, a sigmoid, where that is steepest.
COARSE: Final = ONE // 25
# Binary digits to which amounts that are asked for are told apart.
DIGITS: Final = 5


class Room(NamedTuple):
    """What a device has of each capacity, and what is left."""

    whole: Amounts
    left: Amounts

    @property
    def idle(self) -> int:
        """How much is left, of ONE: the mean over the capacities."""
        shares = [ONE * max(0, left) // whole for left, whole in zip(self.left, self.whole, strict=True) if whole > 0]
        return sum(shares) // len(shares) if shares else 0

    def has(self, amounts: Amounts) -> bool:
        return all(map(int.__le__, amounts, self.left))

    def without(self, amounts: Amounts) -> "Room":
        return self._replace(left=tuple(left - amount for left, amount in zip(self.left, amounts, strict=True)))


class Typical(NamedTuple):
    """What is asked for, and how often: *amounts* of each of *devices* devices."""

    amounts: Amounts
    weight: int = 1
    devices: int = 1


# Amounts by the names of capacities, without the driver's domain, to how often they are asked for.
Demand = Mapping[tuple[tuple[str, int], ...], int]
ANY: Demand = {}


def fragments(rooms: Sequence[Room], asked: Typical) -> int:
    """Return F_n(m), of ONE for each idle device: what is left where it is too little for what is asked.

    All that is left is, where the devices do not suffice.
    """
    fitting = [room.has(asked.amounts) for room in rooms]
    suffices = sum(fitting) >= asked.devices
    return sum(room.idle for room, fits in zip(rooms, fitting, strict=True) if not (suffices and fits))


def fragmentation(rooms: Sequence[Room], mix: Sequence[Typical]) -> int:
    """Return F_n: the mean over what is typical."""
    weights = sum(typical.weight for typical in mix)
    return sum(typical.weight * fragments(rooms, typical) for typical in mix) // weights if weights else 0


def gains(rooms: Sequence[Room], mix: Sequence[Typical], taken: Mapping[int, Amounts]) -> dict[int, int]:
    """Return, for each room, by how much F_n falls once its amounts are *taken*; rooms are numbered."""
    before = fragmentation(rooms, mix)
    sums = [_Sums(rooms, typical) for typical in mix]
    weights = sum(typical.weight for typical in mix)
    after = {
        index: sum(one.typical.weight * one.after(rooms[index], rooms[index].without(amounts)) for one in sums)
        for index, amounts in taken.items()
    }
    return {index: before - (total // weights if weights else 0) for index, total in after.items()}


class _Sums:
    """What F_n(m) is made of, so that a change of one room takes no look at the others."""

    def __init__(self, rooms: Sequence[Room], typical: Typical) -> None:
        self.typical = typical
        fitting = [room.has(typical.amounts) for room in rooms]
        self.fitting = sum(fitting)
        self.idle = sum(room.idle for room in rooms)
        self.useful = sum(room.idle for room, fits in zip(rooms, fitting, strict=True) if fits)

    def after(self, before: Room, room: Room) -> int:
        """Return F_n(m) where *room* is in the place of *before*."""
        fitted, fits = before.has(self.typical.amounts), room.has(self.typical.amounts)
        idle = self.idle - before.idle + room.idle
        if self.fitting - fitted + fits < self.typical.devices:
            return idle
        return idle - (self.useful - before.idle * fitted + room.idle * fits)


def coarse(gain: int) -> int:
    """Round down to what counts."""
    return gain // COARSE


def quantised(amount: int) -> int:
    """Round down to a few binary digits: amounts that hardly differ become the same."""
    spare = max(0, amount.bit_length() - DIGITS)
    return amount >> spare << spare


def mix_of(names: Sequence[str], wholes: Iterable[Amounts], demand: Demand) -> tuple[Typical, ...]:
    """Return what is typical for devices with capacities of these *names*, whole ones where nothing is known.

    With whole ones alone it comes to the tightest fit. To guess at portions is worse than that where others are asked
    for: ``make quality`` measures what is gained by knowing.
    """
    known = [
        Typical(tuple(dict(asked).get(name, 0) for name in names), count)
        for asked, count in demand.items()
        if count > 0 and {name for name, _ in asked} <= set(names)
    ]
    if known:
        return _most(_merged(known))
    return tuple(Typical(whole) for whole in sorted(set(wholes)))


def _merged(every: Sequence[Typical]) -> list[Typical]:
    """Let the most frequent of amounts that hardly differ stand for all of them; the most frequent come first."""
    weights: dict[Amounts, int] = {}
    likely: dict[Amounts, Typical] = {}
    for typical in sorted(every, key=_frequent):
        key = tuple(map(quantised, typical.amounts))
        weights[key] = weights.get(key, 0) + typical.weight
        likely.setdefault(key, typical)
    return sorted((likely[key]._replace(weight=weight) for key, weight in weights.items()), key=_frequent)


def _frequent(typical: Typical) -> tuple[int, Amounts]:
    return -typical.weight, typical.amounts


def _most(ordered: Sequence[Typical]) -> tuple[Typical, ...]:
    """Take the most frequent until they are TYPICAL of all."""
    total = sum(typical.weight for typical in ordered)
    before = accumulate((typical.weight for typical in ordered), initial=0)
    return tuple(typical for typical, counted in zip(ordered, before, strict=False) if 100 * counted < TYPICAL * total)
