"""New questions, answered before anybody asks: in pieces, so that verbs are answered between them."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

from extender.allocation.question import Refusal
from extender.model.claim import ResourceClaim
from extender.state.belief import Belief

# Claims that wait for their question to be looked at; of more, the first are left to whoever asks.
MOST = 1000


@dataclass(slots=True)
class Warming:
    """Works out where claims of a new kind fit when the first of them appears. One question after the other."""

    belief: Belief
    _fresh: deque[ResourceClaim] = field(default_factory=lambda: deque(maxlen=MOST))
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)

    def shown(self, claim: ResourceClaim) -> None:
        """Note a claim that is there."""
        if claim.allocation is None:
            self._fresh.append(claim)
            self._stirred.set()

    async def run(self) -> None:
        """Answer for ever."""
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            while self._fresh:
                await self._answer(self._fresh.popleft())

    async def _answer(self, claim: ResourceClaim) -> None:
        snapshot = self.belief.seen_by()
        questions = self.belief.questions
        if questions.is_known([claim], snapshot.classes):
            return
        try:
            work = questions.fitter([claim], snapshot.classes).pieces(snapshot)
        except Refusal:
            return
        for _ in work:
            await asyncio.sleep(0)
