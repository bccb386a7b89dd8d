"""What a leader does first and last: all is listed anew and mended before anybody is answered."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from extender.kube.freshness import Freshness
from extender.kube.pace import Pace
from extender.service.attention import Attention
from extender.service.clearing import Clearing
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
    clearing: Clearing
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
            await self._until(lambda: self.leading.is_alone and (self._may_lead() or self.leading.is_hindered))
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
        """Return since when all is listed, once nothing can land any more that an earlier leader has sent.

        That is so at once where all is moved on that it could change. What cannot be moved on is waited for.
        """
        is_hindered = self.leading.is_hindered
        since = await self._listing()
        if is_hindered:
            await self._until(lambda: self.freshness.is_listed_since(since) or is_lost())
            if await self._moved_on(is_lost):
                self.leading.cleared()
            else:
                await self._until(lambda: not self.leading.is_hindered)
                since = await self._listing()
        return since

    async def _listing(self) -> float:
        await self.follows.renew()
        return self.pace.now()

    async def _moved_on(self, is_lost: Callable[[], bool]) -> bool:
        """Have all moved on, unless that is lost or as long is waited; tell whether it is done, and of use."""
        moving = asyncio.create_task(self.clearing.done(), name="clearing")
        try:
            await self._until(lambda: moving.done() or is_lost() or not self.leading.is_hindered)
            return moving.done() and moving.result() and not is_lost()
        finally:
            moving.cancel()
            await asyncio.gather(moving, return_exceptions=True)

    async def _looked_after(self, term: int, since: float, is_over: Callable[[], bool]) -> None:
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

    def _serve(self, term: int) -> None:
        self.leading.served = term
        self.metrics.takeover()
        LOG.info("leading", extra={keys.TERM: term})

    async def _until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            await self.pace.sleep(LOOK_S)
