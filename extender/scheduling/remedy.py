"""Mending what stands in the way of pods: allocations that cannot be used, writes that nobody knows the end of.

kube-scheduler frees such allocations itself where its own plugin allocates. Ours is off in the profile that we serve.
"""

from collections.abc import Generator

from extender.model.claim import ResourceClaim
from extender.model.node import Pod
from extender.scheduling.claiming import release
from extender.scheduling.needs import stale_claim
from extender.scheduling.steps import DeleteClaim, Done, Outcome, ReadClaim, Refusal, Refused, Step, TouchClaim
from extender.state.belief import Belief
from extender.state.claims import Asked
from extender.state.ledger import Event, Phase

Mending = Generator[Step, Outcome, bool]


def unusable(pod: Pod, belief: Belief) -> tuple[ResourceClaim, ...]:
    """Return the allocated claims of *pod* that nobody else uses: freeing them lets the pod go elsewhere."""
    asked = belief.cluster.claims.asked_by(pod)
    if not isinstance(asked, Asked):
        return ()
    return tuple(claim for claim in asked.allocated if all(consumer.uid == pod.uid for consumer in claim.reserved_for))


def freed(pod: Pod, belief: Belief) -> Mending:
    """Deallocate the claims that keep *pod* where it cannot go, and delete the one left from an earlier attempt."""
    done = False
    for claim in unusable(pod, belief):
        done = (yield from release(claim, pod, is_ours=True)) or done
    stale = stale_claim(pod, belief)
    if stale is not None:
        yield from release(stale, pod, is_ours=True)
        done = isinstance((yield DeleteClaim(stale)), Done) or done
    return done


def settled(belief: Belief) -> Mending:
    """Find out about every write whose outcome is unknown, or see to it that it cannot land any more."""
    found = False
    for promise in tuple(belief.ledger):
        for hold in promise.claims:
            claim = belief.cluster.claims.with_uid(hold.claim)
            if hold.phase is Phase.UNKNOWN and claim is not None:
                found = (yield from _settle(claim, belief)) or found
    return found


def _settle(claim: ResourceClaim, belief: Belief) -> Mending:
    outcome = yield ReadClaim(claim.key)
    if isinstance(outcome, Refused) and outcome.kind is Refusal.NOT_FOUND:
        belief.ledger.tell_claim(claim.uid, Event.OUTDATED)
        return True
    fresh = outcome.what if isinstance(outcome, Done) else None
    if not isinstance(fresh, ResourceClaim):
        return False
    if fresh.uid == claim.uid and fresh.allocation is not None:
        belief.ledger.tell_claim(claim.uid, Event.ACCEPTED)
        return True
    outcome = yield TouchClaim(fresh)
    touched = outcome.what if isinstance(outcome, Done) else None
    if fresh.uid != claim.uid or (isinstance(touched, ResourceClaim) and touched.allocation is None):
        belief.ledger.tell_claim(claim.uid, Event.OUTDATED)
        return True
    return False
