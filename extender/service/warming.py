"""New questions, answered before anybody asks, and those that take long: in pieces, verbs are answered in between."""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from extender.allocation.fit import Fitter
from extender.allocation.question import Refusal
from extender.allocation.verdict import Fit
from extender.allocation.work import Work
from extender.kube.pace import stirred
from extender.model.claim import ClaimSpec, DeviceClass, ResourceClaim
from extender.model.names import ClassName
from extender.state.belief import Belief
from extender.telemetry import keys

LOG: Final = logging.getLogger(__name__)
# Claims that wait for their question to be looked at; of more, the first are left to whoever asks.
MOST = 1000
# Pieces of one question, each of up to a few milliseconds, before the next question has its turn.
MOST_PIECES = 20_000
# Pieces between two looks at what all questions take.
LOOK_EVERY = 1000
# How often it is looked for questions that are late.
TICK_S = 1.0


@dataclass(slots=True)
class Warming:
    """Works out where claims of a new kind fit when the first of them appears; then those that nobody can wait for."""

    belief: Belief
    _fresh: deque[ResourceClaim] = field(default_factory=lambda: deque(maxlen=MOST))
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)
    # What was looked at last: claims of a burst ask for the same, by the same classes.
    _latest: tuple[ClaimSpec, Mapping[ClassName, DeviceClass]] | None = None

    def shown(self, claim: ResourceClaim) -> None:
        """Note a claim that is there, unless what it asks for was noted just before."""
        if claim.allocation is not None:
            return
        spec, classes = claim.spec, self.belief.cluster.snapshot.classes
        if self._latest is None or self._latest[0] is not spec or self._latest[1] is not classes:
            self._latest = spec, classes
            self._fresh.append(claim)
        self._stirred.set()

    async def run(self) -> None:
        """Look at new claims as they come, and go on with questions that are late, for ever."""
        while True:
            await stirred(self._stirred, TICK_S)
            while self._fresh:
                await self._look(self._fresh.popleft())
            for fitter in self.belief.questions.late():
                await self._catch_up(fitter)

    async def _look(self, claim: ResourceClaim) -> None:
        try:
            await self._answer(claim)
        except Exception:
            # Whatever is wrong with one claim, the others are looked at; who asks about its pod is told.
            LOG.exception("looking at a claim failed", extra={keys.CLAIM: str(claim.key)})

    async def _answer(self, claim: ResourceClaim) -> None:
        classes, questions = self.belief.cluster.snapshot.classes, self.belief.questions
        if questions.is_known([claim], classes):
            return
        try:
            work = questions.fitter([claim], classes).pieces(self.belief.seen_by())
        except Refusal:
            return
        await self._go_on(work)

    async def _catch_up(self, fitter: Fitter) -> None:
        """Go on with a question that is late. What was found stays found, whatever changes meanwhile."""
        try:
            if await self._go_on(fitter.pieces(self.belief.seen_by())):
                fitter.is_late = False
        except Exception:
            # As above; it is not gone on with before somebody asks again.
            LOG.exception("looking at a claim failed")
            fitter.is_late = False

    async def _go_on(self, work: Work[Fit]) -> bool:
        """Do some pieces, and tell whether that was all. What is found takes room, which others have to make."""
        for number in range(MOST_PIECES):
            if next(work, self) is self:
                return True
            if number % LOOK_EVERY == LOOK_EVERY - 1:
                self.belief.questions.make_room()
            await asyncio.sleep(0)
        return False
