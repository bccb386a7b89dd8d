"""The order of devices of which shares are asked for, as the search of one node takes it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.preference import Turn, most_constrained_first
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.model.device import Device
from extender.model.names import DriverName
from extender.model.quantity import Quantity
from extender.topology.appraisal import Appraisal, Part
from extender.topology.policy import KEEPING
from extender.topology.shape import places_of
from extender.topology.shares import ANY, COARSE, Amounts, Demand, Room, coarse, gains, mix_of

# Devices of one driver with the same capacities, which serve the same requests.
Kind = tuple[DriverName, tuple[str, ...]]


class Offer(NamedTuple):
    """A device; the least offer is the best. loss: of what is left for others, coarsely; left: afterwards, of ONE."""

    is_dedicated: bool
    loss: int
    left: int
    rank: tuple[str, ...]
    place: int


class Shared:
    """Tries devices by how little their share costs those who ask next; then the tightest, then by name.

    Devices that only one can have come last: they are worth more to who needs all of one.
    """

    def __init__(self, demand: Demand = ANY) -> None:
        self._demand = demand

    def concerns(self, situation: Situation, at: At, mask: int) -> bool:
        """Tell whether shares of devices are among *mask*."""
        return not situation.asks[at].is_admin and any(
            situation.board.candidates[place].device.capacity for place in places_of(mask & situation.shareable)
        )

    def order(self, situation: Situation) -> Sequence[Turn]:
        return most_constrained_first(situation)

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        """Yield all sets of *size* places out of *mask*, the best first or nearly so."""
        situation = replace(situation, given=tuple(picks))
        rooms = _rooms(situation)
        losses = self._losses(situation, at, places_of(mask), rooms)
        offers = []
        for place in places_of(mask):
            is_shared, rank = place in losses, situation.board.candidates[place].key
            left = rooms[place].without(_taken(situation, at, place)).idle if is_shared else 0
            offers.append(Offer(not is_shared, losses.get(place, 0), left, rank, place))
        for chosen in combinations(sorted(offers), size):
            yield tuple(sorted(offer.place for offer in chosen))

    def value(self, situation: Situation, at: At, places: Sequence[int]) -> Appraisal:
        """Say what shares of *places* cost, and what they leave."""
        rooms = _rooms(situation)
        losses = self._losses(situation, at, places, rooms)
        parts = [
            Part("shares", -KEEPING * COARSE * loss // 1000, _told(situation, at, place, rooms[place]))
            for place, loss in sorted(losses.items())
        ]
        return Appraisal(sum(part.value for part in parts), tuple(parts))

    def _losses(self, situation: Situation, at: At, places: Sequence[int], rooms: Mapping[int, Room]) -> dict[int, int]:
        """Return what a share of each place costs, coarsely; nothing of those of which there are no shares."""
        losses: dict[int, int] = {}
        if situation.asks[at].is_admin:
            return losses
        for (_, names), members in _kinds(situation.board, rooms).items():
            numbers = {place: number for number, place in enumerate(members)}
            taken = {numbers[place]: _taken(situation, at, place) for place in places if place in numbers}
            if taken:
                listed = [rooms[place] for place in members]
                mix = mix_of(names, {room.whole for room in listed}, self._demand)
                losses |= {members[number]: -coarse(gain) for number, gain in gains(listed, mix, taken).items()}
        return losses


def _kinds(board: Board, rooms: Mapping[int, Room]) -> dict[Kind, list[int]]:
    kinds: dict[Kind, list[int]] = {}
    for place in rooms:
        candidate = board.candidates[place]
        kinds.setdefault((candidate.key.driver, _names(candidate.device)), []).append(place)
    return kinds


def _names(device: Device) -> tuple[str, ...]:
    """Return the names of capacities, without the driver's domain, which may be left out."""
    return tuple(name.rpartition("/")[2] for name, _ in device.capacity)


def _rooms(situation: Situation) -> dict[int, Room]:
    """Return what is left of the devices that are shared, after what was given in this attempt."""
    rooms = {}
    for place in places_of(situation.shareable):
        capacity = situation.board.candidates[place].device.capacity
        if not capacity:
            continue
        usage, whole = situation.usages[place], tuple(amount.value.nanos for _, amount in capacity)
        consumed = dict(usage.consumed)
        taken = whole if usage.dedicated else tuple(consumed.get(name, 0) for name, _ in capacity)
        rooms[place] = Room(whole, whole).without(taken)
    for at, place in situation.given:
        if place in rooms and not situation.asks[at].is_admin:
            rooms[place] = rooms[place].without(_taken(situation, at, place))
    return rooms


def _taken(situation: Situation, at: At, place: int) -> Amounts:
    """Return what an ask draws of a device: by the device's policy, it may be more than is asked for."""
    drawn = dict(situation.eligible[at].draws[place].amounts)
    capacity = situation.board.candidates[place].device.capacity
    return tuple(drawn[name].nanos if name in drawn else amount.value.nanos for name, amount in capacity)


def _told(situation: Situation, at: At, place: int, room: Room) -> str:
    candidate, after = situation.board.candidates[place], room.without(_taken(situation, at, place))
    amounts = [
        f"{Quantity(left, capacity.value.format)} of {capacity.value}"
        for left, (_, capacity) in zip(after.left, candidate.device.capacity, strict=True)
    ]
    if len(amounts) > 1:
        amounts = [f"{amount} {name}" for amount, name in zip(amounts, _names(candidate.device), strict=True)]
    return f"fills {candidate.key.device}: {', '.join(amounts)} left"
