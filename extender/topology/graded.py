"""Sets in the order of what each ask's policy prefers and avoids; whatever is alike in that, in the order of others."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.masks import mask_of, places_of
from extender.allocation.preference import Preference, Turn, fitting, gathered
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.topology.grades import EVEN, Grades
from extender.topology.memo import Memo

Sets = Iterator[tuple[int, ...]]
# Situations that are remembered: searches of several nodes may take turns.
SITUATIONS: Final = 16
# Sets that are put in order by what is avoided, where that cannot be left aside; all of up to twelve devices.
ORDERED: Final = 1000


class Hopes(NamedTuple):
    """A situation; the same with no more for each ask than it wants, if that suffices; and what each ask thinks."""

    situation: Situation
    hoped: Situation
    grades: Mapping[At, Grades]


class Graded:
    """Tries what is wanted most first, and leaves the order among that to *preference*.

    Who chooses for one ask with an eye on the others sees what these want, so that nobody goes where what goes along
    is to be avoided. *grades_of* tells what an ask thinks of the candidates of a board.
    """

    def __init__(self, preference: Preference, grades_of: Callable[[Board, At], Grades]) -> None:
        self._preference, self._grades_of = preference, grades_of
        self._hopes: Memo[int, Hopes] = Memo(SITUATIONS)

    def order(self, situation: Situation) -> Sequence[Turn]:
        return self._preference.order(self._seen(situation).hoped)

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterable[tuple[int, ...]]:
        """Yield sets of *size* places out of *mask*, the best first."""
        seen = self._seen(situation)
        grades = seen.grades.get(at, EVEN)
        if not size or grades.is_even(mask):
            return self._preference.sets(seen.hoped, at, mask, size, picks)
        return self._graded(seen, at, mask, size, picks)

    def _graded(self, seen: Hopes, at: At, mask: int, size: int, picks: Sequence[Pick]) -> Sets:
        grades, before = seen.grades[at], 0
        liked = mask & ~grades.avoided
        for step in grades.steps(liked):
            if step.bit_count() >= size:
                sets = self._preference.sets(seen.hoped, at, step, size, picks)
                yield from fitting(sets, _beyond(before))
                before = step
        every = iter(self._preference.sets(seen.hoped, at, mask, size, picks))
        others = fitting(every, _beyond(~grades.avoided))
        first = yield from gathered(others, ORDERED)
        first.sort(key=lambda places: grades.worth(mask_of(places)))
        if len(first) == ORDERED and liked.bit_count() < size:
            yield from self._beside(seen, at, mask, size, picks)
        yield from first
        yield from others

    def _beside(self, seen: Hopes, at: At, mask: int, size: int, picks: Sequence[Pick]) -> Sets:
        """Yield some sets with all that is not avoided, where that is not enough."""
        needed, step = next(seen.grades[at].best(mask, size), (0, 0))
        chosen = [Pick(at, place) for place in places_of(needed)]
        sets = self._preference.sets(seen.hoped, at, step, size - len(chosen), (*picks, *chosen))
        left = ORDERED
        for places in sets:
            yield tuple(sorted((*(pick.place for pick in chosen), *places))) if places else places
            left -= bool(places)
            if not left:
                return

    def _seen(self, situation: Situation) -> Hopes:
        known = self._hopes.get(id(situation))
        if known is None or known.situation is not situation:
            known = self._hopes[id(situation)] = self._hoped(situation)
        return known

    def _hoped(self, situation: Situation) -> Hopes:
        choosing = [at for at, ask in situation.asks.items() if not (ask.takes_all or ask.is_admin)]
        grades = {at: self._grades_of(situation.board, at) for at in choosing}
        eligible, found = situation.eligible, {}
        for at in choosing:
            free = eligible[at].free
            # Who competes for the same devices needs some, too.
            size = sum(situation.asks[one].count for one in choosing if not one.ask and eligible[one].free & free)
            size = max(situation.asks[at].count, min(size, free.bit_count()))
            needed, step = next(grades[at].best(free, size), (0, free))
            if needed | step != free:
                found[at] = replace(eligible[at], free=needed | step)
        hoped = replace(situation, eligible={**eligible, **found}) if found else situation
        return Hopes(situation, hoped, grades)


def _beyond(mask: int) -> Callable[[tuple[int, ...]], bool]:
    """Tell which sets have any device that is not in *mask*."""
    return lambda places: bool(mask_of(places) & ~mask)
