"""Whose allocation was seen first. Of two claims that hold one device, the earlier one keeps it."""

from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import count
from typing import NamedTuple

from extender.allocation.usage import Hold, Usage, add, holds_of
from extender.model.claim import ResourceClaim
from extender.model.names import DeviceKey, ObjectKey, PoolKey, Uid

Uses = Mapping[DeviceKey, Usage]


class _Place(NamedTuple):
    """What one claim holds, and when that was seen first: the lower the number, the earlier."""

    number: int
    uid: Uid
    holds: tuple[Hold, ...]


class Seniority:
    """The claims that hold devices in the order in which their allocations were seen. One writer."""

    def __init__(self) -> None:
        self._numbers = count()
        self._places: dict[ObjectKey, _Place] = {}
        self._holders: dict[PoolKey, dict[ObjectKey, None]] = {}
        # Of whose devices it was seen that there is enough, beside what earlier claims hold, which does not grow.
        self._sufficing: set[ObjectKey] = set()

    def put(self, claim: ResourceClaim, counted: tuple[Hold, ...] = ()) -> None:
        """Take over what *claim* holds now. As long as it is the same and holds the same it keeps its place.

        *counted* is what others have made of its allocation: where that is the same, one serves us both.
        """
        holds = holds_of(claim.allocation) if claim.allocation else ()
        known = self._places.get(claim.key)
        if (known is None and not holds) or (known is not None and known[1:] == (claim.uid, holds)):
            return
        self.drop(claim.key)
        if holds:
            self._places[claim.key] = _Place(next(self._numbers), claim.uid, counted if counted == holds else holds)
        for hold in holds:
            self._holders.setdefault(hold.device.pool_key, {})[claim.key] = None

    def drop(self, key: ObjectKey) -> None:
        """Forget a claim; one that is not known changes nothing."""
        known = self._places.pop(key, None)
        self._sufficing.discard(key)
        for hold in known.holds if known else ():
            holders = self._holders.get(hold.device.pool_key, {})
            holders.pop(key, None)
            if not holders:
                self._holders.pop(hold.device.pool_key, None)

    def before(self, key: ObjectKey, devices: Container[DeviceKey] | None = None) -> dict[DeviceKey, Usage]:
        """Add up what earlier claims hold in the pools that the claim holds devices of; or only of *devices* there."""
        used: dict[DeviceKey, Usage] = {}
        for pool in {hold.device.pool_key for hold in self._held_by(key)}:
            for other in map(self._places.__getitem__, self._holders[pool]):
                if other.number < self._places[key].number:
                    concerned = (hold for hold in other.holds if devices is None or hold.device in devices)
                    _charge(used, (hold for hold in concerned if hold.device.pool_key == pool))
        return used

    def earlier(self, key: ObjectKey) -> Iterator[tuple[ObjectKey, Uses]]:
        """Yield the earlier claims in the pools that the claim holds devices of, the first first, and their uses."""
        pools = {hold.device.pool_key for hold in self._held_by(key)}
        others = {other: self._places[other].number for pool in pools for other in self._holders[pool]}
        earlier = (other for other, number in others.items() if number < self._places[key].number)
        return ((other, self.of(other)) for other in sorted(earlier, key=others.__getitem__))

    def suffices(self, key: ObjectKey) -> None:
        """Remember that there is enough of what the claim holds, for as long as it holds the same."""
        self._sufficing.add(key)

    def has_sufficed(self, key: ObjectKey) -> bool:
        """Tell whether there was enough once of what the claim holds."""
        return key in self._sufficing

    def holders(self, pool: PoolKey) -> Iterator[tuple[ObjectKey, Uses]]:
        """Yield the claims that hold devices of *pool* and what of it each holds, the one seen first first.

        They are those of this moment, however long it takes to go through them.
        """
        known = [(key, self._places[key].holds) for key in self._holders.get(pool, ())]
        return ((key, _charge({}, (hold for hold in holds if hold.device.pool_key == pool))) for key, holds in known)

    def of(self, key: ObjectKey) -> dict[DeviceKey, Usage]:
        """Add up what the claim itself holds."""
        return _charge({}, self._held_by(key))

    def _held_by(self, key: ObjectKey) -> tuple[Hold, ...]:
        known = self._places.get(key)
        return known.holds if known else ()


def _charge(used: dict[DeviceKey, Usage], holds: Iterable[Hold]) -> dict[DeviceKey, Usage]:
    for hold in holds:
        used[hold.device] = add(used[hold.device], hold.usage) if hold.device in used else hold.usage
    return used
