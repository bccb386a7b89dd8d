import gc
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.columns import EDITS, SPARE, Column, blank, column_of, differing

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


ROWS = 6
CHANGES = st.dictionaries(st.integers(0, ROWS - 1), st.sampled_from("abc"), max_size=3)


@given(st.lists(st.tuples(st.integers(0, 99), CHANGES), min_size=1, max_size=8), st.data())
def test_columns_that_were_made_of_each_other_differ_where_their_codes_do(
    steps: list[tuple[int, dict[int, str]]], data: st.DataObject
) -> None:
    columns: list[Column[str]] = [blank(ROWS)]
    for of, changes in steps:
        base = columns[of % len(columns)]
        columns.append(base.changed({row: base.dictionary.code(value) for row, value in changes.items()}))
        wanted = [changes.get(row, base.value(row)) for row in range(ROWS)]
        assert columns[-1].decoded() == wanted
    # Of some nobody knows any more what they were made of.
    columns[:] = [column for column in columns if data.draw(st.booleans())]
    for before in columns:
        for after in columns:
            found = differing(before, after)
            assert found is not None
            assert found.tolist() == np.flatnonzero(before.codes != after.codes).tolist()


def test_what_was_set_is_found_without_a_look_at_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    first: Column[str] = blank(ROWS)
    code = first.dictionary.code("a")
    one, other = first.changed({1: code}), first.changed({4: code}).changed({5: code})
    last = one
    for _ in range(EDITS):
        last = last.changed({2: code})
    monkeypatch.setattr(np, "flatnonzero", lambda _flags: np.array([-1]))
    for before, after, rows in ((first, one, [1]), (one, first, [1]), (one, other, [1, 4, 5]), (one, last, [2])):
        found = differing(before, after)
        assert found is not None
        assert found.tolist() == rows
    # Further back nothing is remembered.
    found = differing(first, last)
    assert found is not None
    assert found.tolist() == [-1]


def test_codes_are_let_go_of_though_others_were_made_of_them() -> None:
    before: Column[str] = blank(ROWS)
    known, after = ref(before.codes), before.changed({0: before.dictionary.code("a")})
    del before
    gc.collect()
    assert known() is None
    assert after.decoded()[0] == "a"


def test_codes_of_other_dictionaries_cannot_be_compared() -> None:
    assert differing(column_of(["a"]), column_of(["a"])) is None
    assert differing(blank(1), blank(2)) is None
