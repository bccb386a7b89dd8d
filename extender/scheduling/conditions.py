"""Whether devices that have to be made ready first are ready: drivers report it in the claim's status."""

from collections.abc import Iterable
from enum import Enum, auto
from functools import lru_cache

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.library.clock import NANOS, format_timestamp, parse_timestamp
from extender.allocation.cel.values import Timestamp
from extender.model.claim import AllocatedDevice, ResourceClaim
from extender.model.frozen import dataclass
from extender.model.names import Uid

# By how much the clock that dated the allocation may be ahead of ours.
SKEW_S = 60.0


class Readiness(Enum):
    """How far the devices are."""

    READY = auto()
    WAITING = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the devices are, and which condition decides that."""

    readiness: Readiness
    detail: str = ""


READY = Standing(Readiness.READY)


def time_of(now: float) -> str:
    """Write a time in seconds since 1970 as Kubernetes does, in whole seconds."""
    return _written(int(now))


def standing_of(claims: Iterable[ResourceClaim], now: float, within_s: float) -> Standing:
    """Judge the devices of *claims* at the time *now*, in seconds since 1970, where drivers may take *within_s*."""
    waiting = READY
    for claim in claims:
        for item in claim.allocation.devices if claim.allocation else ():
            found = _in_time(_of_device(claim, item), claim, now, within_s)
            if found.readiness is Readiness.FAILED:
                return found
            waiting = found if found.readiness is Readiness.WAITING else waiting
    return waiting


def is_waited_for(claims: Iterable[ResourceClaim], now: float, within_s: float) -> bool:
    """Tell whether devices of *claims* are neither ready nor given up."""
    return standing_of(claims, now, within_s).readiness is Readiness.WAITING


def have_failed(claims: Iterable[ResourceClaim], now: float, within_s: float) -> bool:
    """Tell whether some devices of *claims* cannot be made ready."""
    return standing_of(claims, now, within_s).readiness is Readiness.FAILED


def failed_for_others(claims: Iterable[ResourceClaim], pod: Uid, now: float, within_s: float) -> str:
    """Say which of *claims*, that others than *pod* use as well, has devices that cannot be made ready.

    Those of a claim that it has alone are freed; in those its part is given up.
    """
    shared = (claim for claim in claims if any(user.uid != pod for user in claim.reserved_for))
    standing = standing_of(shared, now, within_s)
    return standing.detail if standing.readiness is Readiness.FAILED else ""


@lru_cache(maxsize=1)
def _written(seconds: int) -> str:
    return format_timestamp(Timestamp(seconds * NANOS))


def _in_time(found: Standing, claim: ResourceClaim, now: float, within_s: float) -> Standing:
    """Give up waiting for a claim that was allocated too long ago; one that does not say when is waited for.

    One that says that it will be was dated by a clock that has been set back: to wait until it is late would take as
    long as that clock was ahead. Allocated anew, it has a date that can be counted from.
    """
    since = _allocated_at(claim) if found.readiness is Readiness.WAITING else None
    if since is None or -SKEW_S <= now - since <= within_s:
        return found
    why = "and was allocated in the future" if now < since else f"for {within_s:g} s"
    return Standing(Readiness.FAILED, f"{found.detail} {why}")


def _allocated_at(claim: ResourceClaim) -> float | None:
    stamp = claim.allocation.timestamp if claim.allocation else None
    try:
        return parse_timestamp(stamp).nanos / NANOS if stamp else None
    except Failed:
        return None


def _of_device(claim: ResourceClaim, item: AllocatedDevice) -> Standing:
    if not item.binding_conditions:
        return READY
    true = {
        condition.type
        for condition in claim.device_conditions
        if condition.device == item.device and condition.share_id == item.share_id and condition.status == "True"
    }
    failed = [name for name in item.binding_failure_conditions if name in true]
    if failed:
        return Standing(Readiness.FAILED, f"device {'/'.join(item.device)} reports {failed[0]}")
    missing = [name for name in item.binding_conditions if name not in true]
    if missing:
        return Standing(Readiness.WAITING, f"device {'/'.join(item.device)} is waiting for {missing[0]}")
    return READY
