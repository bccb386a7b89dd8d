"""New questions, answered before anybody asks, and those that take long: in pieces, verbs are answered in between."""

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from extender.allocation.fit import Fitter
from extender.allocation.question import Refusal
from extender.model.claim import ResourceClaim
from extender.state.belief import Belief

# Claims that wait for their question to be looked at; of more, the first are left to whoever asks.
MOST = 1000
# Pieces of one question, each of up to a few milliseconds, before the next question has its turn.
MOST_PIECES = 20_000
# How often it is looked for questions that are late.
TICK_S = 1.0


@dataclass(slots=True)
class Warming:
    """Works out where claims of a new kind fit when the first of them appears; then those that nobody can wait for."""

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
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._stirred.wait()
            self._stirred.clear()
            while self._fresh:
                await self._answer(self._fresh.popleft())
            for fitter in self.belief.questions.late():
                await self._catch_up(fitter)

    async def _answer(self, claim: ResourceClaim) -> None:
        classes, questions = self.belief.cluster.snapshot.classes, self.belief.questions
        if questions.is_known([claim], classes):
            return
        try:
            work = questions.fitter([claim], classes).pieces(self.belief.seen_by())
        except Refusal:
            return
        for _ in islice(work, MOST_PIECES):
            await asyncio.sleep(0)

    async def _catch_up(self, fitter: Fitter) -> None:
        """Go on with a question that is late. What was found stays found, whatever changes meanwhile."""
        work = fitter.pieces(self.belief.seen_by())
        for _ in range(MOST_PIECES):
            try:
                next(work)
            except StopIteration:
                fitter.is_late = False
                return
            await asyncio.sleep(0)
