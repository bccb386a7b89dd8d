"""What an API server leaves out of what it was sent: it says nothing of that, and answers as if all of it was stored.

It does so with fields behind a feature gate that is off there, and with what an admission policy or webhook changes.
Bound all the same, a pod would start before its device is ready, with a whole device in place of its share, with one
that was not chosen for it, or without any; or others of its claim would go to nodes without the device. What it spells
anew is not compared: amounts, and whatever is in configuration.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from extender.model.claim import AllocatedDevice, Allocation, ResourceClaim
from extender.model.node import Pod

ADMISSION: Final = "as where an admission policy or webhook changes the status of claims"


def unkept_of(claim: ResourceClaim, written: Allocation) -> str:
    """Say what *claim*, as it was answered, lacks of what was *written*."""
    stands = claim.allocation or Allocation()
    kept, is_elsewhere = stands.devices, stands.node_selector != written.node_selector
    if kept == written.devices and not is_elsewhere:  # as nearly always
        return ""
    if is_elsewhere or _named(kept) != _named(written.devices):
        stored = ", ".join("/".join(item.device) for item in kept) or "no devices"
        where = " for other nodes" if kept and is_elsewhere else ""
        told = f"the API server has stored {stored}{where} in place of what was written"
        return f"claim {claim.key.name}: {told}, {ADMISSION}"
    for sent, found in zip(written.devices, kept, strict=True):
        for field, gate, was_sent, was_kept in _gated(sent, found):
            if was_sent and was_sent != was_kept:
                return f"claim {claim.key.name}: {_told(field, gate)}"
    return ""


def unmapped(pod: Pod, claim: str) -> str:
    """Say that the status of *pod*, as it was answered, does not name *claim*; nothing where it does."""
    return "" if pod.extended_claim == claim else _told("the pod's extendedResourceClaimStatus", "DRAExtendedResource")


def unshared(allocation: Allocation) -> Allocation:
    """Return what is kept of *allocation* where shares are not."""
    devices = (replace(item, share_id=None, consumed_capacity=()) for item in allocation.devices)
    return replace(allocation, devices=tuple(devices))


def _named(devices: tuple[AllocatedDevice, ...]) -> list[tuple[object, ...]]:
    return [(item.request, item.device) for item in devices]


def _gated(sent: AllocatedDevice, found: AllocatedDevice) -> Iterator[tuple[str, str, object, object]]:
    """Yield each field that a gate is for, the gate, what was sent, and what was kept."""
    binding, skipped = "DRADeviceBindingConditions", "DRAOptionalNodeOperations"
    yield "bindingConditions", binding, sent.binding_conditions, found.binding_conditions
    yield "bindingFailureConditions", binding, sent.binding_failure_conditions, found.binding_failure_conditions
    yield "shareID", "DRAConsumableCapacity", sent.share_id, found.share_id
    yield "skipNodeOperations", skipped, sent.skip_node_operations, found.skip_node_operations
    yield "adminAccess", "DRAAdminAccess", sent.admin_access, found.admin_access


def _told(field: str, gate: str) -> str:
    return f"the API server does not keep {field}, as where the feature {gate} is off"
