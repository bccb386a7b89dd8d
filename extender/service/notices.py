"""Events on pods and claims: one for each distinct reason, or cause, at a bounded rate, never in the way of anything.

The API server forgets events, and some never reach it: what goes on is told again now and then, after all that is news.
"""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import field
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

from extender.kube import objects
from extender.kube.answer import Json
from extender.kube.outcome import Refused, RequestOutcome, Succeeded, is_answered
from extender.kube.writes import Writes
from extender.model.claim import ResourceClaim
from extender.model.frozen import dataclass
from extender.model.names import ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.account import note_of
from extender.scheduling.decision import Decided, Decision
from extender.scheduling.gist import cause_of
from extender.scheduling.steps import Later, Refusal, is_refused
from extender.service.history import DOUBT
from extender.service.untold import Untold
from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)
CONTROLLER: Final = "dra-extender.x-k8s.io/extender"
# Events that wait to be written, of whom anything was told, and what was told of one: older ones are forgotten.
MOST_WAITING, MOST_SUBJECTS, MOST_TOLD = 1000, 10_000, 64
# Causes of one reason at one node that are told: one that reads otherwise each time is no news for ever.
MOST_CAUSES: Final = 4
# After how long the same is told again: the API server keeps events for an hour, unless it is configured otherwise.
AGAIN_S: Final = 1800.0
# The same where it was not written, and the longest pause while nothing is written at all.
RETRY_S: Final = 30.0
# How often an event is tried that has no answer, or is turned away.
TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """What is wrong about a pod or a claim, whatever was decided about it."""

    subject: Pod | ResourceClaim
    reason: str
    text: str
    at: float


@dataclass(slots=True)
class _Event:
    """An event as it is tried, each time under the same name: one that has landed unheard is not written twice."""

    key: tuple[Uid, str]
    what: Decision | Alarm
    subject: ObjectKey
    body: Json
    tries: int = 0


