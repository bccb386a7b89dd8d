import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.columns import SPARE, Column, blank, column_of

VALUES = st.lists(st.none() | st.sampled_from(["a", "b", "c"]) | st.text(max_size=2), max_size=12)


@given(VALUES)
def test_a_column_decodes_to_what_it_was_made_of(values: list[str | None]) -> None:
    assert column_of(values).decoded() == values


@given(VALUES, VALUES, st.data())
def test_a_splice_equals_the_splice_of_a_list_and_leaves_the_old_column_alone(
    values: list[str | None], fresh: list[str | None], data: st.DataObject
) -> None:
    column = column_of(values)
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    codes = [0 if value is None else column.dictionary.code(value) for value in fresh]
    assert column.spliced(start, stop, codes).decoded() == values[:start] + fresh + values[stop:]
    assert column.decoded() == values


def test_values_that_no_row_uses_are_dropped_once_they_are_the_larger_part() -> None:
    column: Column[str] = column_of(["kept", "first"])
    for number in range(3 * SPARE):
        column = column.spliced(1, 2, [column.dictionary.code(f"uuid-{number}")])
    assert column.decoded() == ["kept", f"uuid-{3 * SPARE - 1}"]
    assert len(column.dictionary.values) <= SPARE + 8


def test_a_published_column_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        blank(2).codes[0] = 1


def test_a_measure_is_taken_once_for_each_distinct_value() -> None:
    column = column_of(["aa", None, "b", "aa"])
    asked: list[str] = []

    def length(value: str) -> int:
        asked.append(value)
        return len(value)

    assert column.table(length)[column.codes].tolist() == [2, 0, 1, 2]
    assert asked == ["aa", "b"]
    assert column.table(length).dtype == np.int64
