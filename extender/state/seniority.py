"""Whose allocation was seen first. Of two claims that hold one device, the earlier one keeps it."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from extender.allocation.usage import Hold, Usage, add, holds_of
from extender.model.claim import ResourceClaim
from extender.model.names import DeviceKey, ObjectKey, PoolKey, Uid

Uses = Mapping[DeviceKey, Usage]


class Seniority:
    """The claims that hold devices in the order in which their allocations were seen. One writer."""

    def __init__(self) -> None:
        self._numbers = count()
        self._seen: dict[ObjectKey, int] = {}
        self._holds: dict[ObjectKey, tuple[Hold, ...]] = {}
        self._uids: dict[ObjectKey, Uid] = {}
        self._holders: dict[PoolKey, dict[ObjectKey, None]] = {}

    def put(self, claim: ResourceClaim) -> None:
        """Take over what *claim* holds now. As long as it is the same and holds the same it keeps its place."""
        holds = holds_of(claim.allocation) if claim.allocation else ()
        if holds == self._holds.get(claim.key, ()) and self._uids.get(claim.key, claim.uid) == claim.uid:
            return
        self.drop(claim.key)
        if holds:
            self._seen[claim.key], self._holds[claim.key] = next(self._numbers), holds
            self._uids[claim.key] = claim.uid
        for hold in holds:
            self._holders.setdefault(hold.device.pool_key, {})[claim.key] = None

    def drop(self, key: ObjectKey) -> None:
        """Forget a claim; one that is not known changes nothing."""
        self._seen.pop(key, None)
        self._uids.pop(key, None)
        for hold in self._holds.pop(key, ()):
            holders = self._holders.get(hold.device.pool_key, {})
            holders.pop(key, None)
            if not holders:
                self._holders.pop(hold.device.pool_key, None)

    def keep_only(self, keys: Iterable[ObjectKey]) -> None:
        """Forget all other claims."""
        for key in self._holds.keys() - set(keys):
            self.drop(key)

    def before(self, key: ObjectKey) -> dict[DeviceKey, Usage]:
        """Add up what earlier claims hold in the pools that the claim holds devices of."""
        used: dict[DeviceKey, Usage] = {}
        pools = {hold.device.pool_key for hold in self._holds.get(key, ())}
        for pool in pools:
            for other in self._holders[pool]:
                if self._seen[other] < self._seen[key]:
                    _charge(used, (hold for hold in self._holds[other] if hold.device.pool_key == pool))
        return used

    def holders(self, pool: PoolKey) -> Iterator[tuple[ObjectKey, Uses]]:
        """Yield the claims that hold devices of *pool* and what of it each holds, the one seen first first.

        They are those of this moment, however long it takes to go through them.
        """
        known = [(key, self._holds[key]) for key in self._holders.get(pool, ())]
        return ((key, _charge({}, (hold for hold in holds if hold.device.pool_key == pool))) for key, holds in known)

    def of(self, key: ObjectKey) -> dict[DeviceKey, Usage]:
        """Add up what the claim itself holds."""
        return _charge({}, self._holds.get(key, ()))


def _charge(used: dict[DeviceKey, Usage], holds: Iterable[Hold]) -> dict[DeviceKey, Usage]:
    for hold in holds:
        used[hold.device] = add(used[hold.device], hold.usage) if hold.device in used else hold.usage
    return used
