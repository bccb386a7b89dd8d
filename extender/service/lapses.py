"""Nominations of ours behind which no promise is left, taken back.

kube-scheduler tries a nominated node first and counts the pod as if it were there, for as long as the nomination
stands. It ends that itself where it has tried the pod and looked for others to evict; not where it never tries it, as
with pods that other plugins keep in the queue, nor where the pod may evict nobody, or there is nobody to evict. These
are promised nothing for ever: others would go without. What was promised to a woken pod and is not asked for in time
ends together with the nomination.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from typing import Final, NamedTuple

from extender.kube.outcome import Succeeded
from extender.kube.pace import stirred
from extender.kube.writes import Writes
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.model.parse import nominators, parse_pod
from extender.state.belief import Belief
from extender.telemetry.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
# How often the pods that wait are looked at.
LOOK_S: Final = 5.0
# How long nothing is promised to a nominated pod before that is taken back: as long as promises last by default. The
# scheduler may be about to ask, and where claims have their devices already there is nothing to promise.
REST_S: Final = 30.0
# Pods that are written for at once, and between two looks.
BATCH: Final = 16
MOST: Final = 64


class Bare(NamedTuple):
    """Where a pod is nominated to which nothing is promised, and since when that is known."""

    node: NodeName
    since: float


@dataclass(slots=True)
class Lapses:
    """Looks at all pods that wait. Those that others are evicted for are the scheduler's own concern."""

    belief: Belief
    writes: Writes
    metrics: Metrics
    now: Callable[[], float]
    leads: Callable[[], bool]
    _bare: dict[Uid, Bare] = field(default_factory=dict)
    # Nominations that are left alone for as long as they stand.
    _left: dict[Uid, NodeName] = field(default_factory=dict)
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)

    def unasked(self, pod: Uid) -> None:
        """Take the nomination of *pod* back at once: the scheduler had its time to ask about what was promised."""
        known = self.belief.pods.with_uid(pod)
        if known is not None and known.nominated_node:
            self._bare[pod] = Bare(known.nominated_node, -inf)
            self._stirred.set()

    def evicting(self, pod: Uid) -> None:
        """Leave the nomination of *pod* to the scheduler, which evicts others for it: where we sent it, perhaps."""
        known = self.belief.pods.with_uid(pod)
        if known is not None and known.nominated_node:
            self._bare.pop(pod, None)
            self._left[pod] = known.nominated_node

    async def run(self) -> None:
        """Look for ever."""
        while True:
            await stirred(self._stirred, LOOK_S)
            try:
                await self.round()
            except Exception:
                # Whatever went wrong with one pod, the others have the next round.
                LOG.exception("a round of taking nominations back failed")

    async def round(self) -> None:
        """Look once, and take back what has had no promise for long enough."""
        if not self.leads():
            # Until now somebody else has promised, in memory that nobody shows us.
            self._bare.clear()
            self._left.clear()
            return
        self._look()
        until = self.now() - REST_S
        due = tuple(islice((uid for uid, bare in self._bare.items() if bare.since <= until), MOST))
        for start in range(0, len(due), BATCH):
            await asyncio.gather(*map(self._take_back, due[start : start + BATCH]))

    def _look(self) -> None:
        """Find the nominated pods to which nothing is promised."""
        waiting, promised, now = self.belief.pods, self.belief.ledger.of_pod, self.now()
        left, self._left, found = self._left, {}, dict[Uid, Bare]()
        for pod in waiting:
            if not pod.nominated_node or pod.is_deleting:
                continue
            if left.get(pod.uid) == pod.nominated_node:
                self._left[pod.uid] = pod.nominated_node
            elif promised(pod.uid) is None:
                known = self._bare.get(pod.uid)
                found[pod.uid] = known if known and known.node == pod.nominated_node else Bare(pod.nominated_node, now)
        self._bare = found

    async def _take_back(self, uid: Uid) -> None:
        """Clear the nomination of a pod, as it was just read, if it is ours: preemption nominates, too."""
        bare, known = self._bare.get(uid), self.belief.pods.with_uid(uid)
        if bare is None or known is None:
            return
        # Whatever comes of it, the next try is not sooner.
        self._bare[uid] = bare = bare._replace(since=self.now())
        read = await self.writes.read_pod(known.key)
        pod = parse_pod(read.object) if isinstance(read, Succeeded) else None
        if not isinstance(read, Succeeded) or not isinstance(pod, Pod) or not self._is_lapsed(pod, bare):
            return
        if self.belief.ownership.domain.writer not in nominators(read.object):
            self._left[uid] = bare.node
            return
        outcome = await self.writes.nominate(pod, None)
        if isinstance(outcome, Succeeded):
            self.belief.pods.moved(pod, outcome.resource_version)
            self.metrics.guess("unasked")

    def _is_lapsed(self, pod: Pod, bare: Bare) -> bool:
        """Tell whether *pod* still waits where nothing is promised to it: meanwhile it may have been asked about."""
        is_same = self._bare.get(pod.uid) is bare and pod.nominated_node == bare.node
        return is_same and not pod.node_name and self.belief.ledger.of_pod(pod.uid) is None
