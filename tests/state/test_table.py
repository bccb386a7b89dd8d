"""Amounts in columns: what stands in few rows is kept without one, and nobody can tell."""

import tracemalloc
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.state.table import FEW, Table

ROWS = 32 * FEW
ADDED = st.tuples(st.integers(0, ROWS - 1), st.sampled_from("ab"), st.integers(-3, 3))


@given(st.lists(ADDED, max_size=20), st.integers(1, 2 * FEW), st.lists(ADDED, max_size=20))
def test_wherever_it_is_kept_the_sum_stands_in_each_row(
    before: list[tuple[int, str, int]], many: int, after: list[tuple[int, str, int]]
) -> None:
    table, expected = Table(ROWS), Counter[tuple[int, str]]()
    for row, resource, number in before:
        table.add(row, ((resource, number),), 1)
    table.add_all(np.arange(many) * 3, "a", np.ones(many, np.int64))
    table.grow(2 * ROWS)
    for row, resource, number in after:
        table.add(row, ((resource, number),), -1)
    for row, resource, number in before:
        expected[row, resource] += number
    expected.update((3 * row, "a") for row in range(many))
    for row, resource, number in after:
        expected[row, resource] -= number
    everywhere = np.arange(-1, 2 * ROWS)
    for resource in "ab":
        found = table.of(resource, everywhere).tolist()
        assert found == [expected[row, resource] for row in everywhere.tolist()]
    for row in {row for row, _ in expected}:
        assert table.at(row) == {name: number for (at, name), number in expected.items() if at == row and number}


def test_what_few_have_until_more_are_added_at_once_stands_in_one_place() -> None:
    table = Table(ROWS)
    table.add_all(np.arange(FEW), "a", np.ones(FEW, np.int64))
    table.add_all(np.arange(FEW) + 2, "a", np.ones(FEW, np.int64))
    assert table.of("a", np.arange(FEW + 2)).tolist() == [1, 1, *[2] * (FEW - 2), 1, 1]


@pytest.mark.parametrize("is_listed", [False, True])
def test_a_pod_that_asks_for_very_many_resources_takes_no_column_for_each(*, is_listed: bool) -> None:
    table, names = Table(8192), [f"example.com/{number}" for number in range(1000)]
    tracemalloc.start()
    for name in names:
        if is_listed:
            table.add_all(np.array([7]), name, np.array([1]))
        else:
            table.add(7, ((name, 1),), 1)
    kept, _ = tracemalloc.get_traced_memory()
    assert kept < 1000 * len(names)
    table.add(7, tuple((name, 1) for name in names), -1)
    assert tracemalloc.get_traced_memory()[0] < 200 * len(names)
    tracemalloc.stop()
    assert table.at(7) == {}
