"""Pods that wait for a time, or for their devices to be made ready, woken then."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from extender.allocation.extended import wanted
from extender.allocation.result import is_usable
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.conditions import have_failed, is_waited_for
from extender.scheduling.endings import NotBound, Order, Result
from extender.scheduling.needs import Needs, Unplaceable, had_by, needs_of, stale_claim
from extender.scheduling.remedy import unusable
from extender.service.turns import Turns
from extender.service.vacancies import Left, Vacancies
from extender.service.wakes import Wakes
from extender.state.belief import Belief
from extender.state.domain import classes_of

# For how long the scheduler may leave a pod alone that was woken, about: so many ticks are no refusal yet.
UNASKED: Final = 30
# How often all pods are looked at, and so many at a time, between which the scheduler is answered.
LOOK_S: Final = 30.0
PIECE: Final = 500
# How long a nomination stands at least before it is taken back to wake its pod: it is to be shown by then.
NUDGE_S: Final = 1.0


@dataclass(slots=True)
class Waits:
    """Remembers until when a pod waits, or on which node its devices are made ready. *wall* is the time of day.

    *refusals* are counted, and grow with time; who has had too many of them has his devices freed.
    """

    belief: Belief
    wakes: Wakes
    turns: Turns
    wall: Callable[[], float]
    vacancies: Vacancies
    refusals: Counter[Uid]
    # Has the nomination of a pod, if it is ours, taken back at once.
    unasked: Callable[[Uid], None] = lambda _pod: None
    _awaiting: dict[Uid, NodeName] = field(default_factory=dict)
    # Of these, whom other plugins alone have refused; and when the nominations of such that were woken are taken back.
    _unheard: set[Uid] = field(default_factory=set)
    _nudged: dict[Uid, float] = field(default_factory=dict)
    _postponed: dict[Uid, float] = field(default_factory=dict)
    _looked: float = float("-inf")
    # Of those that were looked at last, who has something that was made by a class which is gone.
    _left: set[Uid] = field(default_factory=set)

    def ended(self, order: Order, result: Result) -> None:
        """Remember a pod whose devices are being made ready, and one that is bound elsewhere than it was nominated."""
        if self.wakes.nominates:
            self.vacancies.ended(order, result)
        if isinstance(result, NotBound) and result.is_unbegun:
            return  # what was known of an earlier attempt is so still
        self._awaiting.pop(order.uid, None)
        if isinstance(result, NotBound) and result.is_waiting:
            self._awaiting[order.uid] = order.node

    def remember(self, pod: Pod) -> None:
        """Remember a pod from before, whose devices are made ready still: it may have been let wait for that."""
        needs, nodes = needs_of(pod, self.belief), self.belief.cluster.snapshot.nodes
        if isinstance(needs, Needs) and is_waited_for(needs.allocated, self.wall(), self.belief.ready_within_s):
            given = [claim.allocation for claim in needs.allocated if claim.allocation]
            usable = (name for name, node in nodes.items() if all(is_usable(each, node) for each in given))
            node = next(usable, None)
            if node is not None:
                self.awaits(pod.uid, node, is_unheard=True)

    def awaits(self, pod: Uid, node: NodeName, *, is_unheard: bool) -> None:
        """Remember a pod that was not let make room for itself on *node* before its devices are ready.

        *is_unheard*: other plugins alone have refused it, so that a nomination wakes it only once that is taken back.
        """
        self._awaiting.setdefault(pod, node)
        if is_unheard:
            self._unheard.add(pod)

    def forget(self) -> None:
        """Forget where devices are made ready: another has led since, and has perhaps sent the pods elsewhere."""
        for known in (self._awaiting, self._unheard, self._nudged, self._left):
            known.clear()

    def postponed(self, pod: Uid, at: float) -> None:
        """Have *pod* tried again at a time."""
        self._postponed[pod] = at

    def offered(self, pod: Pod) -> None:
        """Do not try *pod* again: it was offered something."""
        self._postponed.pop(pod.uid, None)
        self._unheard.discard(pod.uid)
        self._nudged.pop(pod.uid, None)
        self.vacancies.offered(pod)

    def refused(self, pod: Pod) -> None:
        """Count what was found unasked: since *pod* was refused others may have left claims to it that keep it away.

        The scheduler asks again after minutes, and whoever wants such a claim elsewhere waits for that.
        """
        if pod.uid not in self.refusals and unusable(pod, self.belief, self.wall()):
            self.refusals[pod.uid] = 1

    async def round(self, now: Callable[[], float]) -> None:
        """Wake the pods whose time has come, and those whose devices are ready."""
        until = now()
        await self.turns.each([uid for uid, at in self._postponed.items() if at <= until], self._tried_again)
        is_look = until - self._looked >= LOOK_S
        await self.ready(is_thorough=is_look)
        await self._fill(now)
        self._nudge(until)
        if is_look:
            self._looked = until
            await self._look()

    async def _fill(self, now: Callable[[], float]) -> None:
        """Have those tried again who may have waited for room that was kept in vain: for that one of them is nudged."""
        for node, left in self.vacancies.due(now()):
            pod = await self.vacancies.first(node)
            if pod is not None and await self.turns.holds_up(pod.uid, self._filled(pod, node, left, now)):
                return  # the other nodes have the next round

    async def _filled(self, pod: Pod, node: NodeName, left: Left, now: Callable[[], float]) -> bool:
        is_answered = await self.wakes.wake(pod, node)
        # Without an answer it may have landed all the same.
        self._nudged[pod.uid] = inf
        if not is_answered:
            self.vacancies.unanswered(node, left, now())
        return is_answered

    def _nudge(self, now: float) -> None:
        """Have the pods tried again that do not hear of a nomination, but of one that is taken back.

        NodeResourcesFit is told of that as of a pod that has gone from its node.
        """
        self._nudged = {uid: min(since, now) for uid, since in self._nudged.items()}
        for uid in [uid for uid, since in self._nudged.items() if now - since >= NUDGE_S]:
            del self._nudged[uid]
            self.unasked(uid)

    async def _look(self) -> None:
        """Count those about whom nobody asks, for a class is gone that something was made for them by.

        One that is replaced is away for a moment.
        """
        pods, found = tuple(self.belief.pods), set[Uid]()
        for begin in range(0, len(pods), PIECE):
            found |= {pod.uid for pod in pods[begin : begin + PIECE] if self._is_left(pod)}
            await asyncio.sleep(0)
        for uid in found & self._left:
            self.refusals.setdefault(uid, 1)
        self._left = found

    def _is_left(self, pod: Pod) -> bool:
        made = stale_claim(pod, self.belief)
        if made is None:
            return False
        classes = self.belief.served_by_classes()
        served = {classes[resource] for resource in wanted(pod, classes)}
        return not served.issuperset(classes_of(made).values()) and bool(unusable(pod, self.belief, self.wall()))

    async def _tried_again(self, uid: Uid) -> bool | None:
        pod, at = self.belief.pods.with_uid(uid), self._postponed.pop(uid, None)
        if at is None or pod is None:
            return None
        # Until there is an answer it is tried again, after all others; unless it is offered something meanwhile.
        self._postponed[uid] = at
        is_answered = await self.wakes.wake(pod)
        if is_answered and self._postponed.get(uid) == at:
            del self._postponed[uid]
        return is_answered

    async def ready(self, *, is_thorough: bool = False) -> None:
        """Wake the pods whose devices are ready, or will not be any more.

        Now and then it is seen, too, whether anything else has come to be the matter with those who wait still: for
        that, each is compared with all who have devices of the same pools.
        """
        awaiting, found = tuple(self._awaiting), list[Uid]()
        for begin in range(0, len(awaiting), PIECE):
            found += [uid for uid in awaiting[begin : begin + PIECE] if is_thorough or not self._is_awaited(uid)]
            await asyncio.sleep(0)
        await self.turns.each(found, self._ready)

    def _is_awaited(self, uid: Uid) -> bool:
        """Tell whether what a pod has is neither ready nor given up."""
        pod = self.belief.pods.with_uid(uid)
        return pod is not None and is_waited_for(had_by(pod, self.belief), self.wall(), self.belief.ready_within_s)

    async def _ready(self, uid: Uid) -> bool | None:
        await asyncio.sleep(0)  # between two of them the scheduler is answered
        pod = self.belief.pods.with_uid(uid)
        needs = needs_of(pod, self.belief) if pod else None
        if isinstance(needs, Needs) and is_waited_for(needs.allocated, self.wall(), self.belief.ready_within_s):
            return None
        node, is_unheard = self._awaiting.pop(uid, None), uid in self._unheard
        self._unheard.discard(uid)
        # Where its devices are free again, the pod has nothing to come back to.
        is_bare = isinstance(needs, Needs) and not needs.allocated
        if node is None or pod is None or (is_bare and not is_unheard):
            return None
        if isinstance(needs, Needs) and have_failed(needs.allocated, self.wall(), self.belief.ready_within_s):
            # Its next binding frees them and says why. Where nobody asks about the pod any more, there is none.
            self.refusals.setdefault(uid, -UNASKED)
        elif uid in self.refusals:
            # It may have others evicted there now, once it is asked about: what was counted before does not count.
            self.refusals[uid] = 0 if needs is None or isinstance(needs, Unplaceable) else -UNASKED
        is_answered = await self.wakes.wake(pod, node)
        if not is_answered:
            self.awaits(uid, node, is_unheard=is_unheard)
        elif is_unheard:
            self._nudged[uid] = inf
        return is_answered
