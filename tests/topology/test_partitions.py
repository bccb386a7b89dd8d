from collections.abc import Iterator
from itertools import combinations, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.topology.partitions import EXACT, Amounts, Cut, Pattern, Remains, Rest
from extender.topology.quality import ONE
from tests.topology.mig import a100

A100 = a100()
WHOLE = next(profile for profile in A100.profiles if not profile[1:].startswith("g."))


def cut(profile: str, slice_number: int) -> int:
    """Return the cut of a profile that begins at a slice."""
    of_profile = (index for index, one in enumerate(A100.cuts) if one.profile == profile)
    return next(index for index in of_profile if slices_of(A100.cuts[index])[0] == slice_number)


def slices_of(one: Cut) -> list[int]:
    """Return the memory slices of a cut of an A100: the counters memory-slice-0 to 7, which come by name."""
    return [index for index, amount in enumerate(one.draws[3:11]) if amount]


def taken(*cuts: tuple[str, int]) -> Rest:
    rest: Rest | None = A100.untouched
    for profile, slice_number in cuts:
        assert rest
        rest = Remains(A100).after(rest, cut(profile, slice_number))
    assert rest
    return rest


def packings(pattern: Pattern, rest: Rest, cuts: list[int]) -> Iterator[int]:
    """Yield the sizes of all sets of *cuts*, copies of which count by themselves, that can be had together."""
    copies = [pattern.cuts[index].draws for index in cuts for _ in range(rest.cuts[index])]
    for size in range(len(copies) + 1):
        for chosen in combinations(copies, size):
            drawn = [sum(draws[counter] for draws in chosen) for counter in range(len(rest.left))]
            if all(amount <= left for amount, left in zip(drawn, rest.left, strict=True)):
                yield size


def most(pattern: Pattern, rest: Rest, profile: str) -> int:
    return max(packings(pattern, rest, [index for index, one in enumerate(pattern.cuts) if one.profile == profile]))


def test_an_untouched_gpu_has_room_for_what_its_maker_says() -> None:
    remains = Remains(A100)
    found = {profile: remains.placements(A100.untouched, profile) for profile in A100.profiles}
    assert found == {"1g.5gb": 7, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1, WHOLE: 1}
    assert remains.value(A100.untouched) == ONE


@pytest.mark.parametrize(
    ("cuts", "left"),
    [
        pytest.param([("1g.5gb", 6)], (6, 3, 1, 1, 0), id="the seventh slice costs no pair"),
        pytest.param([("1g.5gb", 0)], (6, 2, 1, 0, 0), id="the first costs a pair and the half"),
        pytest.param([("3g.20gb", 4)], (4, 2, 1, 1, 0), id="the upper half keeps the lower one"),
        pytest.param([("3g.20gb", 0)], (3, 1, 1, 0, 0), id="the lower half keeps less"),
        pytest.param([("4g.20gb", 0)], (3, 1, 1, 0, 0), id="four and three"),
        pytest.param([("3g.20gb", 0), ("3g.20gb", 4)], (0, 0, 0, 0, 0), id="processors are left, but no memory"),
        pytest.param([("7g.40gb", 0)], (0, 0, 0, 0, 0), id="all"),
    ],
)
def test_what_partitions_leave(cuts: list[tuple[str, int]], left: tuple[int, ...]) -> None:
    remains, rest = Remains(A100), taken(*cuts)
    found = [remains.placements(rest, profile) for profile in A100.profiles if profile != WHOLE]
    assert tuple(found) == left
    assert remains.placements(rest, WHOLE) == 0


def reached() -> dict[Rest, None]:
    """Return all rests of an A100."""
    remains, found = Remains(A100), {A100.untouched: None}
    pending = [A100.untouched]
    while pending:
        rest = pending.pop()
        for index in range(len(A100.cuts)):
            after = remains.after(rest, index)
            if after and after not in found:
                found[after] = None
                pending.append(after)
    return found


def test_every_state_of_a_gpu_has_room_for_as_many_as_trying_all_finds() -> None:
    remains = Remains(A100)
    states = reached()
    assert len(states) > 100
    for rest in states:
        for profile in A100.profiles:
            assert remains.placements(rest, profile) == most(A100, rest, profile)


def test_taking_never_makes_more_of_a_gpu() -> None:
    remains = Remains(A100)
    for rest in reached():
        for index in range(len(A100.cuts)):
            if after := remains.after(rest, index):
                assert remains.value(after) < remains.value(rest)


