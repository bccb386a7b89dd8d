import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.web import name_table
from extender.web.name_table import UNKNOWN, NameTable
from extender.web.names import Names, plain_names
from extender.web.request import candidates_of
from tests.web.record import POD

NODE = st.text("abc-.0", min_size=1, max_size=20)


def plain(names: list[str]) -> Names:
    found = plain_names(orjson.dumps(names))
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def _always_worthwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_table, "WORTHWHILE", 0)


@given(st.lists(NODE, max_size=40, unique=True), st.lists(NODE, min_size=1, max_size=40), st.data())
def test_rows_are_those_of_a_dictionary(nodes: list[str], strangers: list[str], data: st.DataObject) -> None:
    asked = data.draw(st.permutations(nodes + strangers))
    row_of = {name: row for row, name in enumerate(nodes)}
    assert NameTable(nodes).rows(plain(list(asked))).tolist() == [row_of.get(name, UNKNOWN) for name in asked]


@given(st.lists(st.text(max_size=9), min_size=1, max_size=9, unique=True), st.data())
def test_names_that_are_not_plain_are_found_as_well(nodes: list[str], data: st.DataObject) -> None:
    nodes = [name.encode(errors="replace").decode() for name in nodes]
    nodes = list(dict.fromkeys(nodes))
    asked = data.draw(st.permutations(nodes))
    names = candidates_of(orjson.dumps({"Pod": POD, "NodeNames": asked})).names
    assert NameTable(nodes).rows(names).tolist() == [nodes.index(name) for name in asked]


def test_names_that_differ_in_zeros_at_their_end_are_told_apart() -> None:
    nodes = ["a", "a\0", "b"]
    assert NameTable(nodes).rows(plain(["b", "a"])).tolist() == [2, 0]
    assert NameTable(nodes).rows(["a\0"]).tolist() == [1]


def test_every_node_of_a_large_cluster_is_found() -> None:
    nodes = [f"node-{index}.rack-{index % 40}.cluster.example.com"[: 20 + index % 25] for index in range(15_000)]
    nodes = list(dict.fromkeys(nodes))
    assert NameTable(nodes).rows(plain(nodes)).tolist() == list(range(len(nodes)))


def test_a_name_that_only_begins_like_another_is_another() -> None:
    nodes = ["a", "ab", "abcdefgh", "abcdefghi"]
    assert NameTable(nodes).rows(plain(["abcdefghi", "abc", "ab", "a", "abcdefgh"])).tolist() == [3, UNKNOWN, 1, 0, 2]


def test_two_names_with_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    table = NameTable(["a", "b"])
    monkeypatch.setattr(table, "_words", table._words[::-1])
    assert table.rows(plain(["a", "b"])).tolist() == [UNKNOWN, UNKNOWN]
