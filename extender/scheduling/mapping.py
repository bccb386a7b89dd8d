"""Which claim has a pod's extended resources: told in the pod's status, as the pod was read and not otherwise.

kube-controller-manager looks after the claims that a pod names. One that no pod names, and that was deleted while it
was reserved, nobody would ever free: so it is freed first, or left to whoever finds it with its owner.
"""

from collections.abc import Callable, Generator, Iterable, Mapping

from extender.allocation.extended import Hidden
from extender.model.claim import ResourceClaim
from extender.model.names import Uid
from extender.model.node import Pod
from extender.scheduling.assigning import Confirming, certain, renamed
from extender.scheduling.claiming import ATTEMPTS, NotHad, deleted, patiently, release, same_claim
from extender.scheduling.steps import (
    MapExtended,
    Outcome,
    ReadPod,
    Refusal,
    Step,
    TouchClaim,
    is_refused,
    pod_in,
    told_by,
)
from extender.scheduling.unkept import unmapped


def mapped(
    pod: Pod, claim: str, hidden: Hidden | None, confirmed: Callable[[], Confirming] = certain
) -> Generator[Step, Outcome, Pod | NotHad]:
    """Have the status of *pod* name *claim*; return the pod as it is then.

    A write for an earlier claim may be on its way still; based on the pod as it was, it cannot land after ours. Where
    somebody has changed the pod, what was written for it has to be *confirmed*, as before a second Binding.
    """
    outcome = yield from patiently(MapExtended(pod, claim, hidden))
    for _ in range(ATTEMPTS):
        if not is_refused(outcome, Refusal.CONFLICT):
            break
        read = yield from patiently(ReadPod(pod.key))
        fresh = pod_in(read)
        if fresh is None or fresh.uid != pod.uid:
            return NotHad(f"the pod cannot be read: {told_by(read)}")
        if fresh.node_name:
            # It runs with what its status names.
            return NotHad(f"the pod is on node {fresh.node_name} already")
        problem = renamed(pod, fresh) or (yield from confirmed())
        if problem:
            return NotHad(problem)
        outcome = yield from patiently(MapExtended(fresh, claim, hidden))
    done = pod_in(outcome)
    if done is None:
        return NotHad(f"the pod's status could not be written: {told_by(outcome)}")
    problem = unmapped(done, claim)
    return NotHad(problem) if problem else done


def unmade(made: Iterable[ResourceClaim], freed: Mapping[Uid, bool], pod: Pod) -> Generator[Step, Outcome, None]:
    """Delete what was *made* for *pod* and is *freed*; of what was not written nobody knows that it is empty."""
    for claim in made:
        match freed.get(claim.uid):
            case True:
                yield from deleted(claim)
            case False:
                yield from spared([claim], pod)
            case None:
                yield from _given_up(claim, pod)


def spared(made: Iterable[ResourceClaim], pod: Pod) -> Generator[Step, Outcome, None]:
    """Give up what was *made* for *pod*, if the pod has a node, and runs there with another claim."""
    for claim in made:
        fresh = pod_in((yield from patiently(ReadPod(pod.key))))
        if fresh is None or fresh.uid != pod.uid or not fresh.node_name:
            return
        if fresh.extended_claim not in (None, claim.key.name):
            yield from _given_up(claim, pod)


def _given_up(claim: ResourceClaim, pod: Pod) -> Generator[Step, Outcome, None]:
    """Delete a claim that *pod* does not use, once it holds nothing and nothing can land in it."""
    fresh = same_claim(claim.uid, (yield from patiently(TouchClaim(claim))))
    if fresh is not None and (yield from release(fresh, pod, is_ours=True)):
        yield from deleted(fresh)
