"""For which taint the pods of a claim are evicted: whoever joined them would be, too, and the claim never be freed."""

from collections.abc import Iterator

from extender.allocation.features import Features
from extender.allocation.snapshot import Snapshot
from extender.allocation.tainting import Tainting
from extender.model.claim import ResourceClaim
from extender.model.device import Device
from extender.model.names import DeviceKey
from extender.model.taint import NO_EXECUTE, Taint, blocking
from extender.state.belief import Belief


def eviction_of(claim: ResourceClaim, belief: Belief) -> str:
    """Say which device of an allocated *claim* has a taint that evicts; nothing where none has, or it is tolerated.

    As Kubernetes does: a toleration that names no effect lets a device be given, and its pods be evicted.
    """
    for item in claim.allocation.devices if claim.allocation else ():
        named = (entry for entry in item.tolerations if entry.effect == NO_EXECUTE)
        for taint in blocking(_evicting(item.device, belief), named):
            told = f"{taint.key}={taint.value}:{taint.effect}"
            return f"claim {claim.key.name}: device {'/'.join(item.device)} has taint {told}"
    return ""


def _evicting(key: DeviceKey, belief: Belief) -> tuple[Taint, ...]:
    """Return the taints of a device for which pods are evicted: hundreds may wait for a claim, and rules be many."""
    snapshot, features = belief.cluster.snapshot, belief.questions.features
    if not features.device_taints:
        return ()
    known = snapshot.boards.evicting
    if (key, features) not in known:
        known[key, features] = tuple(_found(key, snapshot, features))
    return known[key, features]


def _found(key: DeviceKey, snapshot: Snapshot, features: Features) -> Iterator[Taint]:
    """Go through what is published, and rules; these may name a device that is not published any more."""
    device = snapshot.inventory.newest(key) or Device(key.device)
    rules = snapshot.rules.values() if features.device_taint_rules else ()
    evicting = tuple(rule for rule in rules if rule.taint.effect == NO_EXECUTE)
    for taint in (*device.traits.taints, *Tainting(evicting, snapshot.classes).taints(key, device)):
        if taint.effect == NO_EXECUTE:
            yield taint
