"""What is wanted most is tried first, and nothing is left out."""

from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.masks import mask_of, places_of
from extender.allocation.preference import GATHERED, NO_SET, PASSED, REST, Tightest
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.topology.frames import Framed
from extender.topology.graded import ORDERED, Graded
from extender.topology.grades import Grades
from extender.topology.partitioned import Partitioned
from tests.topology.cases import FIRST_AT, broken_rules, sharing, situation
from tests.topology.mig import case, claim, request

NAMES = tuple(f"gpu-{index}" for index in range(3))
SEEN = situation(case(NAMES, [claim(request(""))]))
PLACES = range(len(SEEN.board.candidates))


def by_number(board: Board, at: At) -> Grades:
    del at
    places = range(len(board.candidates))
    return Grades(tuple(place // 2 % 3 for place in places), mask_of(place for place in places if place % 3 == 0))


@given(
    st.one_of(st.just(()), st.tuples(*[st.integers(0, 2)] * len(PLACES))),
    st.sets(st.sampled_from(PLACES)),
    st.sets(st.sampled_from(PLACES), min_size=1, max_size=7),
    st.integers(1, 4),
)
def test_all_sets_come_the_best_first(
    generations: tuple[int, ...], avoided: set[int], among: set[int], size: int
) -> None:
    grades = Grades(generations, mask_of(avoided))
    graded = Graded(Tightest(), lambda _, __: grades)
    found = [
        tuple(sorted(places)) for places in graded.sets(SEEN, FIRST_AT, mask_of(among), size, ()) if places or not size
    ]
    assert sorted(found) == sorted(combinations(sorted(among), size))
    worths = [grades.worth(mask_of(places)) for places in found]
    assert worths == sorted(worths)


def test_of_many_sets_those_come_first_that_have_as_little_of_what_is_avoided_as_can_be() -> None:
    avoided = mask_of(range(14))
    graded = Graded(Tightest(), lambda _, __: Grades((), avoided))
    among = mask_of(range(24))
    found = list(islice(filter(None, graded.sets(SEEN, FIRST_AT, among, 12, ())), 2 * ORDERED))
    assert {(mask_of(places) & avoided).bit_count() for places in found[:91]} == {2}
    assert all(among & ~avoided & ~mask_of(places) == 0 for places in found[:91])


class Passing(Tightest):
    """Says of each set that it was passed over."""

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        return (NO_SET for _ in super().sets(situation, at, mask, size, picks))


@pytest.mark.parametrize("size", [2, 14])
def test_what_is_passed_over_is_told(size: int) -> None:
    graded = Graded(Passing(), lambda _, __: Grades((), mask_of(range(14))))
    assert set(islice(graded.sets(SEEN, FIRST_AT, mask_of(range(24)), size, ()), ORDERED)) == {NO_SET}


def test_what_is_gathered_and_left_out_holds_nobody_up() -> None:
    """Of 24 devices one is avoided: sets without it are tried first, and are left out of all sets behind these."""
    graded = Graded(Tightest(), lambda _, __: Grades((), 1 << 23))
    sets = graded.sets(SEEN, FIRST_AT, mask_of(range(24)), 3, ())
    tried = comb(23, 3)
    assert sum(map(bool, islice(sets, tried))) == tried
    behind = list(sets)
    assert behind.count(()) >= tried // PASSED + comb(23, 2) // GATHERED
    assert sum(places is REST for places in behind) == comb(23, 2) // GATHERED


class Looking(Tightest):
    """Remembers what it sees of the first ask of the second claim."""

    def __init__(self) -> None:
        self.seen = 0

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        self.seen = situation.eligible[At(1, 0, 0)].free
        return super().sets(situation, at, mask, size, picks)


@pytest.mark.parametrize("avoided", [0, 1, 2])
def test_who_looks_ahead_sees_what_others_hope_for(avoided: int) -> None:
    asked = situation(case(NAMES, [claim(request("")), claim(request(""), name="d")]))
    free = asked.eligible[FIRST_AT].free
    bad, looking = 1 << places_of(free)[avoided], Looking()
    graded = Graded(looking, lambda _, __: Grades((), bad))
    assert next(iter(graded.sets(asked, FIRST_AT, free, 1, ()))) == places_of(free & ~bad)[:1]
    assert looking.seen == free & ~bad
    assert asked.eligible[At(1, 0, 0)].free == free


@pytest.mark.parametrize("start", range(0, 500, 100))
def test_allocations_in_drawn_clusters_break_no_rule(start: int) -> None:
    assert broken_rules(Graded(Framed(Partitioned(), sharing(), Tightest()), by_number), start, 100) == []
