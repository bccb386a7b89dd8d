"""Who holds which device. Counted by device, whether it is published or not, and forgotten claim by claim."""

from extender.allocation.usage import UNUSED, Hold, Usage, add, holds_of, subtract
from extender.model.claim import ResourceClaim
from extender.model.names import DeviceKey, Uid


class Occupancy:
    """The use of every device that an allocated claim holds; the same devices in two claims count twice."""

    def __init__(self) -> None:
        self._holds: dict[Uid, tuple[Hold, ...]] = {}
        self._usage: dict[DeviceKey, Usage] = {}

    def usage(self, device: DeviceKey) -> Usage:
        """Return how much of *device* is taken."""
        return self._usage.get(device, UNUSED)

    def put(self, claim: ResourceClaim) -> None:
        """Take over what *claim* holds now, in place of what it held before."""
        self.drop(claim.uid)
        if claim.allocation is None:
            return
        holds = self._holds[claim.uid] = holds_of(claim.allocation)
        for hold in holds:
            self._usage[hold.device] = add(self.usage(hold.device), hold.usage)

    def drop(self, uid: Uid) -> None:
        """Let go of what the claim held; one that is not known changes nothing."""
        for hold in self._holds.pop(uid, ()):
            left = subtract(self._usage[hold.device], hold.usage)
            if left.is_held:
                self._usage[hold.device] = left
            else:
                del self._usage[hold.device]

    def devices(self) -> frozenset[DeviceKey]:
        """Name every device that anybody holds."""
        return frozenset(self._usage)
