"""Whether devices that have to be made ready first are ready: drivers report it in the claim's status."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from extender.model.claim import AllocatedDevice, ResourceClaim

# How long a driver may take, counted from the allocation.
TIMEOUT_S = 600.0


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


def standing_of(claims: Iterable[ResourceClaim], now: float, allocated_at: float | None) -> Standing:
    """Judge the devices of *claims*, which were allocated at *allocated_at* (None where nobody knows)."""
    waiting = READY
    for claim in claims:
        for item in claim.allocation.devices if claim.allocation else ():
            found = _of_device(claim, item)
            if found.readiness is Readiness.FAILED:
                return found
            waiting = found if found.readiness is Readiness.WAITING else waiting
    if waiting.readiness is Readiness.WAITING and allocated_at is not None and now - allocated_at > TIMEOUT_S:
        return Standing(Readiness.FAILED, f"{waiting.detail} for {TIMEOUT_S:.0f} s")
    return waiting


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
