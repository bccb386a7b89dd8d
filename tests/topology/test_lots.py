"""Sets of devices that are alike are found by their counts."""

from collections import Counter
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from extender.topology.lots import LOOKED, Counts, Lot, exchanged, fewest, filled


@st.composite
def some_lots(draw: st.DrawFn) -> list[Lot]:
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    found = []
    for index, size in enumerate(sizes):
        spare = draw(st.integers(-5, 5))
        places = tuple(range(10 * index, 10 * index + size))
        found.append(Lot(places, draw(st.integers(0, 6)), spare + draw(st.integers(0, 5)), spare))
    return found


def counts_of(lots: list[Lot], places: tuple[int, ...]) -> list[int]:
    return [len(set(lot.places).intersection(places)) for lot in lots]


def worth(lots: list[Lot], counts: list[int]) -> int:
    return sum(
        lot.gain * min(lot.wanted, count) + lot.spare * max(0, count - lot.wanted)
        for lot, count in zip(lots, counts, strict=True)
    )


def every(lots: list[Lot], count: int) -> list[list[int]]:
    ranges = product(*(range(len(lot.places) + 1) for lot in lots))
    return [list(counts) for counts in ranges if sum(counts) == count]


@given(some_lots(), st.integers(1, 9))
def test_no_counts_are_worth_more_than_what_is_filled(lots: list[Lot], count: int) -> None:
    known = every(lots, count)
    if known:
        places = filled(lots, count)
        assert len(places) == count
        assert worth(lots, counts_of(lots, places)) == max(worth(lots, counts) for counts in known)


@given(some_lots(), st.integers(1, 9))
def test_the_best_out_of_the_fewest_lots_is_among_those_of_few(lots: list[Lot], count: int) -> None:
    known = every(lots, count)
    found = [counts_of(lots, places) for places in fewest(lots, count)]
    assert all(counts in known for counts in found)
    if known:
        least = min(sum(map(bool, counts)) for counts in known)
        best = max(worth(lots, counts) for counts in known if sum(map(bool, counts)) == least)
        assert any(sum(map(bool, counts)) <= least and worth(lots, counts) >= best for counts in found)


def test_devices_are_exchanged_only_where_others_could_be_worth_more() -> None:
    lots, looks = [Lot((0, 1), 1, 1, 0), Lot((2, 3), 1, 1, 0)], Counter[Counts]()

    def worth(counts: Counts) -> int:
        looks[counts] += 1
        return 2 * counts[0]

    assert exchanged([lots], 2, worth, 2) == (0, 2)
    assert list(looks) == [(1, 1)]
    assert exchanged([lots], 2, worth, 4) == (0, 1)


def test_among_many_lots_not_all_exchanges_are_tried() -> None:
    lots, looks = [Lot((2 * one, 2 * one + 1), 1, 1, 0) for one in range(64)], Counter[Counts]()

    def worth(counts: Counts) -> int:
        looks[counts] += 1
        return counts[-1]

    assert len(exchanged([lots], 16, worth, 16)) == 16
    assert looks.total() < LOOKED
