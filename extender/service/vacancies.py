"""Room on a node that kube-scheduler has kept for a pod which it binds elsewhere: it tells nobody that this is free.

It counts a nominated pod on its node until it has placed it. Whom NodeResourcesFit alone has refused for that waits for
five minutes (kubernetes/kubernetes#134859), unless somebody goes from a node, or another nomination is taken back: of
that all hear that are no more important than who had it.
"""

import asyncio
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.model.terms import Terms
from extender.scheduling.endings import NotBound, Order, Result
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.waking import Waker
from extender.state.belief import Belief
from extender.topology.memo import Memo

# In the condition of whom NodeResourcesFit has refused.
WORDS: Final = ("Insufficient ", "Too many pods")
# How long after a nomination without an answer somebody is nominated again: by then it is shown if it has landed. And
# how often: kube-scheduler tries all of them itself some minutes later.
AGAIN_S: Final = 30.0
AGAIN: Final = 3
# Pods that are on their way to be bound, about.
REMEMBERED: Final = 1024


class Kept(NamedTuple):
    """Where a pod was nominated when it was offered nodes, and whom that kept away: no more important ones."""

    node: NodeName
    priority: int


class Left(NamedTuple):
    """A node that is left: for pods how important it was kept, how often there was no answer, until when it rests."""

    priority: int
    unanswered: int = 0
    until: float = -inf


@dataclass(slots=True)
class Vacancies:
    """Remembers for whom room is kept, and where it was in vain. *waker* knows who is woken anyway."""

    belief: Belief
    waker: Waker
    _kept: Memo[Uid, Kept] = field(default_factory=lambda: Memo(REMEMBERED))
    _left: dict[NodeName, Left] = field(default_factory=dict)

    def offered(self, pod: Pod) -> None:
        """Remember where *pod* is nominated as the scheduler knows it, which has found it a place now."""
        if pod.nominated_node:
            self._kept[pod.uid] = Kept(pod.nominated_node, pod.priority)
        else:
            self._kept.pop(pod.uid, None)

    def ended(self, order: Order, result: Result) -> None:
        """Take note of a pod that is bound elsewhere than it was nominated."""
        kept = self._kept.pop(order.uid, None)
        if kept is not None and kept.node != order.node and not isinstance(result, NotBound):
            before = self._left.get(kept.node)
            self._left[kept.node] = Left(max(kept.priority, before.priority) if before else kept.priority)

    def due(self, now: float) -> list[tuple[NodeName, Left]]:
        """Return the nodes that are left, but for those that rest."""
        return [(node, left) for node, left in self._left.items() if left.until <= now]

    def unanswered(self, node: NodeName, left: Left, now: float) -> None:
        """Leave *node* for a while, and have somebody tried there again: there was no answer when that was written."""
        if left.unanswered < AGAIN:
            self._left.setdefault(node, Left(left.priority, left.unanswered + 1, now + AGAIN_S))

    async def first(self, node: NodeName) -> Pod | None:
        """Find the most important pod that may have waited for room on *node*, which is left no more then.

        Of pods with the same terms one is looked at, and after each the scheduler is answered.
        """
        left, vain = self._left.pop(node), set[Terms]()
        waiting = [pod for pod in self.belief.pods if pod.priority <= left.priority and self._lacks_room(pod)]
        for pod in sorted(waiting, key=lambda pod: (pod.priority, pod.key), reverse=True):
            if pod.terms in vain:
                continue
            needs = needs_of(pod, self.belief)
            if isinstance(needs, Needs):
                if self._has_room(needs, node):
                    return pod
                vain.add(pod.terms)
            await asyncio.sleep(0)
        return None

    def _lacks_room(self, pod: Pod) -> bool:
        is_alone = not (pod.nominated_node or pod.is_deleting or pod.uid in self.waker)
        return is_alone and any(word in pod.refusal for word in WORDS)

    def _has_room(self, needs: Needs, node: NodeName) -> bool:
        """Tell whether the pod can be on *node*, devices apart, as far as we know."""
        possible, number = self.waker.planner.possible.nodes(needs), self.belief.cluster.snapshot.layout.number(node)
        return number is not None and (possible is None or bool(possible[number]))
