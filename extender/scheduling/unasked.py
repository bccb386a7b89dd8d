"""What is known of a pod about which nobody has asked: why kube-scheduler may not have come to it yet."""

from typing import Final

from extender.model.names import ObjectKey
from extender.scheduling.needs import Unplaceable, needs_of
from extender.state.belief import Belief

UNKNOWN: Final = "no pod of this name waits for a scheduler that is served here"


def unasked(key: ObjectKey, belief: Belief) -> str:
    """Say how it is with the pod *key*: what keeps kube-scheduler from asking, as far as that is to be seen."""
    pod = belief.pods.get(key)
    if pod is None:
        bound = belief.loads.footprint(key)
        return f"it is on node {bound.node}" if bound else UNKNOWN
    if pod.scheduling_gates:
        return f"it is held back by scheduling gates: {', '.join(pod.scheduling_gates)}"
    needs = needs_of(pod, belief)
    if isinstance(needs, Unplaceable):
        return needs.detail
    return f"kube-scheduler says of it: {pod.refusal}" if pod.refusal else "it waits for kube-scheduler"
