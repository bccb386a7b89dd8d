"""What has to be done unasked: pods woken, steered and freed; offers that nobody takes up ended."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import inf
from typing import Final

from extender.kube.freshness import Freshness
from extender.kube.pace import stirred
from extender.kube.writes import Writes
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.expiry import Expiry
from extender.scheduling.leaving import finds_another
from extender.scheduling.needs import Needs, Unplaceable, made_for, needs_of
from extender.scheduling.planner import Offer, Rejection
from extender.scheduling.remedy import has_devices, settled, unusable
from extender.scheduling.vocabulary import Word, is_told
from extender.scheduling.waking import Waker
from extender.service.carrier import Carrier
from extender.service.evictions import Evictions
from extender.service.freeing import Freeing, Held
from extender.service.habits import Habits
from extender.service.remaking import Remaking
from extender.service.turns import Turns, apart
from extender.service.vacancies import Vacancies
from extender.service.waits import Waits
from extender.service.wakes import Wakes
from extender.state.belief import Belief
from extender.telemetry.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
# How often what only time changes is looked at; changes are looked at when they come.
TICK_S: Final = 1.0
REST_S: Final = 0.03
# Pods of whom one round looks whether their own claims are in the way still.
RESUMED: Final = 16
# What frees the pod's own claims at once: no other attempt can end better.
FREED_AT_ONCE: Final = frozenset((Word.CLAIM_CONTESTED, Word.CLAIM_STALE))


@dataclass(slots=True)
class Attention:
    """Looks after pods that wait. One round at a time."""

    belief: Belief
    waker: Waker
    writes: Writes
    carrier: Carrier
    metrics: Metrics
    habits: Habits
    now: Callable[[], float]
    wall: Callable[[], float]
    freshness: Freshness | None = None
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)
    # Whether the scheduler is to ask about the pod again even if it fits nowhere.
    _steers: dict[Uid, bool] = field(default_factory=dict)
    # Who is being sent somewhere, and was not asked about since.
    _steered_now: Uid | None = None
    _refusals: Counter[Uid] = field(default_factory=Counter)
    # Before the first term there is nothing but what was told since the start.
    _has_begun: bool = False
    # Of which claim nothing could be found out in the last round.
    _silent: Uid | None = None
    _settled_again: float = -inf
    _freeing: Freeing = field(init=False)
    _remaking: Remaking = field(init=False)
    _turns: Turns = field(init=False)
    wakes: Wakes = field(init=False)
    waits: Waits = field(init=False)
    expiry: Expiry = field(init=False)

    def __post_init__(self) -> None:
        mind, pause_s = (self.belief, self.waker.planner.chooser), 1 / self.habits.wakes_per_second
        vacancies = Vacancies(self.belief, self.waker)
        self._turns = Turns(self.belief, self.now, TICK_S + pause_s, self.waker.slow)
        self.wakes = Wakes(*mind, self.writes, self.metrics, self.now, self.wall, pause_s, self.habits.nominates)
        self.waits = Waits(self.belief, self.wakes, self._turns, self.wall, vacancies, self._refusals)
        freeing = self.carrier, self._turns, self.habits.attempts, TICK_S, self.wall, self._is_unseen, self._refusals
        self._freeing = Freeing(self.belief, *freeing)
        self._freeing.is_of_use = partial(finds_another, self.waker.planner)
        self.waker.refused, self.waker.apart = self.waits.refused, apart
        self.belief.parting.append(self.waker.drop)
        self._remaking = Remaking(self.belief, self.writes, self.metrics, self.now, self.freshness)
        self.expiry = Expiry(self.belief, self.waker, self.habits.offer_s, self.habits.wait_s)
        self.waits.unasked = lambda pod: self.expiry.unasked(pod)  # noqa: PLW0108 - which is set later

    def stir(self) -> None:
        """Have a round done: something has changed."""
        self._stirred.set()

    def rejected(self, pod: Pod, plan: Rejection) -> None:
        """Remember that *pod* waits; where it fits on a node that was not looked at, have it tried there."""
        self.waker.put(pod.uid)
        self._unsteered(pod)
        if plan.elsewhere is not None:
            self._steers[pod.uid] = False
        self._freeing.rejected(pod, is_at_once=plan.word in FREED_AT_ONCE)
        self.stir()

    def offered(self, pod: Pod) -> None:
        """Remember that *pod* was offered nodes."""
        self.waker.drop(pod.uid)
        self._unsteered(pod)
        self._refusals.pop(pod.uid, None)
        self.waits.offered(pod)
        self.expiry.offered(pod)

    def asks_again(self, pod: Uid) -> bool:
        """Tell whether *pod* is about to be sent to a node; then it is asked about again, whatever comes of that."""
        if pod in self._steers:
            self._steers[pod] = True
        return pod in self._steers

    def heed(self, evictions: Evictions) -> None:
        """Leave to pods what they have, and are nominated for, as long as others go for them."""
        self.wakes.victims, self._freeing.are_going = evictions.victims, evictions.are_going

    def _unsteered(self, pod: Pod) -> None:
        """Tell the scheduler nothing of *pod* for what was before: it has just asked."""
        self._steers.pop(pod.uid, None)
        self._freeing.cleared.pop(pod.uid, None)
        if self._steered_now == pod.uid:
            self._steered_now = None

    async def begin(self) -> bool:
        """Look after what was before we began: claims that are half written, and pods that were refused; as a round."""
        for pod in tuple(self.belief.pods):
            await asyncio.sleep(0)  # of the thousands that may wait none holds up whoever asks
            with apart(pod.key):
                self._remember(pod.uid)
        return await self.round()

    def _remember(self, uid: Uid) -> None:
        pod = self.belief.pods.with_uid(uid)
        if pod is None:
            return
        is_had = has_devices(pod, self.belief)
        if is_told(pod.refusal) or is_had or unusable(pod, self.belief, self.wall()):
            self.waker.put(uid)
        if is_had:
            self.waits.remember(pod)

    async def run(
        self, begun: Callable[[], None], is_synced: Callable[[], bool], is_over: Callable[[], bool] = lambda: False
    ) -> None:
        """Begin once everything is known, then do rounds until it is over: when something changes, and now and then."""
        while not is_synced() and not is_over():
            await stirred(self._stirred, TICK_S)
        self._forget()
        over = asyncio.Event()
        async with asyncio.TaskGroup() as beside:
            ending = beside.create_task(self._end_offers(), name="offers")
            beside.create_task(self._remaking.run(over), name="remaking")
            try:
                await self._rounds(begun, is_over)
            finally:
                ending.cancel()
                over.set()

    async def _rounds(self, begun: Callable[[], None], is_over: Callable[[], bool]) -> None:
        while not is_over() and not await self._tried(self.begin):  # noqa: ASYNC110 - it is tried, not waited for
            await asyncio.sleep(TICK_S)
        if not is_over():
            begun()
        while not is_over():
            await stirred(self._stirred, TICK_S)
            await self._tried(self.round)
            await asyncio.sleep(REST_S)  # of many changes one after another one round thinks

    def _forget(self) -> None:
        """Forget what was found out in a term of ours before: another may have placed those pods elsewhere since."""
        self._steers.clear()
        self._silent = None
        if self._has_begun:
            self.belief.sealing.open_all()
        self._has_begun = True
        self._freeing.forget()
        self.waits.forget()
        self.waker.planner.trips.all_unbegun()

    async def _end_offers(self) -> None:
        """End offers that nobody takes up, in time, however long the writes of a round take."""
        while True:
            await self._tried(self._expire)
            await asyncio.sleep(TICK_S)

    def _expire(self) -> None:
        if self.expiry.round(self.now()):
            self.stir()

    async def _tried(self, work: Callable[[], Awaitable[bool | None] | None]) -> bool:
        """Do *work*; tell whether it did not fail."""
        try:
            doing = work()
            return doing is None or await doing is not False
        except Exception:
            # Whatever went wrong with one pod, there is more to look after.
            LOG.exception("a round of looking after pods failed")
            return False

    async def round(self) -> bool:
        """Look after everything once; tell whether nothing failed of what was left half written."""
        self._turns.begin()
        is_whole = all([await self._tried(part) for part in (self._settle, self._freeing.part, self._free)])
        for part in (self._resume, self._steer, partial(self.waits.round, self.now), self._rouse):
            await self._tried(part)
        return is_whole

    async def _settle(self) -> None:
        """Find out about what nobody knows; where there was no answer, not before a while."""
        if self._silent is not None and self.now() < self._settled_again:
            return
        self._settled_again = self.now() + TICK_S
        self._silent = await self.carrier.carry(settled(self.belief, self._silent), self.now() + TICK_S)

    async def _free(self) -> None:
        await self._freeing.round(self.now)

    def _is_unseen(self, pod: Uid) -> bool:
        """Tell whether the scheduler has asked about *pod* before the watch shows it, which it is about to do."""
        return pod in self.waker and self.belief.pods.with_uid(pod) is None

    def _is_refused(self, pod: Pod) -> bool:
        """Tell whether its own claims keep *pod* away, perhaps some that it may not free: others use them, too."""
        return isinstance(needs := needs_of(pod, self.belief), Unplaceable) and needs.word in FREED_AT_ONCE

    def _resume(self) -> None:
        """Steer the pods whose own claims are in the way no more: that may make no difference to what is free.

        The scheduler may have seen that before we did, and have asked and been told of those claims once more. So it
        asks again, even if nothing fits: what it says of the pod is to be so.
        """
        for uid in tuple(islice(self._freeing.cleared, RESUMED)):
            pod, held = self.belief.pods.with_uid(uid), self._freeing.cleared.pop(uid)
            if pod is not None and (self._is_refused(pod) or any(made_for(pod, self.belief)) or self._is_shown(held)):
                self._freeing.cleared[uid] = held
            else:
                self._steers[uid] = True

    def _is_shown(self, held: Held) -> bool:
        """Tell whether the watch shows any of those claims still as they were."""
        claims = self.belief.cluster.claims
        return any((claim := claims.with_uid(uid)) and claim.resource_version == version for uid, version in held)

    async def _steer(self) -> None:
        await self._turns.each(tuple(self._steers), self._steered)

    async def _steered(self, uid: Uid) -> bool | None:
        # While one pod is written for, the scheduler may ask about another: what is offered needs no steering.
        pod = self.belief.pods.with_uid(uid) if uid in self._steers else None
        if self._is_unseen(uid):
            return None
        is_outdated = self._steers.pop(uid, False)
        promise = self.belief.ledger.of_pod(uid)
        if pod is None or (promise is not None and promise.is_answer):
            return None
        # Planned now, and promised: of many that are rejected at once each is sent to devices of its own.
        needs, planner = needs_of(pod, self.belief), self.waker.planner
        suitable = planner.possible.nodes(needs) if isinstance(needs, Needs) else None
        plan = planner.plan(pod, None, self.now(), is_answer=False, suitable=suitable)
        if not isinstance(plan, Offer) and not is_outdated:
            return None
        self._steered_now = uid
        is_answered = await (self._sent(pod, plan.placement.node) if isinstance(plan, Offer) else self.wakes.wake(pod))
        if not is_answered and self._steered_now == uid:
            self._steers.setdefault(uid, is_outdated)
        return is_answered

    async def _rouse(self) -> None:
        """Wake the pods that fit now; however many wait, between two of them the scheduler is answered."""
        for wake in self.waker.round(self.now()) if self.waker else ():
            await (self._turns.holds_up(wake.pod.uid, self._roused(*wake)) if wake else asyncio.sleep(0))

    async def _roused(self, pod: Pod, node: NodeName | None) -> bool | None:
        if not (is_answered := await self._sent(pod, node)):
            self.waker.unwoken(pod.uid)
        return is_answered

    async def _sent(self, pod: Pod, node: NodeName | None) -> bool | None:
        """Wake *pod* for *node*, where it is its turn. If there is no answer, its promise may be of use to others."""
        is_answered = None if self._turns.has_had(pod.uid) else await self.wakes.wake(pod, node)
        promise = self.belief.ledger.of_pod(pod.uid)
        if not (is_answered or promise is None or promise.is_answer or promise.is_binding):
            self.waker.planner.withdraw(pod.uid)
        return is_answered
