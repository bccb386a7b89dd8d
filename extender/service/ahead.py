"""Pods sent to a node before the scheduler asks about them: it then looks at that node alone, of however many."""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from extender.kube.api import CONNECTIONS
from extender.kube.outcome import Succeeded
from extender.kube.recent import Recent
from extender.kube.writes import Writes
from extender.model.claim import ResourceClaim
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.needs import Needs, Unplaceable, had_by, needs_of
from extender.scheduling.planner import Offer, Planner
from extender.scheduling.recall import Grounds
from extender.scheduling.remedy import are_named
from extender.scheduling.suitable import Suitable
from extender.scheduling.vocabulary import Word
from extender.service.ahead_queue import AheadQueue, Place
from extender.service.sending import Sending
from extender.service.sent import Sent, Travelling
from extender.service.turns import apart
from extender.state.belief import Belief
from extender.state.claims import named_by
from extender.telemetry.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
# Pods that are sent somewhere at a time and were not asked about yet: what is promised to them nobody else gets. While
# many pods are made, the scheduler hears of a nomination only after it has taken dozens of others.
MOST: Final = 128
# Pods that are written for at once: half of the connections that bindings leave to all else.
AT_ONCE: Final = CONNECTIONS // 2
# Of those about whom the scheduler was told a round looks at so many, whether they are on their way still.
BATCH: Final = 16


