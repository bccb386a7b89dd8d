"""What is left of a shared device and what an ask takes of it, both in thousandths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.capacity import Draw
from extender.allocation.usage import Usage
from extender.model.device import Capacity, Device
from extender.model.names import DeviceName
from extender.model.quantity import Quantity
from extender.topology.portions import WHOLE, left_of, taken_of


def of(*capacities: int) -> Device:
    """Return a device with some capacities, in nano units."""
    named = tuple((f"c{at}", Capacity(Quantity(nanos))) for at, nanos in enumerate(capacities))
    return Device(DeviceName("d"), capacity=named)


def used(*amounts: int) -> Usage:
    return Usage(shares=1, consumed=tuple((f"c{at}", nanos) for at, nanos in enumerate(amounts)))


def asked(*amounts: int) -> Draw:
    return Draw(tuple((f"c{at}", Quantity(nanos)) for at, nanos in enumerate(amounts)))


@st.composite
def fitting(draw: st.DrawFn) -> tuple[int, int, int]:
    """Draw a capacity, what is used of it, and an ask for which the rest is enough, maybe just so."""
    capacity = draw(st.one_of(st.integers(1, 40), st.integers(1, 1 << 70)))
    ask = draw(st.integers(1, capacity))
    spare = draw(st.one_of(st.just(0), st.integers(0, capacity - ask)))
    return capacity, capacity - ask - spare, ask


@given(fitting())
def test_what_fits_seems_to_fit(case: tuple[int, int, int]) -> None:
    capacity, taken, ask = case
    assert taken_of(of(capacity), asked(ask)) <= left_of(of(capacity), used(taken))


@given(fitting())
def test_what_is_left_is_what_was_left_less_what_is_taken_but_for_one_thousandth(case: tuple[int, int, int]) -> None:
    capacity, taken, ask = case
    before, after = (left_of(of(capacity), used(some)) for some in (taken, taken + ask))
    assert abs(before - taken_of(of(capacity), asked(ask)) - after) <= 1


@given(fitting())
def test_a_device_of_which_anything_is_taken_is_not_whole(case: tuple[int, int, int]) -> None:
    capacity, _, ask = case
    assert left_of(of(capacity), used(0)) == taken_of(of(capacity), asked(capacity)) == WHOLE
    assert left_of(of(capacity), used(ask)) < WHOLE
    assert taken_of(of(capacity), asked(ask)) <= WHOLE


@pytest.mark.parametrize(("capacity", "ask"), [(3, 1), (6, 1), (7, 1), (24, 8), (1000, 1), (1 << 38, 1)])
def test_the_last_share_of_a_device_takes_all_that_is_left(capacity: int, ask: int) -> None:
    assert left_of(of(capacity), used(capacity - ask)) == taken_of(of(capacity), asked(ask)) > 0


def test_what_is_left_of_nothing_is_nothing() -> None:
    assert left_of(of(3), used(3)) == left_of(of(3), used(4)) == left_of(of(0), used()) == 0


def test_of_several_capacities_the_scarcest_counts() -> None:
    assert left_of(of(3, 4), used(1, 2)) == 500
    assert taken_of(of(3, 4), asked(1, 2)) == 500
