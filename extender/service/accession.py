"""What was sent before us, and may land yet, is kept away from whatever we write; or waited for."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from extender.kube.freshness import Freshness
from extender.kube.pace import Pace
from extender.service.clearing import Clearing
from extender.service.follows import Follows

LOG: Final = logging.getLogger(__name__)


class Heir(Protocol):
    """Who is about to write: the only replica, or a new leader."""

    @property
    def is_hindered(self) -> bool:
        """Whether nothing keeps us from writing but what was sent before us."""

    def cleared(self) -> None:
        """Write from now on: what was sent before us cannot land any more."""


@dataclass(slots=True)
class Accession:
    """Lets *heir* write as soon as nothing can land any more that was sent before it."""

    heir: Heir
    follows: Follows
    clearing: Clearing
    freshness: Freshness
    pace: Pace = field(default_factory=Pace)

    async def listing(self) -> float:
        """Have everything listed anew; return since when."""
        await self.follows.renew()
        return self.pace.now()

    async def unhindered(self, since: float, is_lost: Callable[[], bool] = lambda: False) -> float:
        """Return since when all is listed, once nothing can land any more that was sent before us.

        That is so as soon as all is moved on that it could change: all that was listed since *since*. What cannot be
        moved on is waited for, and then all is listed anew, for what has landed meanwhile.
        """
        await self.pace.until(lambda: self.freshness.is_listed_since(since) or is_lost())
        if await self._moved_on(is_lost):
            self.heir.cleared()
            return since
        await self.pace.until(lambda: is_lost() or not self.heir.is_hindered)
        return await self.listing()

    async def _moved_on(self, is_lost: Callable[[], bool]) -> bool:
        """Have all moved on, unless that is lost or as long is waited; tell whether it is done, and of use."""
        moving = asyncio.create_task(self.clearing.done(), name="clearing")
        try:
            await self.pace.until(lambda: moving.done() or is_lost() or not self.heir.is_hindered)
            return moving.done() and moving.result() and not is_lost()
        except Exception:
            # Whatever is wrong with some object, waiting is as safe.
            LOG.exception("to move on what was sent before us failed")
            return False
        finally:
            moving.cancel()
            await asyncio.gather(moving, return_exceptions=True)
