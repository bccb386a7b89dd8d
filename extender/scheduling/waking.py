"""Which pods to wake, now that something has changed: those that fit, and no more than what is free serves.

Whoever is woken is promised its devices first, so that the next in line is measured by what is left.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.needs import Refused, needs_of
from extender.scheduling.planner import Offer, Planner
from extender.state.belief import Belief

# Pods looked at in one round: the others have their turn in the next.
MOST = 64


class Wake(NamedTuple):
    """A pod that fits, and the node that it is to try first."""

    pod: Pod
    node: NodeName


@dataclass(slots=True)
class Waker:
    """The pods that were rejected. One writer.

    patience_s: how long a woken pod has to come back before others are woken in its place.
    """

    belief: Belief
    planner: Planner
    patience_s: float = 15.0
    _waiting: dict[Uid, None] = field(default_factory=dict)
    _woken: dict[Uid, float] = field(default_factory=dict)
    _seen: object = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, pod: Uid) -> None:
        """Remember that *pod* was rejected."""
        self._waiting[pod] = None
        self._woken.pop(pod, None)

    def drop(self, pod: Uid) -> None:
        """Forget a pod that was offered nodes, is bound or gone."""
        self._waiting.pop(pod, None)
        self._woken.pop(pod, None)

    @property
    def is_due(self) -> bool:
        """Whether anything has changed since the last round, and anybody waits."""
        return bool(self._waiting) and self._seen is not self.belief.seen_by()

    def round(self, now: float, most: int = MOST) -> list[Wake]:
        """Choose whom to wake, by priority and then by age. A question that fits nowhere is not asked again."""
        wakes: list[Wake] = []
        hopeless: set[object] = set()
        for pod in self._in_line(now):
            if len(wakes) == most:
                break
            plan = self._plan(pod, hopeless, now)
            if isinstance(plan, Offer):
                wakes.append(Wake(pod, plan.placement.node))
                self._woken[pod.uid] = now
        self._seen = self.belief.seen_by()
        return wakes

    def _plan(self, pod: Pod, hopeless: set[object], now: float) -> object:
        needs = needs_of(pod, self.belief)
        if isinstance(needs, Refused):
            return needs
        question = (tuple(claim.spec for claim in needs.pending), needs.extended)
        is_alone = not needs.allocated
        if is_alone and question in hopeless:
            return None
        plan = self.planner.plan(pod, None, now, is_answer=False)
        if is_alone and not isinstance(plan, Offer):
            hopeless.add(question)
        return plan

    def _in_line(self, now: float) -> Iterator[Pod]:
        waiting = [pod for uid in tuple(self._waiting) if (pod := self._known(uid)) is not None]
        for pod in sorted(waiting, key=lambda pod: (-pod.priority, pod.created, pod.key)):
            if now - self._woken.get(pod.uid, now - self.patience_s) >= self.patience_s:
                yield pod

    def _known(self, uid: Uid) -> Pod | None:
        pod = self.belief.pods.with_uid(uid)
        if pod is None or pod.is_deleting:
            self.drop(uid)
            return None
        return pod


def expired(belief: Belief, now: float, ttl_s: float) -> Iterable[Uid]:
    """Name the pods that were offered something and did not come for it within *ttl_s*."""
    return [promise.pod for promise in belief.ledger if not promise.is_binding and now - promise.since > ttl_s]
