"""Which claim has a pod's extended resources: told in the pod's status, as the pod was read and not otherwise."""

from collections.abc import Callable, Generator

from extender.allocation.extended import Hidden
from extender.model.node import Pod
from extender.scheduling.assigning import Confirming, certain
from extender.scheduling.claiming import ATTEMPTS, Problem
from extender.scheduling.steps import Done, MapExtended, Outcome, ReadPod, Refusal, Refused, Step, told_by


def mapped(
    pod: Pod, claim: str, hidden: Hidden | None, confirmed: Callable[[], Confirming] = certain
) -> Generator[Step, Outcome, Pod | Problem]:
    """Have the status of *pod* name *claim*; return the pod as it is then.

    A write for an earlier claim may be on its way still; based on the pod as it was, it cannot land after ours. Where
    somebody has changed the pod, what was written for it has to be *confirmed*, as before a second Binding.
    """
    outcome: Outcome = yield MapExtended(pod, claim, hidden)
    for _ in range(ATTEMPTS):
        if not (isinstance(outcome, Refused) and outcome.kind is Refusal.CONFLICT):
            break
        read = yield ReadPod(pod.key)
        fresh = read.what if isinstance(read, Done) else None
        if not isinstance(fresh, Pod) or fresh.uid != pod.uid:
            return Problem(f"the pod cannot be read: {told_by(read)}")
        if fresh.node_name:
            # It runs with what its status names.
            return Problem(f"the pod is on node {fresh.node_name} already")
        problem = yield from confirmed()
        if problem:
            return Problem(problem)
        outcome = yield MapExtended(fresh, claim, hidden)
    done = outcome.what if isinstance(outcome, Done) else None
    return done if isinstance(done, Pod) else Problem(f"the pod's status could not be written: {told_by(outcome)}")
