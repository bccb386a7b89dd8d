"""Events on pods: one for each pod and distinct reason, at a bounded rate, and never in the way of anything."""

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
from extender.model.names import Uid
from extender.model.node import Pod
from extender.scheduling.account import note_of
from extender.scheduling.decision import Decision, Outcome
from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)
CONTROLLER: Final = "dra-extender.x-k8s.io/extender"
# Events that wait to be written, and pods and reasons that were told: older ones are forgotten.
MOST_WAITING, MOST_TOLD = 1000, 20_000


@dataclass(slots=True)
class Notices:
    """Writes events. instance: who we are among replicas; per_second: how many at most."""

    writes: Writes
    instance: str
    per_second: float
    is_enabled: bool = True
    counted: Callable[[str], None] = lambda _result: None
    _waiting: OrderedDict[tuple[Uid, str], Decision] = field(default_factory=OrderedDict)
    _told: OrderedDict[tuple[Uid, str], None] = field(default_factory=OrderedDict)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, decision: Decision) -> None:
        """Have *decision* told, unless the pod was told the same before."""
        key = decision.uid, f"{decision.reason}@{decision.node or ''}"
        if not self.is_enabled or key in self._told:
            return
        self._waiting[key] = decision
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
                key, decision = self._waiting.popitem(last=False)
                await self._write(key, decision)
                await asyncio.sleep(1 / self.per_second)

    async def _write(self, key: tuple[Uid, str], decision: Decision) -> None:
        note = objects.Note(
            regarding=Pod(key=decision.pod, uid=decision.uid),
            name=f"{decision.pod.name[:200]}.{uuid4().hex[:16]}",
            reason=decision.reason,
            action="Binding" if decision.node else "Filtering",
            text=note_of(decision),
            is_warning=decision.outcome in (Outcome.REJECTED, Outcome.FAILED),
        )
        body = objects.event(note, CONTROLLER, self.instance, datetime.fromtimestamp(decision.at, UTC))
        outcome = await self.writes.create_event(decision.pod.namespace, body)
        self.counted("written" if isinstance(outcome, Done) else "failed")
        if not isinstance(outcome, Done):
            LOG.warning("an event was not written", extra={keys.POD: str(decision.pod), keys.ERROR: str(outcome)})
            return
        self._told[key] = None
        if len(self._told) > MOST_TOLD:
            self._told.popitem(last=False)
