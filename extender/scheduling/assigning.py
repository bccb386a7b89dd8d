"""The Binding itself: a pod put on its node, or what is in the way. A Binding without an answer may land later."""

from collections.abc import Callable, Generator

from extender.model.frozen import dataclass
from extender.model.names import NodeName
from extender.model.node import FINISHED, Pod
from extender.scheduling.claiming import ATTEMPTS, patiently
from extender.scheduling.steps import (
    LASTING,
    BindPod,
    Done,
    Later,
    Outcome,
    Pause,
    ReadPod,
    Refusal,
    Refused,
    Step,
    TouchPod,
    Unknown,
    is_refused,
    pod_in,
    told_after,
    told_by,
)

# Says what is no longer as it was; nothing where all of it is, and cannot be taken back by what was sent before.
Confirming = Generator[Step, Outcome, str]


@dataclass(frozen=True, slots=True)
class Unassigned:
    """Why the pod is not on the node.

    *is_open*: as far as anybody knows, for a Binding may still land; *is_elsewhere*: it is on another node.
    """

    message: str
    is_open: bool = False
    is_elsewhere: bool = False


def certain() -> Confirming:
    """Confirm nothing: a pod without claims has nothing to lose."""
    yield from ()
    return ""


def assigned(
    pod: Pod,
    node: NodeName,
    loss: Callable[[], str] = lambda: "",
    confirmed: Callable[[], Confirming] = certain,
    *,
    is_checked: bool = False,
) -> Generator[Step, Outcome, Pod | Unassigned]:
    """Bind *pod*, unless there was a *loss*. An outcome that stays unknown is told as open: it may still land.

    Whoever has changed the pod meanwhile may be about to take from it what it has: that is *confirmed* to be there.
    is_checked: there was no loss a moment ago, and no step since.
    """
    outcome: Outcome = Done()
    for attempt in range(ATTEMPTS):
        obstacle = obstacle_of(pod) or ("" if is_checked and not attempt else loss())
        if obstacle:
            return Unassigned(obstacle)
        before, outcome = outcome, (yield BindPod(pod, node))
        match outcome:
            case Done():
                return pod
            case Later(seconds):
                yield Pause(seconds, BindPod(pod, node))
                continue
            case Refused(kind) if kind is not Refusal.CONFLICT:
                return Unassigned(f"the Binding was refused: {told_after(before, outcome)}")
        found = yield from _after_binding(pod, node, outcome)
        if isinstance(found, Unassigned) or found.node_name == node:
            return found
        is_other = found.extended_claim != pod.extended_claim
        problem = "the pod names another claim for its extended resources" if is_other else renamed(pod, found)
        problem = problem or (yield from confirmed())
        if problem:
            return Unassigned(problem)
        pod = found
    is_kept = isinstance(outcome, Later | Unknown)
    return Unassigned(f"the Binding was refused: {told_by(outcome)}" if is_kept else "the pod kept changing")


def kept_off(pod: Pod) -> Generator[Step, Outcome, bool]:
    """See to it that no Binding of *pod* can land that was sent before; False where one has, or where nobody knows.

    What the pod has may be taken from it then, and not before: our watch may be behind, or an answer may be missing.
    """
    outcome = yield from patiently(TouchPod(pod))
    if is_refused(outcome, Refusal.CONFLICT):
        # Perhaps there is another pod of its name by now.
        outcome = yield from patiently(ReadPod(pod.key))
        if fresh := pod_in(outcome):
            return fresh.uid != pod.uid
    fresh = pod_in(outcome)
    return not fresh.node_name if fresh else is_refused(outcome, Refusal.NOT_FOUND)


def obstacle_of(pod: Pod) -> str:
    """Say why *pod* cannot be bound as it is; nothing where it can."""
    if pod.is_deleting:
        return "the pod is being deleted"
    if pod.phase in FINISHED:
        return "the pod has finished"
    return "the pod has scheduling gates" if pod.scheduling_gates else ""


def renamed(before: Pod, after: Pod) -> str:
    """Say that other claims were made for *after* than for *before*: what was written for it is not what it would have.

    Whoever makes claims from templates makes a second one where the first answer was lost, and names that instead.
    """
    is_same = set(after.claim_statuses) == set(before.claim_statuses)
    return "" if is_same else "the pod names another claim that was made for it"


def _after_binding(pod: Pod, node: NodeName, sent: Outcome) -> Generator[Step, Outcome, Pod | Unassigned]:
    """Find out what became of a Binding; a pod without a node means: try again with it.

    A conflict leaves it as open as no answer does: of Bindings the API server says so of time-outs of etcd, too.
    """
    outcome = yield from patiently(ReadPod(pod.key))
    fresh = pod_in(outcome)
    if fresh and fresh.uid == pod.uid and not fresh.node_name:
        outcome = yield from patiently(TouchPod(fresh))
        fresh = pod_in(outcome)
    if fresh and fresh.uid == pod.uid:
        elsewhere = fresh.node_name and fresh.node_name != node
        return Unassigned(f"the pod is on node {fresh.node_name} already", is_elsewhere=True) if elsewhere else fresh
    if fresh or is_refused(outcome, Refusal.NOT_FOUND):
        return Unassigned("the pod is gone")
    # A conflict may mean that the pod is bound already. What we may not look at says more of why nobody knows.
    why = told_by(outcome if is_refused(outcome, *LASTING) else sent)
    return Unassigned(f"nobody knows yet whether the pod was bound: {why}", is_open=True)
