"""What is added to an object in protobuf is added to its metadata, and nothing else changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.kube.protobuf import MAGIC, added, field, of, with_annotation, with_finalizers

TYPE = field(1, field(1, b"v1") + field(2, b"Pod"))


def stored(content: bytes) -> bytes:
    """Return an object as the API server sends it: its type, itself, an encoding and a content type."""
    return MAGIC + TYPE + field(2, content) + field(3, b"") + field(4, b"")


@given(st.binary(max_size=20_000))
def test_what_is_added_comes_after_the_object_and_all_else_stays(content: bytes) -> None:
    more = of("u", "7") + with_finalizers(["example.com/a"])
    assert added(stored(content), more) == stored(content + field(1, more))


def test_fields_are_spelled_as_protobuf_spells_them() -> None:
    assert of("u", "7") == b"\x2a\x01u\x32\x017"
    assert of("u") == b"\x2a\x01u"
    assert with_finalizers(["a", "b"]) == b"\x72\x01a\x72\x01b"
    assert with_annotation("k", "v") == b"\x62\x06\x0a\x01k\x12\x01v"
    assert field(16, b"x" * 300) == b"\x82\x01\xac\x02" + b"x" * 300


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"kind": "Status"}', id="json"),
        pytest.param(MAGIC + b"\x12\x05abc", id="cut-off"),
        pytest.param(MAGIC + b"\x12\xff", id="cut-off-in-a-number"),
        pytest.param(MAGIC + b"\x08\x01", id="a-number"),
    ],
)
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match="no object in protobuf"):
        added(body, of("u"))
