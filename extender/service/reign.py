"""What a leader does first and last: all is listed anew and mended before anybody is answered."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from extender.kube.freshness import Freshness
from extender.kube.pace import Pace
from extender.service.attention import Attention
from extender.service.follows import Follows
from extender.service.health import Health
from extender.service.leading import Leading
from extender.state.tenure import Wish
from extender.telemetry import keys
from extender.telemetry.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
LOOK_S: Final = 0.1
# How long a round of looking after pods may take to end before it is cut short.
ROUND_S: Final = 5.0


@dataclass(slots=True)
class Reign:
    """Begins and ends with the terms of *leading*."""

    leading: Leading
    follows: Follows
    attention: Attention
    freshness: Freshness
    health: Health
    metrics: Metrics
    pace: Pace = field(default_factory=Pace)
    is_busy: bool = False

    async def run(self) -> None:
        """Lead whenever it is our turn. A standby follows all the time, so as to be quick then."""
        await self._until(lambda: self.freshness.has_vital)
        self.health.begin()
        while True:
            await self._until(self._may_lead)
            self.is_busy = True
            try:
                await self._lead(self.leading.tenure.term)
            finally:
                self.is_busy = False

    def _may_lead(self) -> bool:
        return not self.leading.why_not() and self.leading.wish is not Wish.YIELD

    async def _lead(self, term: int) -> None:
        LOG.info("taking over", extra={keys.TERM: term})
        await self.follows.renew()
        since = self.pace.now()

        def is_over() -> bool:
            return self.leading.tenure.term != term or not self._may_lead()

        looking = self.attention.run(lambda: self._serve(term), lambda: self.freshness.is_listed_since(since), is_over)
        work = asyncio.create_task(looking, name="attention")
        try:
            await self._until(lambda: work.done() or is_over())
            self.attention.stir()
            # A round that is under way may end, so that the outcome of each of its writes is known.
            await asyncio.wait({work}, timeout=ROUND_S)
            if work.done():
                work.result()
        finally:
            self.leading.served = 0
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        reason = self.leading.why_not() or self.leading.hindrance()
        LOG.info("no longer leading", extra={keys.TERM: term, keys.REASON: reason})

    def _serve(self, term: int) -> None:
        self.leading.served = term
        self.metrics.takeover()
        LOG.info("leading", extra={keys.TERM: term})

    async def _until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            await self.pace.sleep(LOOK_S)
