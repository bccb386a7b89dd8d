"""What one of us has heard of before the other, the scheduler or we: what it asks waits for that for a moment."""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from extender.model.node import Pod
from extender.scheduling.endings import Order
from extender.scheduling.remedy import are_named
from extender.state.belief import Belief

# A watch is behind by milliseconds, and by a tenth of a second where processors are short. A pod that is sent away
# comes back after a second at the earliest.
PATIENCE_S: Final = 0.2
# The scheduler asks about nobody else meanwhile: after waiting in vain nobody is waited for, whatever claims do.
REST_S: Final = 10.0
# Where processors are short, what the scheduler has yet to hear is written in a tenth of a second. Where that takes
# longer nobody waits for it during a while.
WRITTEN_S: Final = 0.5
SLOW_S: Final = 2.0
# It hears of what is written within milliseconds, if it does nothing else. It may go on for twice as long then, and
# longer each time until it has heard of anything.
HEARD_S: Final = 0.05
# Bindings that wait at a time, for each looks again whenever something changes: more go on without waiting.
MOST_MEETING: Final = 128


@dataclass(slots=True)
class CatchingUp:
    """Waits for claims and pods; *stir* is to be called whenever something has changed."""

    belief: Belief
    now: Callable[[], float]
    # Says what is being written for others where the scheduler asks about a pod too early; None where it does not.
    hurry: Callable[[Pod], Collection[asyncio.Task[None]] | None] = lambda _pod: None
    _rests_until: float = float("-inf")
    _strolls_until: float = float("-inf")
    _stroll_s: float = 2 * HEARD_S
    _meeting: int = 0
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def stir(self) -> None:
        """Have those who wait look again."""
        self._news.set()

    async def hear(self, pod: Pod) -> None:
        """Return once each claim that *pod* names is known, or soon."""
        claims = self.belief.cluster.claims
        if not claims.lack(pod) or self.now() < self._rests_until:
            return
        await self._until(lambda: not claims.lack(pod))
        # It may have come all the same, where all of this was held up.
        if claims.lack(pod):
            self._rests_until = self.now() + REST_S

    async def keep_pace(self, pod: Pod) -> None:
        """Return once the scheduler can have heard where others go, or soon, if it asks too early about *pod*.

        It would ask about the next ones as early, and look at all nodes for each, which keeps it from hearing.
        """
        if pod.nominated_node:
            self._stroll_s = 2 * HEARD_S
        writing = self.hurry(pod) if self.now() >= self._strolls_until else None
        if writing:
            _, slow = await asyncio.wait(writing, timeout=WRITTEN_S)
            self._strolls_until = self.now() + SLOW_S if slow else self._strolls_until
        elif writing is not None:
            await asyncio.sleep(HEARD_S)
            self._strolls_until = self.now() + self._stroll_s
            self._stroll_s = min(2 * self._stroll_s, REST_S)

    async def meet(self, order: Order) -> bool:
        """Return once its pod is shown as the scheduler may bind it, or soon: to ask the API server takes it more.

        Tell whether anything was waited for.
        """
        if self._meeting >= MOST_MEETING or self._is_met(order):
            return False
        self._meeting += 1
        try:
            await self._until(lambda: self._is_met(order))
        finally:
            self._meeting -= 1
        return True

    def _is_met(self, order: Order) -> bool:
        """Tell whether the pod is shown to be let in, or bound."""
        known = self.belief.pods.with_uid(order.uid)
        if known is None:
            return self.belief.loads.node_of(order.pod, order.uid) is not None
        return not known.scheduling_gates and are_named(known)

    async def _until(self, is_so: Callable[[], bool]) -> None:
        """Wait for what is to be so, as long as our patience lasts."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S):
                while not is_so():
                    self._news.clear()
                    await self._news.wait()


def left_of(seconds: float) -> float:
    """Return how long a binding may take that is answered within *seconds*, and may have waited for its pod."""
    return max(seconds - PATIENCE_S, seconds / 2)
