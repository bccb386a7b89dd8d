"""What keeps us from answering."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from extender.kube.freshness import Freshness
from extender.kube.pace import Pace
from extender.kube.resource import CLAIMS
from extender.service.history import History
from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class Health:
    """Ready: everything was listed once, what was half written has been looked after, and the view is not too old.

    The scheduler is answered a little earlier: without what is not vital. One of several replicas is ready when it
    could lead: *trouble* says what keeps it from that. *worry* says what does not keep us from answering, and what
    somebody should look after.
    """

    freshness: Freshness
    max_age_s: float
    now: Callable[[], float]
    trouble: Callable[[], str] = lambda: ""
    worry: Callable[[], str] = lambda: ""
    history: History = field(default_factory=History)
    is_broken: bool = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self) -> None:
        """Remember that what was half written has been looked after."""
        self.begun.set()

    async def begin_when(self, is_able: Callable[[], bool], pace: Pace) -> None:
        """Begin as soon as everything is known, where nothing has to be looked after before; and stay."""
        await pace.until(is_able)
        self.begin()
        await asyncio.Event().wait()

    def lost(self, task: asyncio.Task[object]) -> None:
        """Note that a part of the service has ended, which none does but by a mistake of ours: a restart helps."""
        if not task.cancelled():
            LOG.critical(
                "a part of the service has ended", extra={keys.ERROR: task.get_name()}, exc_info=task.exception()
            )
            self.is_broken = True

    def is_alive(self) -> bool:
        """Tell whether a restart would not help."""
        return not (self.is_broken or self.history.is_over)

    def missing(self) -> Sequence[str]:
        """Say what is missing until we are ready, and why."""
        trouble = self.trouble()
        missing = self.hindering() or [f"{name} not listed yet" for name in self.freshness.unsynced()]
        told = [*missing, trouble] if trouble else missing
        return [*told, *self.freshness.troubles()] if told else []

    def warnings(self) -> Sequence[str]:
        """Say what is not as it should be, though we are ready."""
        worry = self.worry()
        return [worry] if worry else []

    def hindering(self) -> Sequence[str]:
        """Say what keeps us from answering."""
        if why_not := self.history.why_not():
            return [why_not]
        if not self.freshness.has_vital:
            return [f"{name} not listed yet" for name in self.freshness.unsynced() if name in self.freshness.vital]
        if not self.begun.is_set():
            return ["what was half written is still being looked after"]
        if self.freshness.is_one_sided:
            return [f"{CLAIMS} are not served, without which nobody knows which devices are free"]
        # No number: kube-scheduler writes the text into the pod's condition, and wakes the pod when it changes.
        return [f"the view of {name} is too old" for name in self.freshness.outdated(self.now() - self.max_age_s)]
