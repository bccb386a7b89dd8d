"""Time, as everything here takes it: a clock, waiting, chance, and turns of work short enough for the verbs."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Final

from extender.model.frozen import dataclass

TURN_S: Final = 250e-6
# Work that others have kept waiting for so many times as long as a turn has longer turns, up to so many times as long:
# on a busy machine, what a watch has brought would be old before it is told.
LATE: Final = 8
GROWN: Final = 8
FIRST_DELAY_S: Final = 0.1
LAST_DELAY_S: Final = 30.0
# How often it is looked whether what is waited for is so.
LOOK_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class Pace:
    """The clock, in seconds from anywhere; how to wait; and a number in [0, 1)."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    chance: Callable[[], float] = random.random

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Return when that *is_so*."""
        while not is_so():
            await self.sleep(LOOK_S)


def since_boot() -> float:
    """Return a time that only goes forward, and does so while the machine sleeps, where the system has such a clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


async def stirred(news: asyncio.Event, within_s: float) -> None:
    """Return when there are *news*, which are taken note of then, or after *within_s*."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await news.wait()
    news.clear()


class Backoff:
    """Delays that double from one failure to the next, up to a limit, and differ from one client to the next."""

    def __init__(self, pace: Pace, first_s: float = FIRST_DELAY_S, last_s: float = LAST_DELAY_S) -> None:
        self._pace = pace
        self._first_s = first_s
        self._last_s = last_s
        self._next_s = first_s

    def reset(self) -> None:
        self._next_s = self._first_s

    async def wait(self, at_least_s: float) -> None:
        """Wait half of the delay and up to all of it, or *at_least_s* and up to as much more."""
        delay = max(self._next_s, 2 * at_least_s) * (1 + self._pace.chance()) / 2
        self._next_s = min(2 * self._next_s, self._last_s)
        await self._pace.sleep(delay)


class Turns:
    """One piece of watch work at a time, none much longer than *turn_s*: between them, others on the loop run.

    They grow up to eight times that while others take too long in between: whoever is late gives them less time.
    All follows of a process share one: six of them, a turn each, would hold a verb up six times as long.
    """

    def __init__(self, turn_s: float = TURN_S, clock: Callable[[], float] = time.perf_counter) -> None:
        self._turn_s = turn_s
        self._clock = clock
        self._lock = asyncio.Lock()

    async def take(self, steps: Iterator[object]) -> None:
        """Go through *steps* to the end, in as many turns as they need; a step is never interrupted.

        Others have run when this returns: a stream whose data is there already would never let them.
        """
        ended, waited_s, is_done = self._clock(), 0.0, False
        while not is_done:
            async with self._lock:
                began = self._clock()
                waited_s += began - ended
                until = began + min(max(self._turn_s, waited_s / LATE), GROWN * self._turn_s)
                is_done = all(self._clock() < until for _ in steps)
                ended = self._clock()
            await asyncio.sleep(0)
