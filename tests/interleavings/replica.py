"""One of two replicas: a process, and a line of its own for Leases."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from extender.kube.answer import Answer, Unanswered
from extender.kube.request import Body, Query
from extender.service.leading import Leading
from extender.state.tenure import Act, LeaseTimes, Step, Tenure, Wish
from tests.interleavings.process import Process
from tests.interleavings.server import Desk, Line, Request


class Hotline(Line):
    """A line for Leases alone, on which others have to wait for nothing. While it *is_cut* nothing comes through."""

    def __init__(self, desk: Desk, is_slow: Callable[[], bool]) -> None:
        super().__init__(desk)
        self._is_slow = is_slow
        self.is_cut = False

    async def call(
        self, method: str, path: str, *, query: Query = (), body: Body | None = None, timeout_s: float = 10.0
    ) -> Answer | Unanswered:
        """Have it done at once; what is slow is treated as everything else."""
        if self.is_cut:
            await asyncio.sleep(timeout_s)
            return Unanswered(was_sent=True, why="cut off")
        if self._is_slow():
            return await super().call(method, path, query=query, body=body, timeout_s=timeout_s)
        request = Request(method, path, body, self._desk.moment(), asyncio.get_running_loop().create_future(), self)
        return self._desk.perform(request)


class Overseen(Tenure):
    """Remembers when it was told that what was sent before can land no more, and whether it took what its pod had."""

    cleared_at: float | None = None
    is_next: bool = False

    def __init__(self, me: str, times: LeaseTimes, before: str) -> None:
        super().__init__(me, times, before)
        # Done at once, before anything else is written.
        self.clears: Callable[[], None] = lambda: None

    def next(self, now: float, wish: Wish, *, is_idle: bool, is_quiet: bool) -> Step:
        step = super().next(now, wish, is_idle=is_idle, is_quiet=is_quiet)
        if step.act is Act.TAKE:
            self.is_next = self.record is not None and self._has_ended(self.record)
        return step

    def cleared(self, now: float) -> None:
        super().cleared(now)
        if self.is_clear(now):
            self.cleared_at = self._clear_at
            self.clears()


@dataclass(slots=True)
class Replica:
    """A process and its line for Leases; *ends_at*: when it will have finished what is under way."""

    process: Process
    hotline: Hotline
    leading: Leading
    ends_at: float | None = None

    @property
    def may_write(self) -> bool:
        return not self.leading.why_not()

    @property
    def is_stopped(self) -> bool:
        return self.process.loop.is_stopped

    @property
    def has_cleared(self) -> bool:
        """Tell whether it has not waited for what was sent before, but seen to it that this changes nothing."""
        tenure = self.leading.tenure
        assert isinstance(tenure, Overseen)
        return tenure.cleared_at is not None and tenure.cleared_at == tenure._clear_at

    @property
    def is_next(self) -> bool:
        """Tell whether it has taken the Lease of a process before it in its pod."""
        tenure = self.leading.tenure
        assert isinstance(tenure, Overseen)
        return tenure.is_next

    def end(self) -> None:
        self.hotline.is_dead = True
        self.process.loop.is_stopped = False
        self.process.die()
