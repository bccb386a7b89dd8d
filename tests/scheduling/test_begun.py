"""Searches that take turns: however many do, each one ends."""

from collections.abc import Hashable
from weakref import ref

import pytest

from extender.allocation.snapshot import empty
from extender.allocation.solve import Undecided
from extender.scheduling.begun import MANY, MOST, OFTEN, Begun, Left, Searching

EMPTY = empty()


def lasting(turns: int) -> Searching:
    for _ in range(turns):
        yield
    return Undecided(0)


def ends(begun: Begun, key: Hashable, turns: int) -> bool:
    """Give the search *key* a turn; tell whether it ended."""
    left = begun.take(key) or Left(lasting(turns), EMPTY)
    try:
        next(left.work)
    except StopIteration:
        return True
    begun.leave(key, left)
    return False


@pytest.mark.parametrize("askers", [1, MOST, MOST + 1, 3 * MOST, 200])
def test_each_search_ends_however_many_take_turns(askers: int) -> None:
    begun, left = Begun(), set(range(askers))
    for _ in range(100):
        left -= {key for key in sorted(left) if ends(begun, key, turns=5)}
    assert not left
    assert not len(begun)


def test_one_that_comes_round_more_seldom_than_others_ends_too() -> None:
    begun, left = Begun(), set(range(3 * MOST))
    for number in range(600):
        asked = {key for key in left if key or number % (OFTEN - 1) == 0}
        left -= {key for key in sorted(asked) if ends(begun, key, turns=5)}
    assert not left


def test_what_nobody_goes_on_with_makes_room_for_all_who_do() -> None:
    begun = Begun()
    assert not any(ends(begun, ("gone", key), turns=5) for key in range(MOST))
    left = set(range(3 * MOST))
    for _ in range(OFTEN + 20):
        left -= {key for key in sorted(left) if ends(begun, key, turns=5)}
    assert not left


def test_what_nobody_goes_on_with_makes_room_where_each_is_left_off_but_once() -> None:
    begun = Begun()
    assert not any(ends(begun, ("gone", key), turns=5) for key in range(MOST))
    assert not any(ends(begun, ("once", key), turns=5) for key in range(MANY))
    assert not ends(begun, "another", turns=1)
    assert ends(begun, "another", turns=1)


def test_no_more_are_kept_than_there_is_room_for() -> None:
    begun = Begun()
    for key in range(10 * MOST):
        begun.leave(key, Left(lasting(1), EMPTY))
        assert len(begun) <= MOST


def test_of_a_search_that_is_turned_away_nothing_is_kept() -> None:
    begun, key = Begun(), type("Key", (), {})()
    assert not any(ends(begun, number, turns=5) for number in range(MOST))
    assert not ends(begun, key, turns=5)
    known = ref(key)
    del key
    assert known() is None
