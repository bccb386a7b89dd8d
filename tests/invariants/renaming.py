"""A claim that kube-controller-manager made twice, of which it names the other once the pod is bound with the first.

So 1.37.1 does where the answer to the claim that it made is lost: it makes another, and whichever it finds first when
it looks at the pod once more, before it has heard what the pod's status says by now, is written there. Nobody who binds
can know; what the pod was bound with has to be right, and that is judged in place of what it names since.
"""

from collections.abc import Mapping
from typing import Final

from tests.invariants.reading import Json, is_allocated, name, reserved, uid

ENTRY: Final = "resource.kubernetes.io/pod-claim-name"
MANAGER: Final = "ResourceClaimController"


def bound_with(claims: Mapping[str, Json], pod: Json, key: str | None) -> str | None:
    """Return the claim that the bound *pod* had in place of *key*, which it names, where it was given that too late."""
    named = claims.get(key or "")
    if named is None or is_allocated(named) or not _is_late(pod):
        return key
    twins = [name(other) for other in claims.values() if _are_twins(named, other) and uid(pod) in reserved(other)]
    return twins[0] if twins else key


def _are_twins(claim: Json, other: Json) -> bool:
    """Tell whether both were made for the same entry of the same pod."""
    made = _made_for(claim)
    return claim is not other and all(made) and made == _made_for(other)


def _made_for(claim: Json) -> tuple[str | None, str | None]:
    metadata = claim["metadata"]
    owners = [owner["uid"] for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
    return (metadata.get("annotations") or {}).get(ENTRY), next(iter(owners), None)


def _is_late(pod: Json) -> bool:
    """Tell whether the names of the claims were written in the second of the binding, or later."""
    fields = pod["metadata"].get("managedFields") or ()
    written = [each["time"] for each in fields if (each["manager"], each.get("subresource")) == (MANAGER, "status")]
    conditions = pod["status"].get("conditions") or ()
    bound = [item["lastTransitionTime"] for item in conditions if item["type"] == "PodScheduled"]
    return bool(written and bound) and max(written) >= max(bound)
