"""A run that is beyond its budget fails, and says by what."""

import pytest

from loadtests.load.budget import ALONE, Budget, Measured, applying, exceeded

BUDGETS = (Budget("filter", 100, 4, 20), Budget("filter", 5000, 8, 40), Budget("bind", 5000, 8, 60))
WELL = {"filter": Measured(10, 0, 4, 20, 5), "bind": Measured(10, 0, 8, 60, 5)}


def test_what_is_within_its_budget_says_nothing() -> None:
    assert exceeded(WELL, BUDGETS, 100) == []


@pytest.mark.parametrize(
    ("verb", "measured", "said"),
    [
        ("filter", Measured(10, 0, 4.5, 20, 5), ["filter: p50 of 4.5 ms is more than 4 ms"]),
        ("filter", Measured(10, 0, 4, 21, 5), ["filter: p99 of 21 ms is more than 20 ms"]),
        ("filter", Measured(10, 1, 4, 20, 5), ["filter: 1 of 10 failed"]),
        ("bind", Measured(0, 0, 0, 0, 0), ["bind: was not asked"]),
        ("prioritize", Measured(9, 2, 999, 999, 5), ["prioritize: 2 of 9 failed"]),
    ],
)
def test_what_is_beyond_is_named(verb: str, measured: Measured, said: list[str]) -> None:
    assert exceeded(WELL | {verb: measured}, BUDGETS, 100) == said


def test_a_verb_that_was_not_measured_is_not_within_its_budget() -> None:
    assert exceeded({"filter": WELL["filter"]}, BUDGETS, 100) == ["bind: was not asked"]


@pytest.mark.parametrize(
    ("names", "found"), [(100, [100, 5000]), (101, [5000, 5000]), (5000, [5000, 5000]), (5001, [])]
)
def test_the_next_larger_size_is_the_one_that_counts(names: int, found: list[int]) -> None:
    assert sorted(budget.names for budget in applying(BUDGETS, names)) == found


def test_every_size_up_to_the_largest_has_a_budget_for_every_verb() -> None:
    for names in (1, 100, 1000, 5000, 15_000):
        assert {budget.verb for budget in applying(ALONE, names)} == {"filter", "prioritize", "bind"}
