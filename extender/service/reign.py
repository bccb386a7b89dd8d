"""What a leader does first and last: all is listed anew and mended before anybody is answered."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from extender.service.accession import Accession
from extender.service.attention import Attention
from extender.service.health import Health
from extender.service.leading import Leading
from extender.state.tenure import Wish
from extender.telemetry import keys
from extender.telemetry.metrics import Metrics

LOG: Final = logging.getLogger(__name__)
# How long a round of looking after pods may take to end before it is cut short.
ROUND_S: Final = 5.0


@dataclass(slots=True)
class Reign:
    """Begins and ends with the terms of *leading*."""

    leading: Leading
    accession: Accession
    attention: Attention
    health: Health
    metrics: Metrics
    is_busy: bool = False

    async def run(self) -> None:
        """Lead whenever it is our turn. A standby follows all the time, so as to be quick then."""
        pace = self.accession.pace
        await pace.until(lambda: self.accession.freshness.has_vital)
        self.health.begin()
        while True:
            await pace.until(lambda: self.leading.is_alone and (self._may_lead() or self.leading.is_hindered))
            self.is_busy = True
            try:
                await self._lead(self.leading.tenure.term)
            finally:
                self.is_busy = False

    def _may_lead(self) -> bool:
        return not self.leading.why_not() and self.leading.wish is not Wish.YIELD

    async def _lead(self, term: int) -> None:
        LOG.info("taking over", extra={keys.TERM: term})

        def is_lost() -> bool:
            return self.leading.tenure.term != term or not self.leading.is_alone

        def is_over() -> bool:
            return is_lost() or not self._may_lead()

        since = await self._cleared(is_lost)
        if not is_over():
            await self._looked_after(term, since, is_over)
        reason = self.leading.why_not() or self.leading.hindrance()
        LOG.info("no longer leading", extra={keys.TERM: term, keys.REASON: reason})

    async def _cleared(self, is_lost: Callable[[], bool]) -> float:
        """Return since when all is listed, once nothing can land any more that an earlier leader has sent."""
        is_hindered = self.leading.is_hindered
        since = await self.accession.listing()
        return await self.accession.unhindered(since, is_lost) if is_hindered else since

    async def _looked_after(self, term: int, since: float, is_over: Callable[[], bool]) -> None:
        is_listed = partial(self.accession.freshness.is_listed_since, since)
        looking = self.attention.run(lambda: self._serve(term), is_listed, is_over)
        work = asyncio.create_task(looking, name="attention")
        try:
            await self.accession.pace.until(lambda: work.done() or is_over())
            self.attention.stir()
            # A round that is under way may end, so that the outcome of each of its writes is known.
            await asyncio.wait({work}, timeout=ROUND_S)
            if work.done():
                work.result()
        finally:
            self.leading.served = 0
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    def _serve(self, term: int) -> None:
        self.leading.served = term
        self.metrics.takeover()
        LOG.info("leading", extra={keys.TERM: term})
