"""Events on pods and claims: one for each and distinct reason, at a bounded rate, and never in the way of anything."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

from extender.kube import objects
from extender.kube.outcome import Done
from extender.kube.writes import Writes
from extender.model.claim import ResourceClaim
from extender.model.names import Uid
from extender.model.node import Pod
from extender.scheduling.account import note_of
from extender.scheduling.decision import Decision, Outcome
from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)
CONTROLLER: Final = "dra-extender.x-k8s.io/extender"
# Events that wait to be written, of whom anything was told, and what was told of one: older ones are forgotten.
MOST_WAITING, MOST_SUBJECTS, MOST_TOLD = 1000, 10_000, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """What is wrong about a pod or a claim, whatever was decided about it."""

    subject: Pod | ResourceClaim
    reason: str
    text: str
    at: float


@dataclass(slots=True)
class Notices:
    """Writes events. instance: who we are among replicas; per_second: how many at most."""

    writes: Writes
    instance: str
    per_second: float
    is_enabled: bool = True
    counted: Callable[[str], None] = lambda _result: None
    _waiting: OrderedDict[tuple[Uid, str], Decision | Alarm] = field(default_factory=OrderedDict)
    _told: OrderedDict[Uid, tuple[str, ...]] = field(default_factory=OrderedDict)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, decision: Decision) -> None:
        """Have *decision* told, unless the pod was told the same before."""
        self._put((decision.uid, f"{decision.reason}@{decision.node or ''}"), decision)

    def raise_alarm(self, alarm: Alarm) -> None:
        """Have *alarm* told, unless its subject was told the same before."""
        self._put((alarm.subject.uid, f"{alarm.reason}@{alarm.text}"), alarm)

    def forget(self, subject: Uid) -> None:
        """Forget what was told of a pod that waits no longer."""
        self._told.pop(subject, None)

    def _put(self, key: tuple[Uid, str], what: Decision | Alarm) -> None:
        if not self.is_enabled or key[1] in self._told.get(key[0], ()):
            return
        self._waiting[key] = what
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
            self.counted("dropped")
        self._news.set()

    async def run(self) -> None:
        """Write what waits, for ever."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                key, what = self._waiting.popitem(last=False)
                await self._write(key, what)
                await asyncio.sleep(1 / self.per_second)

    async def _write(self, key: tuple[Uid, str], what: Decision | Alarm) -> None:
        note = _of_decision(what) if isinstance(what, Decision) else _of_alarm(what)
        subject = note.regarding.key
        body = objects.event(note, CONTROLLER, self.instance, datetime.fromtimestamp(what.at, UTC))
        outcome = await self.writes.create_event(subject.namespace, body)
        self.counted("written" if isinstance(outcome, Done) else "failed")
        if not isinstance(outcome, Done):
            LOG.warning("an event was not written", extra={keys.POD: str(subject), keys.ERROR: str(outcome)})
            return
        if not (isinstance(what, Decision) and what.outcome is Outcome.BOUND):
            self._remember(*key)

    def _remember(self, subject: Uid, told: str) -> None:
        """Remember what was *told*; that a pod is bound is told once anyhow, and is the last of it."""
        self._told[subject] = (*self._told.pop(subject, ()), told)[-MOST_TOLD:]
        if len(self._told) > MOST_SUBJECTS:
            self._told.popitem(last=False)


def _of_decision(decision: Decision) -> objects.Note:
    return objects.Note(
        regarding=Pod(key=decision.pod, uid=decision.uid),
        name=_named(decision.pod.name),
        reason=decision.reason,
        action="Binding" if decision.node else "Filtering",
        text=note_of(decision),
        is_warning=decision.outcome in (Outcome.REJECTED, Outcome.FAILED),
    )


def _of_alarm(alarm: Alarm) -> objects.Note:
    return objects.Note(
        regarding=alarm.subject,
        name=_named(alarm.subject.key.name),
        reason=alarm.reason,
        action="Watching",
        text=alarm.text,
        is_warning=True,
    )


def _named(subject: str) -> str:
    return f"{subject[:200]}.{uuid4().hex[:16]}"
