"""What every write has to pass: whether it may leave, and whether what has left can still arrive."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from extender.kube.outcome import RequestOutcome, Unknown
from extender.kube.request import unhindered

# How long the API server works at a request, unless it is told otherwise.
SERVER_S = 60.0
NEVER = float("-inf")


@dataclass(slots=True)
class Fence:
    """Asked by each write just before it is sent. *why_not* says what keeps it back; server_s: as above."""

    why_not: Callable[[], str] = unhindered
    now: Callable[[], float] = time.monotonic
    server_s: float = SERVER_S
    _under_way: int = 0
    _in_doubt_until: float = NEVER

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for what was sent."""
        return not self._under_way

    @property
    def is_quiet(self) -> bool:
        """Whether nothing that was sent can still arrive."""
        return self.is_idle and self.now() >= self._in_doubt_until

    async def passed(self, work: Awaitable[RequestOutcome]) -> RequestOutcome:
        """Return how a write ended. One without an answer can arrive for as long as the server works at it."""
        outcome: RequestOutcome = Unknown("cut short")
        self._under_way += 1
        try:
            outcome = await work
        finally:
            self._under_way -= 1
            if isinstance(outcome, Unknown):
                self._in_doubt_until = self.now() + self.server_s
        return outcome
