import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.columns import Column, Dictionary, column_of
from extender.allocation.projection import TABLE, project

values = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc"), st.none() | st.just(1)), max_size=30)


@given(values)
def test_rows_share_a_code_exactly_if_they_agree_in_every_column(rows: list[tuple[int, str, int | None]]) -> None:
    columns = [column_of(row[index] for row in rows) for index in range(3)]
    projection = project(columns, len(rows))
    for left, one in enumerate(rows):
        for right, other in enumerate(rows):
            assert (projection.codes[left] == projection.codes[right]) == (one == other)
    for code, row in enumerate(projection.first.tolist()):
        assert projection.codes.tolist().index(code) == row


def test_columns_with_more_combinations_than_a_table_holds_are_sorted_instead() -> None:
    columns = [column_of(np.random.default_rng(seed).integers(0, 3000, 5000).tolist()) for seed in (1, 2, 3)]
    decoded = list(zip(*(column.decoded() for column in columns), strict=True))
    projection = project(columns, 5000)
    assert len(projection.first) == len(set(decoded))
    assert all(decoded[projection.first[code]] == row for code, row in zip(projection.codes, decoded, strict=True))


def test_no_rows_have_no_combinations_however_many_values_the_columns_knew() -> None:
    columns = [Column(np.zeros(0, np.int32), Dictionary([None, *range(3000)])) for _ in range(3)]
    assert len(project(columns, 0).first) == 0


def test_a_few_rows_of_many_columns_need_no_table_of_all_that_they_could_be() -> None:
    dictionary = Dictionary([None, *range(7)])
    columns = [Column(np.array([place % 2, place % 3, 7], np.int32), dictionary) for place in range(258)]
    tracemalloc.start()
    projection = project(columns, 3)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert projection.codes.tolist() == [0, 1, 2]
    assert most < TABLE // 8
