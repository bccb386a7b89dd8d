"""How much of a device is taken. Counted, not set: a device allocated twice stays taken until both claims let go."""

from typing import NamedTuple

from extender.model.claim import AllocatedDevice, Allocation
from extender.model.frozen import dataclass
from extender.model.names import DeviceKey


@dataclass(frozen=True, slots=True)
class Usage:
    """The live allocations of one device: whole ones, shares, and what the shares consume (name, nano units)."""

    dedicated: int = 0
    shares: int = 0
    consumed: tuple[tuple[str, int], ...] = ()

    @property
    def is_held(self) -> bool:
        """Tell whether anybody holds the device; the counters of a partition are charged exactly then."""
        return self.dedicated > 0 or self.shares > 0


UNUSED = Usage()
WHOLE = Usage(dedicated=1)


class Hold(NamedTuple):
    """What one allocation result, or one hold of an overlay, takes of a device."""

    device: DeviceKey
    usage: Usage


def holds_of(allocation: Allocation, *, sharing: bool = True) -> tuple[Hold, ...]:
    """List what *allocation* takes. Admin access takes nothing; without *sharing*, a share takes all of its device."""
    return tuple(
        Hold(result.device, _usage_of(result, sharing=sharing))
        for result in allocation.devices
        if not result.admin_access
    )


def _usage_of(result: AllocatedDevice, *, sharing: bool) -> Usage:
    if result.share_id is None or not sharing:
        return WHOLE
    consumed = tuple(sorted((name, amount.nanos) for name, amount in result.consumed_capacity if amount.nanos))
    return Usage(shares=1, consumed=consumed)


def add(left: Usage, right: Usage) -> Usage:
    """Add two usages of one device."""
    # Of a fleet's devices nearly all are taken as a whole, once: one value serves them all.
    return right if left is UNUSED else _combined(left, right, 1)


def subtract(left: Usage, right: Usage) -> Usage:
    """Take *right*, which was added before, out of *left*."""
    return _combined(left, right, -1)


def _combined(left: Usage, right: Usage, sign: int) -> Usage:
    consumed = left.consumed
    if right.consumed:
        amounts = dict(left.consumed)
        for name, amount in right.consumed:
            amounts[name] = amounts.get(name, 0) + sign * amount
        consumed = tuple(sorted((name, amount) for name, amount in amounts.items() if amount))
    return Usage(left.dedicated + sign * right.dedicated, left.shares + sign * right.shares, consumed)