def test_the_best_sets_are_those_that_trying_all_finds() -> None:
    remains = Remains(A100)
    every = tuple(one.copies for one in A100.cuts)
    for size in (1, 2):
        for rest in reached():
            best: dict[tuple[int, ...], int] = {}
            for cuts in combinations(range(len(A100.cuts)), size):
                left: Rest | None = rest
                for index in cuts:
                    left = left and remains.after(left, index)
                if left:
                    best[cuts] = remains.value(left) - remains.value(rest)
            found = remains.options(rest, every, size)[size]
            assert [option.change for option in found] == sorted(best.values(), reverse=True)
            assert {option.cuts: option.change for option in found} == best


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Draw a chip of a few counters, of which each device draws from some."""
    counters = draw(st.integers(1, 4))
    whole = tuple(draw(st.integers(1, 4)) for _ in range(counters))
    drawn = st.tuples(*(st.integers(0, min(amount, 2)) for amount in whole)).filter(any)
    cuts = draw(st.dictionaries(st.tuples(st.sampled_from("ab"), drawn), st.integers(1, 2), min_size=1, max_size=6))
    return Pattern(whole, tuple(Cut(profile, draws, (frozenset(),), n) for (profile, draws), n in sorted(cuts.items())))


@given(patterns(), st.lists(st.integers(0, 5), max_size=3))
def test_placements_are_as_many_as_trying_all_finds(pattern: Pattern, cuts: list[int]) -> None:
    remains, rest = Remains(pattern), pattern.untouched
    for index in cuts:
        rest = (index < len(pattern.cuts) and remains.after(rest, index)) or rest
    for profile in pattern.profiles:
        assert remains.placements(rest, profile) == most(pattern, rest, profile)


@given(patterns())
def test_the_order_of_counters_does_not_matter(pattern: Pattern) -> None:
    for order in list(permutations(range(len(pattern.whole))))[1:4]:

        def moved(amounts: Amounts, order: tuple[int, ...] = order) -> Amounts:
            return tuple(amounts[index] for index in order)

        other = Pattern(moved(pattern.whole), tuple(one._replace(draws=moved(one.draws)) for one in pattern.cuts))
        here, there = Remains(pattern), Remains(other)
        for index in range(len(pattern.cuts)):
            after, beyond = here.after(pattern.untouched, index), there.after(other.untouched, index)
            assert (after is None) == (beyond is None)
            if after and beyond:
                assert here.value(after) == there.value(beyond)


def test_where_too_many_compete_what_is_counted_can_be_had() -> None:
    # Pairs of neighbours on a ring: half of them go together.
    slots = 24
    assert 2**slots > EXACT
    pairs = [tuple(int(slot in (start, (start + 1) % slots)) for slot in range(slots)) for start in range(slots)]
    ring = Pattern((1,) * slots, tuple(Cut("pair", draws, (None,)) for draws in pairs))
    assert 0 < Remains(ring).placements(ring.untouched, "pair") <= slots // 2


def test_of_very_many_cuts_some_sets_are_found_in_time() -> None:
    # A counter of its own for each cut, and one for all.
    cuts = tuple(Cut(f"p{index % 9}", (index % 3 + 1, index), (None,), 3) for index in range(128))
    pattern = Pattern((40, 2000), cuts)
    found = Remains(pattern).options(pattern.untouched, (3,) * 128, 32)
    assert 1 < len(found) < 32
    assert all(found)


def test_chips_that_share_nothing_are_counted_apart() -> None:
    # Thirty-two devices on eight boards of four; one device takes a whole board.
    singles = [tuple(int(board == other) for other in range(8)) for board, _ in product(range(8), range(4))]
    cuts = (*(Cut("one", draws, (None,), 4) for draws in dict.fromkeys(singles)),)
    boards = tuple(Cut("board", tuple(4 * amount for amount in one.draws), (None,)) for one in cuts)
    pattern = Pattern((4,) * 8, (*cuts, *boards))
    remains = Remains(pattern)
    assert remains.placements(pattern.untouched, "one") == 32
    after = remains.after(pattern.untouched, 0)
    assert after
    assert [remains.placements(after, profile) for profile in ("one", "board")] == [31, 7]


def test_those_of_other_groups_may_not_join() -> None:
    mine, yours = frozenset({"a"}), frozenset({"b"})
    pattern = Pattern((4,), (Cut("one", (1,), (mine,), 2), Cut("other", (1,), (yours,), 2)))
    remains = Remains(pattern)
    after = remains.after(pattern.untouched, 0)
    assert after
    assert [remains.placements(after, profile) for profile in pattern.profiles] == [1, 0]


def test_an_overdrawn_chip_gives_nothing() -> None:
    rest = A100.rest((-1, *A100.whole[1:]), (None,), tuple(one.copies for one in A100.cuts))
    assert Remains(A100).value(rest) == 0
