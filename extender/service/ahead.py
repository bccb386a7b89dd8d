"""Pods sent to a node before the scheduler asks about them: it then looks at that node alone, of however many."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from extender.kube.api import CONNECTIONS
from extender.kube.outcome import Done
from extender.kube.recent import Recent
from extender.kube.writes import Writes
from extender.model.names import Uid
from extender.model.node import Pod
from extender.scheduling.needs import Needs, Refused, needs_of
from extender.scheduling.planner import Offer, Planner
from extender.scheduling.recall import Grounds
from extender.scheduling.remedy import are_named
from extender.scheduling.suitable import Suitable
from extender.scheduling.vocabulary import Word
from extender.service.line import Line
from extender.service.sending import Sending
from extender.service.sent import Sent
from extender.service.underway import BATCH, MOST, Underway
from extender.state.belief import Belief
from extender.telemetry.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
# Pods that are written for at once, half of our connections: who is bound does not wait for those.
AT_ONCE: Final = CONNECTIONS // 2
# How often those are looked at whose claims are yet to be made.
TICK_S: Final = 1.0


@dataclass(slots=True)
class Ahead:
    """Nominates nodes for pods as they appear, as soon as it is known what their claims are, or will be."""

    belief: Belief
    planner: Planner
    suitable: Suitable
    writes: Writes
    metrics: Metrics
    now: Callable[[], float]
    leads: Callable[[], bool] = lambda: True
    sending: Sending = field(default_factory=lambda: Sending(is_known=True))
    recent: Recent = field(default_factory=Recent)
    _line: Line = field(default_factory=Line)
    _sent: Underway = field(init=False)
    _written_for: set[Uid] = field(default_factory=set)
    _missed: list[Uid] = field(default_factory=list)
    _renewed: Grounds | None = None
    _gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._sent = Underway(self.belief, self.planner, self.now)

    @property
    def is_on(self) -> bool:
        """Whether pods are sent ahead."""
        nodes = len(self.belief.cluster.snapshot.layout.nodes)
        return self.leads() and self.sending.pays(nodes)

    def shown(self, pod: Pod) -> None:
        """Remember a pod that is new or has changed: its claims may be there now, or its last gate gone."""
        if self._sent.shown(pod):
            self._missed.append(pod.uid)
        if self._line.has_had(pod.uid) or pod.nominated_node or not self.is_on:
            return
        self._line.came(pod.uid)
        if not pod.scheduling_gates and are_named(pod):
            self._line.join(pod)
        elif not pod.scheduling_gates:
            self._line.wait(pod.uid)

    def asked(self, pod: Pod, names: Sequence[str]) -> None:
        """Take note that the scheduler asks about *pod*, as it knows it: whatever happens now, it has had its turn."""
        self._line.asked(pod.uid)
        sent = self._sent.pop(pod.uid)
        if sent is None:
            return
        is_right, is_known = len(names) == 1 and names[0] == sent.node, sent.is_known_by(pod)
        self.metrics.guess("right" if is_right else "wrong" if is_known else "late")
        # Of what it has not heard of yet it cannot have taken up anything.
        if is_right or is_known:
            self.sending.heeded(is_right=is_right)
        self._stirred.set()

    def stir(self) -> None:
        """Have the pods looked at: something has changed."""
        if self._line or self._line.is_waited_for or self._sent:
            self._stirred.set()

    async def run(self) -> None:
        """Plan for ever."""
        await self.sending.find_out()
        async with asyncio.TaskGroup() as writing:
            while True:
                with suppress(TimeoutError):
                    # Nothing tells that a claim is not made.
                    async with asyncio.timeout(TICK_S if self._sent.has_unmade else None):
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
        self._sent.forget_some()
        missed, self._missed = self._missed, []
        for sent in filter(None, map(self._sent.get, missed)):
            if sent.pod.uid not in self._written_for:
                send(sent)
        await self._renew()
        self._foresee()
        while await self._next(send):
            self._foresee()

    def _begin(self, sent: Sent, writing: asyncio.TaskGroup) -> None:
        self._written_for.add(sent.pod.uid)
        writing.create_task(self._write(sent))

    async def _write(self, sent: Sent) -> None:
        try:
            async with self._gate:
                await self._nominate(sent)
        except Exception:  # others are being written for beside it
            LOG.exception("a round of sending pods ahead failed")
        finally:
            self._written_for.discard(sent.pod.uid)
            if self._renewed is None:
                self._stirred.set()

    def _foresee(self) -> None:
        """Let some join whose claims are yet to be made, if nobody has to wait for these."""
        room = self._sent.room - len(self._line)
        for uid in self._line.outside(BATCH if room > 0 else 0):
            pod = self.belief.pods.with_uid(uid)
            is_known = pod is not None and self.belief.templates.foresees(pod)
            if pod is not None and is_known and room > 0:
                self._line.join(pod)
                room -= 1
            elif not is_known:
                self._line.step_aside(uid, is_gone=pod is None)

    async def _next(self, send: Callable[[Sent], object]) -> bool:
        """Plan and *send* the next pods, in the scheduler's order; those whose claims were not shown yet stay in line.

        Between two of them the scheduler is answered. Tell whether there were any.
        """
        early, count = [], 0
        while self._line and len(self._sent) < MOST and count < BATCH:
            place = self._line.take()
            pod = self.belief.pods.with_uid(place.pod)
            needs = self._needs(pod) if pod else None
            if pod and isinstance(needs, Refused) and needs.word is Word.CLAIM_WAITING:
                # Who waits for what is not foreseen any more comes back once that is named.
                early.append(place) if are_named(pod) else self._line.leave(place)
            elif isinstance(needs, Needs) and not needs.is_plain and (sent := self._planned(needs)):
                send(sent)
                count += 1
            await asyncio.sleep(0)
        for place in early:
            self._line.put_back(place)
        return bool(count)

    def _needs(self, pod: Pod) -> Needs | Refused:
        """Say what *pod* needs: claims that are yet to be made, too."""
        return needs_of(pod, self.belief, self.belief.templates.foreseen)

    def _planned(self, needs: Needs) -> Sent | None:
        """Plan a pod that nobody has asked about yet; None where it goes the usual way."""
        pod, snapshot = needs.pod, self.belief.cluster.snapshot
        if not self.is_on or pod.is_deleting or self._is_promised(pod.uid) or self._line.was_asked(pod.uid):
            return None
        promised = [(sent.node, sent.pod.terms.amounts) for sent in self._sent]
        suitable = self.suitable.nodes(pod.terms, snapshot, promised, needs.extended)
        if suitable is None:
            return None
        plan = self.planner.plan_ahead(needs, self.now(), suitable)
        if not isinstance(plan, Offer):
            return None
        world, made = self.planner.chooser.world(plan.placement.node), self.belief.templates.last(pod)
        return self._sent.put(Sent(pod, plan, world, made=made, since=self.now()))

    async def _renew(self) -> None:
        """Plan those anew about whose node something has changed, as long as the scheduler has not asked."""
        grounds = self.planner.chooser.grounds()
        if grounds.are(self._renewed):
            return
        self._renewed = None
        # Two writes for one pod would race: those that are being written for are looked at once that is over.
        world = self.planner.chooser.world
        changed = [sent for sent in self._sent if not sent.seen.is_like(world(sent.node))]
        anew = [sent for sent in changed if sent.pod.uid not in self._written_for]
        self._sent.forget([sent.pod.uid for sent in anew])
        moved = list[tuple[Sent, Sent | None]]()
        for one in anew:
            # Since it was looked at the scheduler may have asked about it: what it was told is left alone.
            sent = self._sent.get(one.pod.uid)
            if sent is not None and sent.offer is one.offer and not self._is_good(sent):
                moved.append((sent, self._moved(sent)))
                await asyncio.sleep(0)
        if len(anew) == len(changed):
            self._renewed = grounds
        await asyncio.gather(*(self._corrected(*each) for each in moved))

    def _is_good(self, sent: Sent) -> bool:
        """Tell whether a pod can go where it is sent to all the same; then that is remembered."""
        needs, chooser = self._needs(self.belief.pods.with_uid(sent.pod.uid) or sent.pod), self.planner.chooser
        if not isinstance(needs, Needs) or chooser.kept(needs, sent.node) is None:
            return False
        is_good = self.suitable.has(sent.pod.terms, self.belief.cluster.snapshot, sent.node, needs.extended)
        if is_good:
            self._sent.put(replace(sent, seen=chooser.world(sent.node)))
        return is_good

    def _moved(self, before: Sent) -> Sent | None:
        """Plan a pod anew: to be sent elsewhere, or nowhere."""
        self._sent.pop(before.pod.uid)
        self.planner.withdraw(before.pod.uid)
        pod = self.belief.pods.with_uid(before.pod.uid)
        # Whom another may have nominated since, as the scheduler does for preemption, is that one's concern.
        is_ours = pod and (not pod.nominated_node or self.belief.pods.current(pod).resource_version == before.version)
        needs = self._needs(pod) if pod and is_ours else None
        sent = self._planned(needs) if isinstance(needs, Needs) else None
        self.metrics.guess("renewed")
        if sent is not None and before.is_written:
            is_same = sent.node == before.node
            told = replace(sent, version=before.version) if is_same else replace(sent, heard=before.node)
            return self._sent.put(told)
        return sent

    async def _corrected(self, before: Sent, sent: Sent | None) -> None:
        """Write where a pod goes now, if it has heard otherwise, or may have to hear."""
        uid = before.pod.uid
        async with self._gate:
            if sent is not None and not sent.is_written:
                await self._nominate(sent)
            elif sent is None and before.is_written and self.belief.pods.with_uid(uid) and not self._is_promised(uid):
                # Whoever has changed the pod since may have nominated it as well.
                pod = replace(before.pod, resource_version=before.version)
                await self.writes.nominate(pod, None, is_guarded=True)

    def _is_promised(self, pod: Uid) -> bool:
        """Tell whether anything was promised to *pod*, as when the scheduler has asked meanwhile."""
        return self.belief.ledger.of_pod(pod) is not None

    async def _nominate(self, sent: Sent) -> None:
        """Write where *sent* goes, unless it is asked about before. One that has heard otherwise is told anyway."""
        # Meanwhile the scheduler may have asked: a pod that is on its way is left alone.
        known = self._waiting(sent)
        if known is None or self._sent.get(sent.pod.uid) is not sent:
            return
        pod = self.belief.pods.current(known)
        outcome = await self.writes.nominate(pod, sent.node, is_guarded=True)
        self.metrics.wake("ahead", "done" if isinstance(outcome, Done) else "failed")
        if not isinstance(outcome, Done):
            self._miss(sent, known)
            return
        version = outcome.resource_version
        self.belief.pods.moved(known, version)
        # Guarded as it was, the write has changed nothing else: what the watch will show need not be read.
        self.recent.put(replace(pod, resource_version=version, nominated_node=sent.node))
        if self._sent.get(sent.pod.uid) is sent:
            self._sent.put(replace(sent, version=version))

    def _miss(self, sent: Sent, pod: Pod) -> None:
        """Have another try where *pod* has changed meanwhile, as when its claims are named."""
        known = self.belief.pods.with_uid(pod.uid)
        if known is not None and self._sent.get(pod.uid) is sent:
            self._sent.put(replace(sent, missed=pod.resource_version))
            self.shown(known)
            self._stirred.set()

    def _waiting(self, sent: Sent) -> Pod | None:
        """Return who is to hear of its node; None where that comes too late, or another has nominated it."""
        pod = self.belief.pods.with_uid(sent.pod.uid)
        if pod is None or (pod.nominated_node and pod.nominated_node != sent.heard):
            return None
        # Before its claims are named the scheduler does not look at it.
        is_next = not sent.heard and are_named(pod) and pod.uid in self._sent.first(self.sending.fewest_before)
        return None if is_next else pod
