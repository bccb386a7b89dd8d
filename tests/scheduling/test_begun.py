"""Searches that take turns: however many do, each one ends."""

import pytest

from extender.allocation.snapshot import empty
from extender.allocation.solve import Undecided
from extender.scheduling.begun import IDLE, MOST, Begun, Left, Searching

EMPTY = empty()


def lasting(turns: int) -> Searching:
    for _ in range(turns):
        yield
    return Undecided(0)


def ends(begun: Begun, key: int, turns: int) -> bool:
    """Give the search *key* a turn; tell whether it ended."""
    left = begun.take(key) or Left(lasting(turns), EMPTY)
    try:
        next(left.work)
    except StopIteration:
        return True
    begun.leave(key, left)
    return False


@pytest.mark.parametrize("askers", [1, MOST, MOST + 1, 3 * MOST])
def test_each_search_ends_however_many_take_turns(askers: int) -> None:
    begun, left = Begun(), set(range(askers))
    for _ in range(40):
        left -= {key for key in sorted(left) if ends(begun, key, turns=5)}
    assert not left
    assert not len(begun)


def test_what_nobody_goes_on_with_makes_room() -> None:
    begun = Begun()
    assert not any(ends(begun, key, turns=5) for key in range(MOST))
    tries = next(tries for tries in range(10 * IDLE) if ends(begun, MOST, turns=2))
    assert tries > IDLE - MOST
    assert len(begun) == MOST - 1


def test_no_more_are_kept_than_there_is_room_for() -> None:
    begun = Begun()
    for key in range(10 * MOST):
        begun.leave(key, Left(lasting(1), EMPTY))
        assert len(begun) <= MOST
