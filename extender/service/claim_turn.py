"""Pods that share a claim reserve it one after the other: each would be refused for what another has just written."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from weakref import WeakValueDictionary

from extender.model.names import ObjectKey

# Whose turn it is, by claim; of claims that nobody reserves there is none.
Queues = WeakValueDictionary[ObjectKey, asyncio.Lock]


@dataclass(slots=True)
class ClaimTurn:
    """The turn of one work: at one claim at a time, or at none."""

    _queues: Queues
    _taken: tuple[ObjectKey, asyncio.Lock] | None = None

    async def take(self, claim: ObjectKey, patience_s: float) -> bool:
        """Wait for our turn to reserve *claim*, unless it is; tell whether it came in time."""
        if self._taken and self._taken[0] == claim:
            return True
        self.close()
        lock = self._queues.setdefault(claim, asyncio.Lock())
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await lock.acquire()
                self._taken = claim, lock
        return self._taken is not None

    def close(self) -> None:
        """Give up our turn, if we have one."""
        if self._taken:
            self._taken[1].release()
            self._taken = None
