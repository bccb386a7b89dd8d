"""What a claim may not have for earlier ones, for people: a device of one of them, or what does not suffice for all."""

from extender.model.claim import ResourceClaim
from extender.model.names import DeviceKey
from extender.state.belief import Belief
from extender.state.contest import rivals


def contest_of(claim: ResourceClaim, belief: Belief) -> str:
    """Say which device *claim* may not have, and whose it is; nothing where it may have all that it holds."""
    device = belief.contested(claim)
    return "" if device is None else f"claim {claim.key.name}: {_told(claim, device, belief)}"


def _told(claim: ResourceClaim, device: DeviceKey, belief: Belief) -> str:
    earlier, name = list(belief.seniority.earlier(claim.key)), "/".join(device)
    is_whole = belief.seniority.of(claim.key)[device].dedicated
    for other, uses in earlier:
        if device in uses and (is_whole or uses[device].dedicated):
            return f"the earlier claim {other} holds {name}"
    found = list(rivals(device, earlier, belief.cluster.snapshot.inventory))
    if not found:
        return f"{name} does not suffice for it and earlier claims"
    others = f"the earlier claim {found[0]}" if len(found) == 1 else f"{len(found)} earlier claims, such as {found[0]}"
    return f"{name} does not suffice for it and {others}"
