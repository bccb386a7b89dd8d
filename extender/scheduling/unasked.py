"""What is known of a pod of which no decision is remembered: why kube-scheduler may not ask, or where it runs."""

from collections.abc import Iterator
from typing import Final

from extender.model.footprint import Footprint
from extender.model.names import ObjectKey
from extender.scheduling.account import in_few_words
from extender.scheduling.decision import Given
from extender.scheduling.needs import Unplaceable, needs_of
from extender.state.belief import Belief

UNKNOWN: Final = "no pod of this name waits for a scheduler that is served here"
# Why it could not ask is told every few seconds in other words, and is not kept here.
WAITS: Final = "kube-scheduler has not asked, or could not: then its events and its condition say why"


def unasked(key: ObjectKey, belief: Belief) -> str:
    """Say how it is with the pod *key*: what keeps kube-scheduler from asking, as far as that is to be seen."""
    pod = belief.pods.get(key)
    if pod is None:
        bound = belief.loads.footprint(key)
        return _running(bound, belief) if bound else UNKNOWN
    if pod.scheduling_gates:
        return f"it is held back by scheduling gates: {', '.join(pod.scheduling_gates)}"
    needs = needs_of(pod, belief)
    if isinstance(needs, Unplaceable):
        return needs.detail
    return f"kube-scheduler says of it: {pod.refusal}" if pod.refusal else WAITS


def _running(bound: Footprint, belief: Belief) -> str:
    """Tell where it is and with which devices, as its claims say: why these is not among what lasts."""
    given = in_few_words(tuple(_given_to(bound, belief)))
    return f"it is on node {bound.node}" + (f" with {given}" if given else "")


def _given_to(bound: Footprint, belief: Belief) -> Iterator[Given]:
    # Two entries may name one claim.
    names = dict.fromkeys(bound.claims.split())
    named = (belief.cluster.claims.get(ObjectKey(bound.key.namespace, name)) for name in names)
    for claim in named:
        if claim and claim.allocation and any(user.uid == bound.uid for user in claim.reserved_for):
            yield from (Given(claim.key.name, item.request, item.device) for item in claim.allocation.devices)
