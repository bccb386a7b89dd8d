"""Who holds which device. Counted by device, whether it is published or not, and forgotten claim by claim."""

from extender.allocation.usage import UNUSED, Hold, Usage, add, holds_of, subtract
from extender.model.claim import ResourceClaim
from extender.model.names import DeviceKey, ObjectKey

Touched = frozenset[DeviceKey]
NOTHING: Touched = frozenset()


class Occupancy:
    """The use of every device that an allocated claim holds; the same devices in two claims count twice.

    Without *sharing*, whoever has a share of a device has all of it.
    """

    def __init__(self, *, sharing: bool = True) -> None:
        self._sharing = sharing
        self._holds: dict[ObjectKey, tuple[Hold, ...]] = {}
        self._usage: dict[DeviceKey, Usage] = {}

    def usage(self, device: DeviceKey) -> Usage:
        """Return how much of *device* is taken."""
        return self._usage.get(device, UNUSED)

    def holds_of(self, key: ObjectKey) -> tuple[Hold, ...]:
        """Return what the claim takes, as it is counted here."""
        return self._holds.get(key, ())

    def put(self, claim: ResourceClaim) -> Touched:
        """Take over what *claim* holds now in place of what one of its name held; return the devices concerned."""
        fresh = holds_of(claim.allocation, sharing=self._sharing) if claim.allocation else ()
        if fresh == self._holds.get(claim.key, ()):
            return NOTHING
        touched = self.drop(claim.key)
        if fresh:
            self._holds[claim.key] = fresh
        for hold in fresh:
            self._usage[hold.device] = add(self.usage(hold.device), hold.usage)
        return touched | {hold.device for hold in fresh}

    def drop(self, key: ObjectKey) -> Touched:
        """Let go of what the claim held and name it; one that is not known changes nothing."""
        holds = self._holds.pop(key, ())
        for hold in holds:
            left = subtract(self._usage[hold.device], hold.usage)
            if left.is_held:
                self._usage[hold.device] = left
            else:
                del self._usage[hold.device]
        return frozenset(hold.device for hold in holds)
