"""Offers that end because nobody comes for them, and those that do not: the scheduler is on its way.

Between filter and bind it may wait for minutes, for volumes that are made where the pod will be, or for a plugin of its
phase Permit. Before it does, it nominates the pod for the node that it has taken; when that comes to nothing, it takes
the nomination back or says in the pod's condition why.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.waking import Waker
from extender.state.belief import Belief
from extender.state.ledger import Event, Promise

# How long kube-scheduler may take to ask about a pod that was woken: it backs off for ten seconds at most by default.
# Where its own plugins alone have refused the pod, nothing that we can do has it tried.
UNASKED_S: Final = 12.0


class Said(NamedTuple):
    """What the scheduler has said of a pod: where it is to be, and why it was not placed before.

    *refusals*: as it knew the pod and as we do; either may be behind. *since*: when the first such offer was made.
    """

    node: NodeName | None
    refusals: frozenset[str]
    since: float


@dataclass(slots=True)
class Expiry:
    """Ends offers after *offer_s*, or after *wait_s* where the scheduler is on its way.

    *waker*: who has woken those that were not just sent ahead. is_offered: whether a node was among those that a pod
    was offered last. unasked: told of each pod that was woken and is not asked about in time.
    """

    belief: Belief
    waker: Waker
    offer_s: float
    wait_s: float
    is_offered: Callable[[Uid, NodeName], bool] = lambda _pod, _node: True
    unasked: Callable[[Uid], None] = lambda _pod: None
    # Of pods that were offered something, when they were, or when they were nominated since.
    _said: dict[Uid, Said] = field(default_factory=dict)

    def offered(self, pod: Pod) -> None:
        """Remember that *pod*, as the scheduler knows it, was offered something."""
        promise = self.belief.ledger.of_pod(pod.uid)
        before = self._said.pop(pod.uid, None)
        if promise is None:
            return
        shown = self.belief.pods.with_uid(pod.uid) or pod
        said = Said(shown.nominated_node, frozenset((shown.refusal, pod.refusal)), promise.since)
        if before is not None and before.node == said.node:
            # It came back, and a nomination that outlasts that says little: it is waited for once.
            said = said._replace(since=before.since)
        self._said[pod.uid] = said

    def round(self, now: float) -> Sequence[Uid]:
        """End the offers that nobody has come for; name the pods that had them."""
        for uid in tuple(self._said):
            self._look(uid, now)
        unasked = [promise.pod for promise in self.belief.ledger if self._is_unasked(promise, now)]
        ended = [uid for uid in expired(self.belief, now, self.offer_s) if not self._is_awaited(uid, now)]
        for uid in (*unasked, *ended):
            self.belief.ledger.tell(uid, Event.EXPIRED)
        for uid in unasked:
            self.waker.unasked(uid, now)
            self.unasked(uid)
        return (*unasked, *ended)

    def _is_unasked(self, promise: Promise, now: float) -> bool:
        """Tell whether a pod was woken for what is promised to it, and the scheduler has not asked about it in time."""
        is_due = not promise.is_answer and not promise.is_binding and now - promise.since > UNASKED_S
        return is_due and promise.pod in self.waker

    def _look(self, uid: Uid, now: float) -> None:
        """Have the offer of a pod go with it to the node that the scheduler has taken, of several perhaps."""
        promise, pod, said = self.belief.ledger.of_pod(uid), self.belief.pods.with_uid(uid), self._said[uid]
        if promise is None or promise.is_binding or not promise.is_answer:
            del self._said[uid]
        elif pod is not None and pod.nominated_node and pod.nominated_node != said.node and _is_unrefused(pod, said):
            self._said[uid] = said._replace(node=pod.nominated_node, since=promise.since)
            # Preemption nominates, too, and so do we: to a node that was not offered the scheduler does not go.
            if pod.nominated_node != promise.node and self.is_offered(uid, pod.nominated_node):
                self._move(pod, now)

    def _move(self, pod: Pod, now: float) -> None:
        needs = needs_of(pod, self.belief)
        if not isinstance(needs, Needs) or pod.nominated_node is None:
            return
        planner = self.waker.planner
        planner.went(pod.uid, pod.nominated_node)
        placement = planner.chooser.place(needs, pod.nominated_node)
        if isinstance(placement, Placement):
            self.belief.ledger.offer(placement.promise(needs, now, is_answer=True))

    def _is_awaited(self, uid: Uid, now: float) -> bool:
        """Tell whether the scheduler is on its way to bind a pod, as far as it has said."""
        promise, pod, said = self.belief.ledger.of_pod(uid), self.belief.pods.with_uid(uid), self._said.get(uid)
        if promise is None or pod is None or said is None or now - said.since > self.wait_s:
            return False
        # One that is being deleted the API server lets nobody bind, however long it stays. One whose claims are gone a
        # scheduler that was started anew does not even try, and says nothing of it.
        is_possible = not pod.is_deleting and isinstance(needs_of(pod, self.belief), Needs)
        return is_possible and pod.nominated_node == promise.node and _is_unrefused(pod, said)


def expired(belief: Belief, now: float, ttl_s: float) -> Iterable[Uid]:
    """Name the pods that were offered something and did not come for it within *ttl_s*."""
    return [promise.pod for promise in belief.ledger if now - promise.since > ttl_s and not promise.is_binding]


def _is_unrefused(pod: Pod, said: Said) -> bool:
    """Tell whether nothing new is said against *pod*."""
    return pod.refusal in said.refusals
