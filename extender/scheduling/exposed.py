"""What a write could still change that an earlier leader or process has sent, and that is on its way somewhere."""

from collections.abc import Iterator

from extender.model.claim import ResourceClaim
from extender.model.node import Pod
from extender.state.belief import Belief


def exposed(belief: Belief) -> Iterator[ResourceClaim | Pod]:
    """Yield what has to be moved on to another version before we allocate or free anything.

    Each write that gives, frees or binds names the version that it was meant for: it lands on that or not at all.
    Devices are given to claims without any. They are taken back from claims of pods that wait, and those pods are
    bound with them. All else is moved on by our own next write, before it can matter: nobody is bound with the devices
    of a claim that was not reserved for him just now.
    """
    bound_next: dict[str, Pod] = {}
    for claim in belief.cluster.claims:
        waiting = [] if claim.allocation is None else _waiting_in(claim, belief)
        bound_next.update((pod.uid, pod) for pod in waiting)
        # One that cannot be read asks for nothing that is not ours: an earlier process may have been able to read it.
        if (claim.allocation is None or waiting) and belief.ownership.domain.gives(claim):
            yield claim
    yield from bound_next.values()


def _waiting_in(claim: ResourceClaim, belief: Belief) -> list[Pod]:
    """Return the pods that wait and for which *claim* is reserved."""
    users = (belief.pods.with_uid(user.uid) for user in claim.reserved_for)
    return [pod for pod in users if pod is not None]
