"""What a policy prefers and avoids, as an order of sets, against all sets."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.masks import mask_of, places_of
from extender.topology.grades import Grades

DEVICES = 7


@given(
    st.one_of(st.just(()), st.tuples(*[st.integers(0, 2)] * DEVICES)),
    st.integers(0, 2**DEVICES - 1),
    st.integers(0, 2**DEVICES - 1),
    st.integers(1, DEVICES),
)
def test_the_first_masks_hold_exactly_the_best_sets(
    generations: tuple[int, ...], avoided: int, among: int, size: int
) -> None:
    grades = Grades(generations, avoided)

    def worth(mask: int) -> tuple[int, int]:
        return (mask & avoided).bit_count(), grades.worst(mask)

    sets = [mask_of(places) for places in combinations(places_of(among), size)]
    needed, step = next(grades.best(among, size), (0, 0))
    assert bool(sets) == bool(step)
    if sets:
        best = min(map(worth, sets))
        inside = [mask for mask in sets if needed & ~mask == 0 and mask & ~(needed | step) == 0]
        assert {mask for mask in sets if worth(mask) == best} <= set(inside)
        assert {worth(mask)[0] for mask in inside} == {best[0]}


def test_steps_end_with_all() -> None:
    assert list(Grades((2, 0, 1, 0)).steps(0b0111)) == [0b0010, 0b0110, 0b0111]
    assert list(Grades().steps(0b0111)) == [0b0111]
