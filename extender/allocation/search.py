"""The exact search on one node: depth first over claims, requests and devices.

Each branch is a generator that yields the branches below it, and None where the search may pause: so it takes none of
Python's stack, however many devices a pod asks for, and can be continued later.
"""

from collections.abc import Generator, Iterator, Sequence
from enum import Enum

from extender.allocation.attempt import Attempt, Pick, Undo
from extender.allocation.eligibility import Eligible
from extender.allocation.foresight import Foresight
from extender.allocation.preference import REST, Preference, Turn, turns_of
from extender.allocation.question import RESULTS, Ask, At
from extender.allocation.situation import Situation
from extender.allocation.work import Work, finished


class Ending(Enum):
    """How a branch ended. CROWDED: with more results than a claim may have, whichever devices are taken."""

    FOUND = 0
    NONE = 1
    CROWDED = 2


Branch = Generator["Branch | None", Ending, Ending]
# Steps between two pauses; to order sets by what is preferred takes longer than to try a candidate.
PIECE = 250
ORDERED_PIECE = 20


class Exhausted(Exception):  # noqa: N818 - the end of a search, not an error
    """The steps that a search may take are spent: nobody knows whether there is a solution."""


class Search:
    """One search; *steps* is how many candidates, or sets of them, it may try; each look ahead counts as one too.

    With *foresight* it leaves out what cannot succeed; a *preference* orders the sets, and may leave some out: that
    nothing was found says nothing of others that are alike then.
    """

    def __init__(
        self,
        situation: Situation,
        steps: int,
        foresight: Foresight | None = None,
        preference: Preference | None = None,
    ) -> None:
        self.situation = situation
        self.attempt = Attempt(situation)
        self.steps = steps
        self.foresight = foresight
        self.preference = preference
        self._piece = PIECE if preference is None else ORDERED_PIECE
        self._pause_at = steps - self._piece
        self._turns = turns_of(situation, preference)
        self._turn_of = {turn: index for index, turn in enumerate(self._turns)}

    def run(self) -> tuple[Pick, ...] | None:
        """Return the first solution, None where there is none. Raise Met or Exhausted."""
        return finished(self.pieces())

    def pieces(self) -> Work[tuple[Pick, ...] | None]:
        """Do the same piece by piece."""
        branches: list[Branch] = [self._slot(0)]
        ending: Ending | None = None
        while branches:
            try:
                below = next(branches[-1]) if ending is None else branches[-1].send(ending)
            except StopIteration as end:
                branches.pop()
                ending = end.value
                continue
            ending = None
            if below is None:
                yield
            else:
                branches.append(below)
        # In the order of the question again; the devices of one ask stay as they were picked.
        return tuple(sorted(self.attempt.picks, key=lambda pick: pick.at)) if ending is Ending.FOUND else None

    def _slot(self, index: int) -> Branch:
        """Satisfy the slot whose turn it is."""
        if index == len(self._turns):
            return Ending.FOUND
        claim, slot = self._turns[index]
        if self.preference or not self.foresight:
            return (yield self._alternatives(claim, slot))
        state = self.foresight.state(self.attempt, claim, slot)
        if self._step():
            yield None
        if state in self.foresight.dead:
            return Ending.NONE
        ending = yield self._alternatives(claim, slot)
        if ending is Ending.NONE:
            self.foresight.dead.add(state)
        return ending

    def _after(self, at: At) -> Branch:
        """Go on with the slot after that of *at*; what crowds another claim is nothing that crowds this one."""
        index = self._turn_of[Turn(at.claim, at.slot)] + 1
        ending = yield self._slot(index)
        is_other = index < len(self._turns) and self._turns[index].claim != at.claim
        return Ending.NONE if is_other and ending is Ending.CROWDED else ending

    def _alternatives(self, claim: int, slot: int) -> Branch:
        """Try the asks of a slot in turn; CROWDED only if all of them are, for then no earlier device matters."""
        crowded = True
        for at in self.situation.question.slots[claim, slot]:
            ending = yield self._ask(at, self.situation.asks[at])
            if ending is Ending.FOUND:
                return ending
            crowded = crowded and ending is Ending.CROWDED
        return Ending.CROWDED if crowded else Ending.NONE

    def _ask(self, at: At, ask: Ask) -> Branch:
        found = self.situation.eligible[at]
        if ask.takes_all:
            return (yield self._take_every(at, ask, found, 0)) if found.every else Ending.NONE
        if self.preference:
            return (yield self._take_set(at, ask, self.preference))
        return (yield self._take(at, ask, ask.count, 0))

    def _take_set(self, at: At, ask: Ask, preference: Preference) -> Branch:
        """Take a whole set of devices, the preferred one first."""
        if ask.count > RESULTS - self.attempt.results[at.claim]:
            return Ending.CROWDED
        free = self.situation.eligible[at].free & ~self.attempt.in_use(at, ask)
        for places in preference.sets(self.situation, at, free, ask.count, self.attempt.picks):
            if places is REST or self._step():
                yield None
            if len(places) != ask.count:
                continue
            undos = self._give_all(at, ask, places)
            is_given = len(undos) == len(places)
            is_vain = is_given and self.foresight is not None and self.foresight.is_vain(self.attempt, at)
            ending = (yield self._after(at)) if is_given and not is_vain else Ending.NONE
            if ending is Ending.FOUND:
                return ending
            for undo in reversed(undos):
                self.attempt.take_back(undo)
            if ending is Ending.CROWDED:
                return ending
        return Ending.NONE

    def _give_all(self, at: At, ask: Ask, places: Sequence[int]) -> list[Undo]:
        """Give *places* until one cannot be given."""
        undos = []
        for place in places:
            undo = self.attempt.give(at, ask, place)
            if undo is None:
                break
            undos.append(undo)
        return undos

    def _take(self, at: At, ask: Ask, needed: int, start: int) -> Branch:
        """Take *needed* more devices from the places at *start* and after."""
        if needed <= 0:
            return (yield self._after(at))
        if needed > RESULTS - self.attempt.results[at.claim]:
            return Ending.CROWDED
        if self.foresight:
            hopeless = self.foresight.is_hopeless(self.attempt, at, needed, start)
            if self._step(1 + self.foresight.cost):
                yield None
            if hopeless:
                return Ending.NONE
        failed: set[object] = set()
        for place in self._candidates(at, ask, start):
            if self.foresight and self.foresight.kind(self.attempt, place) in failed:
                continue
            ending = yield self._with(at, ask, place, needed)
            if ending is not Ending.NONE:
                return ending
            if self.foresight:
                failed.add(self.foresight.kind(self.attempt, place))
        return Ending.NONE

    def _with(self, at: At, ask: Ask, place: int, needed: int) -> Branch:
        if self._step():
            yield None
        undo = self.attempt.give(at, ask, place)
        if undo is None:
            return Ending.NONE
        ending = yield self._take(at, ask, needed - 1, place + 1)
        if ending is not Ending.FOUND:
            self.attempt.take_back(undo)
        return ending

    def _candidates(self, at: At, ask: Ask, start: int) -> Iterator[int]:
        """Yield the places that can be tried, in their order; raise Met at one that is not to be passed over."""
        found = self.situation.eligible[at]
        left = found.reachable & ~self.attempt.in_use(at, ask) & -(1 << start)
        while left:
            lowest = left & -left
            left ^= lowest
            place = lowest.bit_length() - 1
            if place in found.errors:
                raise found.errors[place]
            yield place

    def _take_every(self, at: At, ask: Ask, found: Eligible, index: int) -> Branch:
        """Take all devices from *index* on: any one that cannot be had ends it."""
        if index == len(found.every):
            return (yield self._after(at))
        if len(found.every) - index > RESULTS - self.attempt.results[at.claim]:
            return Ending.CROWDED
        place = found.every[index]
        if not (found.free & ~self.attempt.in_use(at, ask)) >> place & 1:
            return Ending.NONE
        if self._step():
            yield None
        undo = self.attempt.give(at, ask, place)
        if undo is None:
            return Ending.NONE
        ending = yield self._take_every(at, ask, found, index + 1)
        if ending is not Ending.FOUND:
            self.attempt.take_back(undo)
        return ending

    def _step(self, cost: int = 1) -> bool:
        """Pay for a step; tell whether it is time for a pause."""
        self.steps -= cost
        if self.steps < 0:
            raise Exhausted
        if self.steps > self._pause_at:
            return False
        self._pause_at = self.steps - self._piece
        return True
