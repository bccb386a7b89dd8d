"""Names that are not decoded are those that were written."""

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st

from extender.web.name_table import NameTable
from extender.web.names import Names, only, plain_names

NAMES = st.lists(st.text("abc-.0", max_size=9), min_size=1, max_size=30)


def plain(names: list[str]) -> Names:
    found = plain_names(orjson.dumps(names))
    assert found is not None
    return found


@given(NAMES, st.data())
def test_names_that_are_left_are_those_with_a_flag(names: list[str], data: st.DataObject) -> None:
    flags = np.array([data.draw(st.booleans()) for _ in names])
    wanted = [name for name, flag in zip(names, flags, strict=True) if flag]
    left = only(plain(names), flags)
    assert len(left) == len(wanted)
    assert isinstance(left, Names)
    assert orjson.loads(left.json) == wanted
    assert list(left) == wanted == list(only(names, flags)) == list(only(Names(None, names), flags))
    # They are looked up, written and narrowed as if they had been read.
    distinct = list(dict.fromkeys(names))
    assert NameTable(distinct).rows(left).tolist() == [distinct.index(name) for name in wanted]
    assert left.quotes is not None
    if wanted:
        assert left.quotes.tolist() == plain_quotes(wanted)
        assert orjson.loads(left.only(np.arange(len(left)) % 2 == 0).json) == wanted[::2]


def plain_quotes(names: list[str]) -> list[int]:
    quotes = plain(names).quotes
    assert quotes is not None
    return list(map(int, quotes))


@given(NAMES, NAMES)
def test_names_are_equal_as_lists_are(one: list[str], other: list[str]) -> None:
    for made in (plain, lambda names: Names(None, names)):
        assert (plain(one) == made(other)) == (one == other)
        assert plain(one) == made(one)
