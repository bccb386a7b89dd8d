"""Who goes first: what a pod was promised before anybody asked about it is there for those of higher priority.

Promises keep pods that are planned one after another off each other's devices. The scheduler has not heard of those
that are no answers, and would give the devices to the pod that it asks about first: the more important one.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from extender.model.node import Pod
from extender.scheduling.planner import Offer, Plan, Planner, Rejection
from extender.scheduling.vocabulary import Word
from extender.state.belief import Belief
from extender.state.ledger import Event, Promise

# What may be because of a promise.
SHORT: Final = frozenset((Word.IN_USE, Word.CAPACITY, Word.COUNTERS, Word.CONSTRAINT, Word.TOGETHER, Word.POLICY))


def planned(planner: Planner, pod: Pod, names: Sequence[str] | None, now: float, *, is_answer: bool = True) -> Plan:
    """Plan *pod*, at the cost of less important ones that nobody has asked about yet if it fits only so."""
    plan = planner.plan(pod, names, now, is_answer=is_answer)
    if not isinstance(plan, Rejection) or plan.word not in SHORT:
        return plan
    lower, ledger = _lower(pod, planner.belief), planner.belief.ledger
    if not lower:
        return plan
    for promise in lower:
        ledger.tell(promise.pod, Event.EXPIRED)
    again = planner.plan(pod, names, now, is_answer=is_answer)
    for promise in _beside(ledger.of_pod(pod.uid), lower):
        ledger.offer(promise)
    return again if isinstance(again, Offer) else plan


def _lower(pod: Pod, belief: Belief) -> list[Promise]:
    """Return what was promised to less important pods without an answer."""
    open_ = (promise for promise in belief.ledger if not promise.is_answer and not promise.is_binding)
    waiting = ((belief.pods.with_uid(promise.pod), promise) for promise in open_)
    return [promise for other, promise in waiting if other is not None and other.priority < pod.priority]


def _beside(taken: Promise | None, lower: Iterable[Promise]) -> Iterable[Promise]:
    """Return those that stand beside what was *taken*: devices share what they have with others of their pool alone."""
    pools = _pools(taken) if taken else frozenset()
    return (promise for promise in lower if not pools & _pools(promise))


def _pools(promise: Promise) -> frozenset[tuple[str, str]]:
    return frozenset((hold.device.driver, hold.device.pool) for claim in promise.claims for hold in claim.devices)