@dataclass(slots=True)
class Notices:
    """Writes events. instance: who we are among replicas; per_second: how many at most."""

    writes: Writes
    instance: str
    per_second: float
    is_enabled: bool = True
    counted: Callable[[str], None] = lambda _result: None
    _waiting: Untold[Decision | Alarm] = field(default_factory=Untold)
    # What is no news, the last of each subject.
    _again: OrderedDict[Uid, tuple[str, Decision | Alarm]] = field(default_factory=OrderedDict)
    # What is tried again once no other news wait: where one namespace does not answer, others may.
    _unheard: deque[_Event] = field(default_factory=deque)
    # The pause that the API server asks for.
    _asked_s: float = 0.0
    # When what was told of each subject may be told again.
    _told: OrderedDict[Uid, dict[str, float]] = field(default_factory=OrderedDict)
    # What the namespaces answer that refuse events.
    _refused: dict[str, int] = field(default_factory=dict)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, decision: Decision, *, is_news: bool = True) -> None:
        """Have *decision* told, unless the pod was told the same not long ago."""
        self._again.pop(decision.uid, None)
        self._put((decision.uid, self._words(decision)), decision, is_news=is_news)

    def raise_alarm(self, alarm: Alarm, *, is_news: bool) -> None:
        """Have *alarm* told, unless its subject was told the same not long ago."""
        self._put((alarm.subject.uid, f"{alarm.reason}@{alarm.text}"), alarm, is_news=is_news)

    def forget(self, subject: Uid) -> None:
        """Forget what was told of a pod that waits no longer, and what was to be told of why it waited.

        Where hundreds go at once, who waits still would hear nothing until all of these were told.
        """
        self._told.pop(subject, None)
        self._again.pop(subject, None)
        for _ in range(self._waiting.drop(subject, _is_of_waiting)):
            self.counted("dropped")

    def _words(self, decision: Decision) -> str:
        """Say what makes *decision* another one than was told: its cause, too, as long as there are few of a reason."""
        words, cause = f"{decision.reason}@{decision.node or ''}", cause_of(decision)
        if not cause:
            return words
        told = (*self._told.get(decision.uid, ()), *self._waiting.words(decision.uid))
        known = {other for other in told if other.startswith(f"{words}: ")}
        exact = f"{words}: {hash(cause)}"
        return exact if exact in known or len(known) < MOST_CAUSES else words

    def _put(self, key: tuple[Uid, str], what: Decision | Alarm, *, is_news: bool) -> None:
        if not self.is_enabled or self._is_told(key, what):
            return
        subject, words = key
        if key in self._waiting or (is_news and words not in self._told.get(subject, ())):
            self._waiting.put(key, what)
            if len(self._waiting) > MOST_WAITING:
                self._waiting.first()
                self.counted("dropped")
        elif subject in self._again or len(self._again) < MOST_WAITING:
            self._again[subject] = words, what
        self._news.set()

    def _is_told(self, key: tuple[Uid, str], what: Decision | Alarm) -> bool:
        subject, words = key
        left_s = self._told.get(subject, {}).get(words, what.at) - what.at
        # More is left than there was where the clock was set back.
        return 0 < left_s <= AGAIN_S

    async def run(self) -> None:
        """Write what waits, for ever; ever more slowly as long as nobody answers."""
        usual_s = pause_s = 1 / self.per_second
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting or self._again or self._unheard:
                is_done = await self._write_next()
                pause_s = usual_s if is_done else max(usual_s, self._asked_s, min(2 * pause_s, RETRY_S))
                await asyncio.sleep(pause_s)

    async def _write_next(self) -> bool:
        """Write what is next, where anything may be written now; tell whether there is an answer to go on by."""
        self._asked_s = 0.0
        why_not = self.writes.fence.why_not()
        if not why_not:
            return await self._write_some()
        if why_not == DOUBT:
            return False
        # Whoever leads now tells what goes on; what has waited here until we lead again would be old.
        self._waiting.clear()
        self._again.clear()
        self._unheard.clear()
        return True

    async def _write_some(self) -> bool:
        event = self._unheard.popleft() if self._unheard and not self._waiting else None
        key, what = (event.key, event.what) if event else self._next()
        try:
            return await (self._try(event) if event else self._write(key, what))
        except Exception:
            # Whatever is wrong with what is told of one subject, the others are told of.
            LOG.exception("telling of a pod or a claim failed", extra={keys.POD: key[0]})
            self.counted("failed")
            self._remember(*key, what.at + RETRY_S)
            return True

    def _next(self) -> tuple[tuple[Uid, str], Decision | Alarm]:
        """Take what is told next: news first."""
        if self._waiting:
            return self._waiting.first()
        subject, (words, what) = self._again.popitem(last=False)
        return (subject, words), what

    async def _write(self, key: tuple[Uid, str], what: Decision | Alarm) -> bool:
        """Write one event, unless that was done since it was put; tell whether there is an answer to go on by."""
        if self._is_told(key, what):
            return True
        note = _of_decision(what) if isinstance(what, Decision) else _of_alarm(what)
        body = objects.event(note, CONTROLLER, self.instance, datetime.fromtimestamp(what.at, UTC))
        return await self._try(_Event(key, what, note.regarding.key, body))

    async def _try(self, event: _Event) -> bool:
        """Write *event*, which is tried again where nobody knows; tell whether there is an answer to go on by."""
        event.tries += 1
        outcome = _landed(await self.writes.create_event(event.subject.namespace, event.body))
        # What one namespace refuses, as when it is being deleted, says nothing of others.
        is_heard, is_done = is_answered(outcome), isinstance(outcome, Succeeded)
        if isinstance(outcome, Later):
            self._asked_s = outcome.seconds
        if is_heard or event.tries == TRIES or len(self._unheard) == MOST_WAITING:
            self._end(event, outcome)
        else:
            self._unheard.append(event)
        if not (isinstance(event.what, Decision) and event.what.outcome is Decided.BOUND):
            self._remember(*event.key, event.what.at + (AGAIN_S if is_done else RETRY_S))
        return is_heard

    def _end(self, event: _Event, outcome: RequestOutcome) -> None:
        """Tell what became of *event*, which is not tried any more."""
        self.counted("written" if isinstance(outcome, Succeeded) else "failed")
        if self._is_trouble(event.subject.namespace, outcome):
            LOG.warning("an event was not written", extra={keys.POD: str(event.subject), keys.ERROR: str(outcome)})

    def _is_trouble(self, namespace: str, outcome: RequestOutcome) -> bool:
        """Tell whether *outcome* is to be told: what a namespace refuses is tried again for each subject, at once."""
        if not isinstance(outcome, Refused) or outcome.kind is Refusal.UNSENT:
            self._refused.pop(namespace, None)
            return not isinstance(outcome, Succeeded)
        is_known = self._refused.get(namespace) == outcome.status
        if len(self._refused) >= MOST_WAITING:
            self._refused.clear()
        self._refused[namespace] = outcome.status
        return not is_known

    def _remember(self, subject: Uid, words: str, until: float) -> None:
        """Remember what was told; that a pod is bound is told once anyhow, and is the last of it."""
        told = self._told.pop(subject, {})
        told.pop(words, None)
        told[words] = until
        if len(told) > MOST_TOLD:
            del told[next(iter(told))]
        self._told[subject] = told
        if len(self._told) > MOST_SUBJECTS:
            self._told.popitem(last=False)


def _is_of_waiting(what: Decision | Alarm) -> bool:
    return isinstance(what, Decision) and what.outcome is not Decided.BOUND


def _landed(outcome: RequestOutcome) -> RequestOutcome:
    """Return what *outcome* tells of an event: where there is one of its name, that has landed, for names are ours."""
    return Succeeded({}) if is_refused(outcome, Refusal.EXISTS) else outcome


def _of_decision(decision: Decision) -> objects.Note:
    return objects.Note(
        regarding=Pod(key=decision.pod, uid=decision.uid),
        name=_named(decision.pod.name, decision.at),
        reason=decision.reason,
        action="Binding" if decision.node else "Filtering",
        text=note_of(decision),
        is_warning=decision.outcome in (Decided.REJECTED, Decided.FAILED),
    )


def _of_alarm(alarm: Alarm) -> objects.Note:
    return objects.Note(
        regarding=alarm.subject,
        name=_named(alarm.subject.key.name, alarm.at),
        reason=alarm.reason,
        action="Watching",
        text=alarm.text,
        is_warning=True,
    )


def _named(subject: str, at: float) -> str:
    """Return a new name, by the moment as kube-scheduler's are: kubectl shows events in the order of names."""
    # A name that was cut off must not end as no part of a name may.
    return f"{subject[:200].rstrip('.-')}.{round(at * 1e9):016x}{uuid4().hex[:4]}"
