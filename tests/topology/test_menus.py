from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from extender.topology.menus import CARRIED, NOTHING, Menu, Taking, menu_of_loose, ordered


def menu(first: int, losses: list[int]) -> Menu:
    """Offer all sets of some places, of which each costs its own loss: so the best are those of the cheapest."""
    places = range(first, first + len(losses))
    sizes = [
        sorted(
            Taking(sum(losses[place - first] for place in chosen), 0, chosen, chosen)
            for chosen in combinations(places, size)
        )
        for size in range(len(losses) + 1)
    ]
    return Menu(tuple(map(tuple, sizes)), tuple(sizes[1] if losses else ()))


@given(st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=3), st.integers(0, 5))
def test_all_sets_are_offered_once_and_the_best_first(chips: list[list[int]], size: int) -> None:
    losses = [loss for chip in chips for loss in chip]
    starts = [sum(map(len, chips[:index])) for index in range(len(chips))]
    found = list(ordered([menu(start, chip) for start, chip in zip(starts, chips, strict=True)], size))
    assert sorted(found) == list(combinations(range(len(losses)), size))
    costs = [sum(losses[place] for place in places) for places in found]
    assert costs[:CARRIED] == sorted(costs)[:CARRIED]


def test_what_costs_nothing_comes_first_and_in_order() -> None:
    loose = menu_of_loose([(1, 8), (2, 7)], 3)
    assert list(ordered([menu(0, [1]), loose], 2)) == [(7, 8), (0, 8), (0, 7)]
    assert list(ordered([loose], 3)) == []
    assert list(ordered([menu_of_loose([], 2)], 0)) == [NOTHING.places]
