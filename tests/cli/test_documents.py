import pytest

from extender.cli.documents import NotJson, documents
from extender.kube.decoding import decoded
from extender.model.parse.opaque import MARK

# Kubernetes keeps what orjson alone does not read.
DEEP = b'{"a": %s}' % (b"[" * 1100 + b"]" * 1100)
SHALLOW = decoded(DEEP)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b'{"a": 1}', [{"a": 1}], id="one"),
        pytest.param(b'{\n  "a": 1\n}\n', [{"a": 1}], id="one-on-several-lines"),
        pytest.param(b'{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}], id="one-per-line"),
        pytest.param(b'{"a": 1}\r\n\r\n{"a": 2}', [{"a": 1}, {"a": 2}], id="blank-lines"),
        pytest.param(b"[1]", [[1]], id="no-object"),
        pytest.param(DEEP.replace(b":", b":\n"), [SHALLOW], id="a-deep-one"),
        pytest.param(DEEP + b'\n{"b": 1}', [SHALLOW, {"b": 1}], id="a-deep-line"),
        pytest.param(b'{"a": "\\ud800"}', [{"a": MARK}], id="half-a-surrogate-pair"),
        pytest.param(b'{"a":\n"\xff"}', [{"a": MARK}], id="a-byte-that-is-no-utf-8"),
    ],
)
def test_documents_are_read_whole_or_by_line(text: bytes, expected: list[object]) -> None:
    assert list(documents(text)) == expected


@pytest.mark.parametrize(
    ("text", "places"),
    [
        pytest.param(b"", [(1, 1)], id="empty"),
        pytest.param(b"\xff\xfe{", [(1, 1)], id="not-utf-8"),
        pytest.param(b'{\n  "a": ?\n}', [(2, 8)], id="one-document"),
        pytest.param(b'{"a": 1}\n{"a": ?}\n{"a": 3}', [None, (2, 7), None], id="a-line-in-the-middle"),
        pytest.param(b'{"a": ?}\n{"a": 2}', [(1, 7), None], id="the-first-line"),
        pytest.param(b'{"a": 1}\n{"a":', [None, (2, 6)], id="the-last-line"),
        pytest.param(b'{"items": [\n{"a": 1},\n{"a": ?}\n]}', [(3, 7)], id="a-list-with-an-item-per-line"),
    ],
)
def test_what_is_not_json_is_placed_and_hides_nothing_else(text: bytes, places: list[tuple[int, int] | None]) -> None:
    found = [(item.line, item.column) if isinstance(item, NotJson) else None for item in documents(text)]
    assert found == places


def test_nesting_without_end_is_not_json() -> None:
    (item,) = documents(b"[" * 100_000)
    assert isinstance(item, NotJson)


def test_the_complaint_names_line_and_column() -> None:
    (item,) = documents(b'{\n  "a": ?\n}')
    assert str(item).startswith("line 2, column 8: not JSON: ")
