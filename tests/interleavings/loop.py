"""Event loops in simulated time: they run what is ready, and their clock moves when it is told to."""

import asyncio
from typing import Any


class Clock:
    """One time, in seconds, for all loops: *moment*. It goes on for those that are stopped, too."""

    def __init__(self) -> None:
        self.moment = 0.0
        self._loops: list[Loop] = []

    def time(self) -> float:
        return self.moment

    def loop(self) -> "Loop":
        """Begin another loop, until it is closed."""
        self._loops = [loop for loop in self._loops if not loop.is_closed()]
        self._loops.append(Loop(self))
        return self._loops[-1]

    def settle(self) -> None:
        """Run until everybody waits: for an answer, or for a later moment."""
        while any(loop.settle() for loop in self._running()):
            pass

    def pass_to(self, moment: float) -> None:
        """Let time pass until *moment*, stopping at each moment at which somebody wanted to be woken."""
        while (due := self._next_due()) is not None and due <= moment:
            self.moment = max(self.moment, due)
            self.settle()
        self.moment = moment
        self.settle()

    def close(self) -> None:
        for loop in self._loops:
            loop.close()

    def _running(self) -> "list[Loop]":
        return [loop for loop in self._loops if not (loop.is_stopped or loop.is_closed())]

    def _next_due(self) -> float | None:
        return min((due for loop in self._running() if (due := loop.next_due()) is not None), default=None)


class Loop(asyncio.SelectorEventLoop):
    """Never waits. While it *is_stopped* nothing in it goes on, as in a process that gets no time."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.is_stopped = False

    def time(self) -> float:
        return self._clock.moment

    def settle(self) -> bool:
        """Run until everybody waits; tell whether anybody did not."""
        was_busy = self._is_busy()
        while self._is_busy():
            self.turn()
        return was_busy

    def turn(self) -> None:
        """Run what is ready now, and not what that leads to."""
        self.call_soon(self.stop)
        self.run_forever()

    def next_due(self) -> float | None:
        """Return when somebody wants to be woken next."""
        timers: list[asyncio.TimerHandle] = self._own("_scheduled")
        return min((timer.when() for timer in timers if not timer.cancelled()), default=None)

    def _is_busy(self) -> bool:
        due = self.next_due()
        return len(self._own("_ready")) > 0 or (due is not None and due <= self.time())

    def _own(self, name: str) -> Any:
        # The queues of asyncio's loops have had these names since there are any; nothing else tells what is due.
        return getattr(self, name)
