"""An event loop in simulated time: it runs what is ready, and its clock moves when it is told to."""

import asyncio
from typing import Any


class Loop(asyncio.SelectorEventLoop):
    """Never waits. *moment* is its time, in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.moment = 0.0

    def time(self) -> float:
        return self.moment

    def settle(self) -> None:
        """Run until everybody waits: for an answer, or for a later moment."""
        while self._is_busy():
            self.call_soon(self.stop)
            self.run_forever()

    def pass_to(self, moment: float) -> None:
        """Let time pass until *moment*, stopping at each moment at which somebody wanted to be woken."""
        while (due := self.next_due()) is not None and due <= moment:
            self.moment = max(self.moment, due)
            self.settle()
        self.moment = moment
        self.settle()

    def next_due(self) -> float | None:
        """Return when somebody wants to be woken next."""
        timers: list[asyncio.TimerHandle] = self._own("_scheduled")
        return min((timer.when() for timer in timers if not timer.cancelled()), default=None)

    def _is_busy(self) -> bool:
        due = self.next_due()
        return len(self._own("_ready")) > 0 or (due is not None and due <= self.moment)

    def _own(self, name: str) -> Any:
        # The queues of asyncio's loops have had these names since there are any; nothing else tells what is due.
        return getattr(self, name)
