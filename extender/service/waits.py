"""Pods that wait for a time, or for their devices to be made ready, woken then."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from extender.allocation.extended import wanted
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.binding import NotBound, Order, Result
from extender.scheduling.conditions import have_failed, is_waited_for
from extender.scheduling.needs import Needs, had_by, needs_of, stale_claim
from extender.scheduling.remedy import unusable
from extender.service.turns import Turns
from extender.service.wakes import Wakes
from extender.state.belief import Belief
from extender.state.domain import classes_of

# For how long the scheduler may leave a pod alone that was woken, about: so many ticks are no refusal yet.
UNASKED: Final = 30
# How often all pods are looked at, and so many at a time, between which the scheduler is answered.
LOOK_S: Final = 30.0
PIECE: Final = 500


@dataclass(slots=True)
class Waits:
    """Knows until when, and where their devices are made ready. *wall* is the time of day.

    *refusals* are counted, and grow with time; who has had too many of them has his devices freed.
    """

    belief: Belief
    wakes: Wakes
    turns: Turns
    wall: Callable[[], float]
    refusals: Counter[Uid] = field(default_factory=Counter)
    _awaiting: dict[Uid, NodeName] = field(default_factory=dict)
    _postponed: dict[Uid, float] = field(default_factory=dict)
    _looked: float = float("-inf")
    # Of those that were looked at last, who has something that was made by a class which is gone.
    _left: set[Uid] = field(default_factory=set)

    def ended(self, order: Order, result: Result) -> None:
        """Remember a pod whose devices are being made ready."""
        if isinstance(result, NotBound) and result.is_unbegun:
            return  # what was known of an earlier attempt is so still
        self._awaiting.pop(order.uid, None)
        if isinstance(result, NotBound) and result.is_waiting:
            self._awaiting[order.uid] = order.node

    def awaits(self, pod: Uid, node: NodeName) -> None:
        """Remember a pod that was not let make room for itself on *node* before its devices are ready."""
        self._awaiting.setdefault(pod, node)

    def forget(self) -> None:
        """Forget where devices are made ready: another has led since, and has perhaps sent the pods elsewhere."""
        self._awaiting.clear()
        self._left.clear()

    def postponed(self, pod: Uid, at: float) -> None:
        """Have *pod* tried again at a time."""
        self._postponed[pod] = at

    def offered(self, pod: Uid) -> None:
        """Do not try *pod* again: it was offered something."""
        self._postponed.pop(pod, None)

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
        if is_look:
            self._looked = until
            await self._look()

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
        is_answered = await self.wakes.wake(pod)
        if not is_answered:
            self._postponed.setdefault(uid, at)
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
        node = self._awaiting.pop(uid, None)
        # Where its devices are free again, the pod has nothing to come back to.
        if node is None or pod is None or (isinstance(needs, Needs) and not needs.allocated):
            return None
        if isinstance(needs, Needs) and have_failed(needs.allocated, self.wall(), self.belief.ready_within_s):
            # Its next binding frees them and says why. Where nobody asks about the pod any more, there is none.
            self.refusals.setdefault(uid, -UNASKED)
        elif uid in self.refusals:
            # It may have others evicted there now: what was counted before that was possible does not count.
            self.refusals[uid] = 0
        is_answered = await self.wakes.wake(pod, node)
        if not is_answered:
            self._awaiting.setdefault(uid, node)
        return is_answered