@dataclass(slots=True)
class Ahead:
    """Nominates nodes for pods as they appear, as soon as their claims are there."""

    belief: Belief
    planner: Planner
    suitable: Suitable
    writes: Writes
    metrics: Metrics
    now: Callable[[], float]
    leads: Callable[[], bool] = lambda: True
    sending: Sending = field(default_factory=lambda: Sending(is_known=True))
    recent: Recent = field(default_factory=Recent)
    _queue: AheadQueue = field(default_factory=AheadQueue)
    _sent: Travelling = field(default_factory=Travelling)
    _written_for: dict[Uid, asyncio.Task[None]] = field(default_factory=dict)
    # About whom the scheduler asks: they wait for their answer.
    _hurried: set[Uid] = field(default_factory=set)
    _renewed: Grounds | None = None
    _gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.belief.parting += (self._queue.forget, self._hurried.discard, self._sent.over)

    @property
    def is_on(self) -> bool:
        """Whether the scheduler is worth sending pods to: as far as we know it heeds nominations."""
        nodes = len(self.belief.cluster.snapshot.layout.nodes)
        return self.leads() and self.sending.pays(nodes)

    def shown(self, pod: Pod) -> None:
        """Remember a pod that is new or has changed: its claims may be there now, or its last gate gone."""
        is_ours = self.belief.pods.serves(pod)
        if not is_ours or self._queue.has_had(pod.uid) or pod.nominated_node or not self.is_on:
            return
        self._queue.came(pod.uid)
        if not pod.scheduling_gates and are_named(pod):
            self._queue.join(pod)

    def made(self, claim: ResourceClaim) -> None:
        """Have those look again who wait for *claim*, which is new or has changed."""
        for pod in map(self.belief.pods.with_uid, self._queue.back(claim.key)):
            if pod is not None:
                self.shown(pod)

    def asked(self, pod: Pod, names: Sequence[str]) -> None:
        """Take note that the scheduler asks about *pod*, as it knows it: whatever happens now, it has had its turn."""
        self._queue.asked(pod.uid)
        self._hurried.discard(pod.uid)
        self._sent.over(pod.uid)
        sent = self._sent.drop(pod.uid)
        if sent is None:
            return
        is_right, is_known = len(names) == 1 and names[0] == sent.node, sent.is_known_by(pod)
        self.metrics.guess("right" if is_right else "wrong" if is_known else "late")
        # What it has not heard of yet it cannot have taken up, and a node that its plugins refuse it does not name.
        if is_right or (is_known and sent.node in names):
            self.sending.heeded(is_right=is_right)
        self._stirred.set()

    def answered(self, pod: Pod, node: NodeName) -> None:
        """Take note that the scheduler was told of *node* for *pod*."""
        # Where nobody is sent there are no rounds that forget it, and of who is gone already nobody tells that he goes.
        if self.is_on and self.belief.pods.with_uid(pod.uid) is not None:
            self._sent.answered(pod, node)

    def hurry(self, pod: Pod) -> Collection[asyncio.Task[None]] | None:
        """Take note that the scheduler is about to ask about *pod*, for which nothing is written any more.

        Where that is too early return what is written for others, nothing where its own node is written: the scheduler
        is behind, and would ask as early about the next ones. Otherwise, or where it has asked before, return None.
        """
        sent = self._sent.get(pod.uid)
        is_early = not sent.is_known_by(pod) if sent else bool(pod.claims) and self.is_on
        if pod.nominated_node or not is_early or pod.uid in self._hurried or self._queue.was_asked(pod.uid):
            return None
        self._hurried.add(pod.uid)
        writing = tuple(writing for uid, writing in self._written_for.items() if uid != pod.uid)
        return writing if writing or (sent and sent.is_written) else None

    def stir(self) -> None:
        """Have the pods looked at: something has changed."""
        if self._queue or self._sent:
            self._stirred.set()

    async def run(self) -> None:
        """Send pods ahead, whenever something has changed, for ever."""
        await self.sending.find_out()
        async with asyncio.TaskGroup() as writing:
            while True:
                await self._stirred.wait()
                self._stirred.clear()
                try:
                    # Each is written for at once, while others are planned: the scheduler may be about to ask about it.
                    await self._round(lambda sent: self._begin(sent, writing))
                except Exception:
                    # Whatever went wrong with one pod, it goes the usual way, and the others have the next round.
                    LOG.exception("a round of sending pods ahead failed")

    async def _round(self, send: Callable[[Sent], object]) -> None:
        """Look at all that are on their way, and send more."""
        self._forget()
        self._sent.look(BATCH, self._is_on_its_way)
        await self._renew()
        await self._send(send)

    def _begin(self, sent: Sent, writing: asyncio.TaskGroup) -> None:
        self._written_for[sent.pod.uid] = writing.create_task(self._write(sent))

    async def _write(self, sent: Sent) -> None:
        try:
            async with self._gate:
                await self._nominate(sent)
        except Exception:  # others are being written for beside it
            LOG.exception("a round of sending pods ahead failed")
        finally:
            self._written_for.pop(sent.pod.uid, None)
            if self._renewed is None:
                self._stirred.set()

    def _forget(self) -> None:
        """Forget those whose promise has run out, or was taken back for more important pods."""
        for uid in [sent.pod.uid for sent in self._sent if not self._is_promised(sent.pod.uid)]:
            self._sent.drop(uid)
            # Nobody has asked, so it was not sent there in vain.
            self.planner.withdraw(uid)

    async def _send(self, send: Callable[[Sent], object]) -> None:
        """Plan and *send* the next pods, in the scheduler's order; those whose claims were not shown yet wait for them.

        Between two of them the scheduler is answered.
        """
        while self._queue and len(self._sent) < MOST:
            place = self._queue.take()
            with apart(place.pod):
                self._look(place, send)
            await asyncio.sleep(0)

    def _look(self, place: Place, send: Callable[[Sent], object]) -> None:
        pod = self.belief.pods.with_uid(place.pod)
        # Whom another has nominated since is that one's concern.
        needs = needs_of(pod, self.belief) if pod and not pod.nominated_node else None
        if pod and isinstance(needs, Unplaceable) and needs.word is Word.CLAIM_WAITING:
            self._queue.leave(place, named_by(pod))
        elif isinstance(needs, Needs) and not needs.is_plain and (sent := self._planned(needs)):
            send(sent)

    def _planned(self, needs: Needs) -> Sent | None:
        """Plan a pod that nobody has asked about yet; None where it goes the usual way."""
        pod, snapshot = needs.pod, self.belief.cluster.snapshot
        if not self.is_on or pod.is_deleting or self._is_promised(pod.uid) or self._queue.was_asked(pod.uid):
            return None
        suitable = self.suitable.nodes(pod.terms, snapshot, self._sent.promised, needs.extended)
        if suitable is None:
            return None
        plan = self.planner.plan(pod, None, self.now(), is_answer=False, suitable=suitable)
        if not isinstance(plan, Offer):
            return None
        node = plan.placement.node
        return self._sent.put(Sent(pod, node, self.planner.chooser.world(node)))

    async def _renew(self) -> None:
        """Plan those anew about whose node something has changed, as long as the scheduler has not asked."""
        grounds = self.planner.chooser.grounds()
        if grounds.are(self._renewed):
            return
        self._renewed = None
        # Two writes for one pod would race: those that are being written for are looked at once that is over.
        changed = self._changed()
        anew = [sent for sent in changed if sent.pod.uid not in self._written_for]
        moved = list[tuple[Sent, Sent | None]]()
        for sent in anew:
            # Since it was looked at the scheduler may have asked about it: what it was told is left alone.
            if self._is_waiting(sent):
                moved.append((sent, self._moved(sent)))
                await asyncio.sleep(0)
        if len(anew) == len(changed):
            self._renewed = grounds
        await asyncio.gather(*(self._corrected(*each) for each in moved))

    def _changed(self) -> list[Sent]:
        """Return those about whose node something has changed."""
        world = self.planner.chooser.world
        return [sent for sent in self._sent if not sent.seen.is_like(world(sent.node))]

    def _moved(self, before: Sent) -> Sent | None:
        """Plan a pod anew: to be sent elsewhere, or nowhere."""
        self._sent.drop(before.pod.uid)
        self.planner.withdraw(before.pod.uid)
        pod = self.belief.pods.with_uid(before.pod.uid)
        # Whom another may have nominated since, as the scheduler does for preemption, is that one's concern.
        is_ours = pod and (not pod.nominated_node or self.belief.pods.current(pod).resource_version == before.version)
        needs = needs_of(pod, self.belief) if pod and is_ours else None
        sent = self._planned(needs) if isinstance(needs, Needs) else None
        self.metrics.guess("renewed")
        if sent is not None and sent.node == before.node and before.is_written:
            sent = self._sent.put(replace(sent, version=before.version))
        return sent

    async def _corrected(self, before: Sent, sent: Sent | None) -> None:
        """Write where a pod goes now, if it has heard otherwise, or may have to hear."""
        uid = before.pod.uid
        async with self._gate:
            is_promised, is_written = self._is_promised(uid), sent is not None and sent.is_written
            if sent is not None and not is_written and is_promised:
                await self._nominate(sent, has_heard=before.is_written)
            elif not is_written and before.is_written and self.belief.pods.with_uid(uid) and not is_promised:
                # Whoever has changed the pod since may have nominated it as well.
                pod = replace(before.pod, resource_version=before.version)
                await self.writes.nominate(pod, None)

    def _is_waiting(self, sent: Sent) -> bool:
        """Tell whether a pod waits still as it was *sent*, what it was promised is kept, and nobody asks about it."""
        uid, promise = sent.pod.uid, self.belief.ledger.of_pod(sent.pod.uid)
        is_kept = promise is not None and promise.node == sent.node and not promise.is_answer
        return is_kept and self._sent.get(uid) is sent and uid not in self._hurried

    def _is_on_its_way(self, uid: Uid) -> bool:
        """Tell whether a pod of whom the scheduler was told may come to be bound: its devices are kept, or given."""
        pod = self.belief.pods.with_uid(uid)
        return self._is_promised(uid) or (pod is not None and bool(had_by(pod, self.belief)))

    def _is_promised(self, pod: Uid) -> bool:
        """Tell whether anything was promised to *pod*, as when the scheduler has asked meanwhile."""
        return self.belief.ledger.of_pod(pod) is not None

    async def _nominate(self, sent: Sent, *, has_heard: bool = False) -> None:
        """Write where *sent* goes, unless it is asked about before. One that *has_heard* otherwise is told anyway."""
        # Meanwhile the scheduler may have asked: a pod that is on its way is left alone.
        if not self._is_waiting(sent):
            return
        if not has_heard and any(one is sent for one in islice(self._sent, self.sending.fewest_before)):
            return
        pod = self.belief.pods.current(sent.pod)
        outcome = await self.writes.nominate(pod, sent.node)
        self.metrics.wake("ahead", "done" if isinstance(outcome, Succeeded) else "failed")
        if not isinstance(outcome, Succeeded):
            return
        version = outcome.resource_version
        self.belief.pods.moved(sent.pod, version)
        # Guarded as it was, the write has changed nothing else: what the watch will show need not be read.
        self.recent.put(replace(pod, resource_version=version, nominated_node=sent.node))
        if self._sent.get(sent.pod.uid) is sent:
            self._sent.put(replace(sent, version=version))
