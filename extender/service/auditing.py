"""What does not go together, told by metric, log and event."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import field
from heapq import nsmallest
from math import inf
from typing import Final
from uuid import uuid4

from extender.kube.freshness import Freshness
from extender.kube.outcome import Refused
from extender.kube.resource import BOUND
from extender.kube.writes import Writes
from extender.model.claim import ResourceClaim
from extender.model.frozen import dataclass
from extender.model.names import ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.drift import Audit, Auditor, Finding, Kind
from extender.scheduling.steps import Refusal
from extender.service.notices import Alarm, Notices
from extender.telemetry import keys
from extender.telemetry.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
# Comparing everything takes 0.13 s of work for forty thousand devices in use, and twice as long where all of them are
# shared or partitions, in pieces of about a ms.
EVERY_S: Final = 20.0
# Between two pieces: who asks meanwhile would otherwise be held up by one in each of the turns that an answer takes.
REST_S: Final = 0.002
# A claim that is left to pods that are gone is touched again after so long, each time twice as long, up to a limit.
AGAIN_S: Final = 20.0
LAST_S: Final = 600.0
# Touched after one audit at most, and for so long: the next audit waits for the end of that.
TOUCHED_AT_ONCE: Final = 50
TOUCHED_WITHIN_S: Final = 2.0
# Findings of which somebody is told again where that was lost or is forgotten.
MOST_AGAIN: Final = 1000
# The reasons of events, by which people look for them.
REASONS: Final = {
    Kind.GHOST: "DevicesHeldInVain",
    Kind.DOUBLE: "DeviceGivenTwice",
    Kind.LEAK: "DevicesUnused",
    Kind.BARE: "DevicesMissing",
}


@dataclass(frozen=True, slots=True)
class Auditing:
    """Audits in a rhythm. *now* is a clock that only goes forward, *wall* the time of the day.

    *freshness* tells when it was last known which pods are bound; without it that is known at any time.

    What we have allocated and nobody lets go of is touched: the controller that lets go of claims looks at
    those that the pod names, once, and may have overlooked another that was made for it.
    """

    auditor: Auditor
    metrics: Metrics
    notices: Notices
    now: Callable[[], float]
    wall: Callable[[], float]
    writes: Writes | None = None
    freshness: Freshness | None = None
    _touched: dict[Uid, tuple[float, float]] = field(default_factory=dict)
    # Namespaces in which it took long to touch a claim last.
    _slow: set[str] = field(default_factory=set)

    async def run(self, is_synced: Callable[[], bool]) -> None:
        """Audit for ever, as long as everything is known, and is ours to look after."""
        while True:
            if is_synced():
                await self.round(is_synced)
            else:
                self._rest()
            await asyncio.sleep(EVERY_S)

    async def round(self, is_synced: Callable[[], bool] = lambda: True) -> None:
        """Compare once, and tell. That takes seconds: by the end somebody else may lead, or a watch stand still."""
        lasting, fresh, leaks = await self._audit()
        if not is_synced():
            self._rest()
            return
        counts = Counter(found.kind for found in lasting)
        for kind in Kind:
            self.metrics.drift(kind, counts[kind])
        for found in sorted(fresh, key=_order):
            self._log(found)
            self._tell(found, is_news=True)
        # Of events that were lost, or have been forgotten, others follow for as long as it lasts.
        for found in nsmallest(MOST_AGAIN, lasting - fresh, key=_order):
            self._tell(found, is_news=False)
        await self._release(leaks)

    def _rest(self) -> None:
        """Show and remember nothing: it would be shown for as long as somebody else leads, who sees for himself."""
        self.auditor.forget()
        for kind in Kind:
            self.metrics.drift(kind, 0)

    async def _release(self, leaks: frozenset[Finding]) -> None:
        """Have the controller look at claims of ours that it has overlooked, ever more rarely where it is vain."""
        belief, now = self.auditor.belief, self.now()
        known = (belief.cluster.claims.get(found.claim) for found in leaks if found.claim is not None)
        ours = {claim.uid: claim for claim in known if claim and belief.ownership.domain.writer in claim.writers}
        for uid in self._touched.keys() - ours:
            del self._touched[uid]
        self._slow.intersection_update(claim.key.namespace for claim in ours.values())
        if self.writes is None:
            return
        # Where a webhook hangs one is touched in vain after the other: namespaces of such are last, and of the others
        # who was not touched yet is first.
        due = sorted(
            (claim.key.namespace in self._slow, uid in self._touched, at, uid)
            for uid, claim in ours.items()
            if (at := self._touched.get(uid, (now, AGAIN_S))[0]) <= now
        )
        for _, _, _, uid in due[:TOUCHED_AT_ONCE]:
            if self.now() - now > TOUCHED_WITHIN_S:
                return
            pause_s = self._touched.get(uid, (now, AGAIN_S))[1]
            self._touched[uid] = now + pause_s, min(2 * pause_s, LAST_S)
            await self._touch(self.writes, ours[uid])

    async def _touch(self, writes: Writes, claim: ResourceClaim) -> None:
        began, namespace = self.now(), claim.key.namespace
        outcome = await writes.touch_claim(claim, uuid4().hex)
        is_slow = self.now() - began > TOUCHED_WITHIN_S
        (self._slow.add if is_slow else self._slow.discard)(namespace)
        if isinstance(outcome, Refused) and outcome.kind not in (Refusal.NOT_FOUND, Refusal.UNSENT):
            fields = {keys.CLAIM: str(claim.key), keys.ERROR: str(outcome)}
            LOG.warning("a claim that nobody lets go of cannot be touched", extra=fields)

    async def _audit(self) -> Audit:
        work = self.auditor.audit(self.now, self.freshness.seen_at(BOUND) if self.freshness else inf)
        try:
            while True:
                next(work)
                await asyncio.sleep(REST_S)
        except StopIteration as end:
            audit: Audit = end.value
            return audit

    def _log(self, found: Finding) -> None:
        fields = {keys.CLAIM: _spelt(found.claim), keys.POD: _spelt(found.pod) or found.uid, keys.ERROR: found.detail}
        LOG.error("drift", extra={keys.REASON: REASONS[found.kind], **fields})

    def _tell(self, found: Finding, *, is_news: bool) -> None:
        subject = self._subject(found)
        if subject is not None:
            is_named = isinstance(subject, Pod) and found.claim is not None
            text = f"claim {found.claim}: {found.detail}" if is_named else found.detail
            alarm = Alarm(subject=subject, reason=REASONS[found.kind], text=text, at=self.wall())
            self.notices.raise_alarm(alarm, is_news=is_news)

    def _subject(self, found: Finding) -> Pod | ResourceClaim | None:
        """Return what people look at: the pod, or the claim where nobody looks at its pod, which is gone."""
        if found.pod is not None and found.kind is not Kind.LEAK:
            return Pod(key=found.pod, uid=found.uid)
        return self.auditor.belief.cluster.claims.get(found.claim) if found.claim else None


def _order(found: Finding) -> tuple[str, str, str]:
    return found.kind, found.detail, _spelt(found.claim)


def _spelt(key: ObjectKey | None) -> str:
    return "" if key is None else str(key)
