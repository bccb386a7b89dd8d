"""Which pod the scheduler means, as it is now."""

from collections.abc import Generator

from extender.model.node import Pod
from extender.scheduling.claiming import patiently
from extender.scheduling.endings import NotBound, Order
from extender.scheduling.needs import Needs, Unplaceable, needs_of
from extender.scheduling.steps import Outcome, ReadPod, Refusal, Step, is_refused, pod_in, told_by
from extender.scheduling.vocabulary import Word
from extender.state.belief import Belief
from extender.state.ledger import Event


def _is_behind(pod: Pod, needs: Needs | Unplaceable) -> bool:
    """Tell whether the scheduler must have seen *pod* in a later state than our watch has shown: it was let in."""
    return bool(pod.scheduling_gates) or (isinstance(needs, Unplaceable) and needs.word is Word.CLAIM_WAITING)


def current(order: Order, belief: Belief) -> Generator[Step, Outcome, tuple[Pod, Needs | Unplaceable] | NotBound]:
    """Return the pod that is meant, as the watch shows it or as the API server has it, and what it needs."""
    pod = belief.pods.with_uid(order.uid)
    needs = needs_of(pod, belief) if pod else None
    if pod is None or needs is None or _is_behind(pod, needs):
        outcome = yield from patiently(ReadPod(order.pod))
        found = pod_in(outcome)
        waits = not found.node_name and found.uid == order.uid if found else not is_refused(outcome, Refusal.NOT_FOUND)
        if pod is None and not waits:
            # It was asked about late: our watch has shown that it waits no longer, and does not show that again.
            belief.ledger.tell(order.uid, Event.POD_GONE)
        if found is None:
            return NotBound(f"pod {order.pod} cannot be read: {told_by(outcome)}")
        pod, needs = found, needs_of(found, belief)
    if (pod.key, pod.uid) != (order.pod, order.uid):
        return NotBound(f"pod {order.pod} is another one by now")
    if not belief.pods.serves(pod):
        return NotBound(f"scheduler {pod.scheduler!r} is not configured here")
    return pod, needs
