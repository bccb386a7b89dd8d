"""Sums of weights tell mixtures of kinds apart."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.columns import blank
from extender.allocation.features import ALL
from extender.allocation.layout import BITS
from extender.allocation.matches import DIGITS, MEASURED, matches_of, spread
from extender.allocation.question import ask
from extender.allocation.work import finished
from tests.allocation.small import CLASSES, claim, cluster, device, node, published, request

mixtures = st.lists(st.integers(0, DIGITS - 1), max_size=BITS).map(sorted)


@given(mixtures, mixtures)
def test_of_few_kinds_every_mixture_has_a_sum_of_its_own(left: list[int], right: list[int]) -> None:
    weights = spread(np.arange(DIGITS, dtype=np.int32))
    assert (weights[left].sum() == weights[right].sum()) == (left == right)


def test_the_largest_mixture_of_few_kinds_has_a_sum_that_is_a_number() -> None:
    kinds = np.arange(DIGITS, dtype=np.int32)
    assert [int(weight) * BITS for weight in spread(kinds)] == [(BITS + 1) ** kind * BITS for kind in range(DIGITS)]
    assert sum((BITS + 1) ** kind * BITS for kind in range(DIGITS)) < 2**63


@pytest.mark.parametrize("size", [2, 3])
def test_of_many_kinds_no_two_small_mixtures_have_one_sum(size: int) -> None:
    kinds = 1000 if size == 2 else 150
    weights = spread(np.arange(1000, dtype=np.int32))
    sums = weights[np.array(list(combinations_with_replacement(range(kinds), size)))].sum(axis=1)
    assert len(np.unique(sums)) == len(sums)


def test_of_many_kinds_no_weight_is_another_many_times_over() -> None:
    weights = spread(np.arange(5000, dtype=np.int32))
    multiples = np.concatenate([weights * times for times in range(1, BITS + 1)])
    assert len(np.unique(multiples)) == len(multiples)


def test_what_is_offered_to_each_ask_is_a_piece_of_work() -> None:
    snapshot = cluster(node("n"), published("n", device("d"), device("e"))).snapshot
    apart = [request(selectors=(f"device.driver != '{name}'",)) for name in "abc"]
    asked = ask([claim(item, name=name) for item, name in zip(apart, "abc", strict=True)], CLASSES, ALL)
    work = matches_of(asked, snapshot.inventory, blank(2))
    assert len(list(work)) == 3
    again = finished(matches_of(asked, snapshot.inventory, blank(2)))
    assert [match.usable.tolist() for match in again.of.values()] == [[True, True]] * 3


def test_what_thousands_of_disks_have_is_measured_in_pieces() -> None:
    disks = [device(f"d{number}", capacity={"size": str(number + 1)}) for number in range(3 * MEASURED)]
    snapshot = cluster(node("n"), published("n", *disks)).snapshot
    asked = ask([claim(request(capacity={"size": "9"}))], CLASSES, ALL)
    assert len(list(matches_of(asked, snapshot.inventory, blank(len(disks))))) == 3 + 1


def test_asks_that_the_same_devices_suit_have_one_match() -> None:
    snapshot = cluster(node("n"), published("n", device("a"), device("b"))).snapshot
    names = ("first", "second", "other")
    wanted = [request(2), request(1), request(1, selectors=("device.driver == 'x'",))]
    asked = ask([claim(item, name=name) for item, name in zip(wanted, names, strict=True)], CLASSES, ALL)
    matches = finished(matches_of(asked, snapshot.inventory, blank(2)))
    first, second, other = matches.of.values()
    assert first is second
    assert list(matches.each) == [first, other]
