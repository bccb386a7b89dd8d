"""What is changed in a claim in protobuf is what was to be, and nothing else."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.kube.protobuf import (
    MAGIC,
    field,
    guard,
    reserved,
    sent,
    to_send,
    version_of,
    with_annotation,
    with_finalizer,
)
from extender.model.claim import Consumer
from extender.model.names import Uid

TYPE = field(1, field(1, b"v1") + field(2, b"Pod"))
SPEC, ALLOCATION, DEVICES = field(2, b"spec"), field(1, b"allocation"), field(4, b"devices")


def stored(content: bytes) -> bytes:
    """Return an object as the API server sends it: its type, itself, an encoding and a content type."""
    return MAGIC + TYPE + field(2, content) + field(3, b"") + field(4, b"")


@given(st.binary(max_size=20_000), st.binary(max_size=20_000))
def test_an_object_is_taken_out_and_another_put_in(one: bytes, other: bytes) -> None:
    assert sent(stored(one)) == one
    assert to_send(stored(one), other) == stored(other)


def test_what_is_added_is_metadata_that_comes_once_more() -> None:
    assert guard("u") == b"\x0a\x03\x2a\x01u"
    assert with_finalizer(SPEC, "a") == SPEC + b"\x0a\x03\x72\x01a"
    assert with_annotation(SPEC, "k", "v") == SPEC + b"\x0a\x08\x62\x06\x0a\x01k\x12\x01v"


def test_the_version_of_a_claim_is_read_from_before_what_is_no_text() -> None:
    number = b"\x38\x01"
    assert version_of(field(1, field(1, b"name") + field(6, b"27") + number) + SPEC) == "27"
    for lacking in (b"", SPEC, field(1, b"") + SPEC, field(1, field(1, b"name") + number)):
        with pytest.raises(ValueError, match="no object in protobuf"):
            version_of(lacking)


def test_a_long_field_says_so_in_two_bytes() -> None:
    assert field(16, b"x" * 300) == b"\x82\x01\xac\x02" + b"x" * 300


def test_of_a_status_only_whom_it_is_reserved_for_changes() -> None:
    before = SPEC + field(3, ALLOCATION + field(2, b"\x1a\x04pods") + DEVICES)
    one = Consumer(resource="pods", name="p", uid=Uid("u"))
    group = Consumer(api_group="g", resource="r", name="n", uid=Uid("v"))
    kept = SPEC + field(3, ALLOCATION + DEVICES)
    pods, groups = b"\x1a\x04pods\x22\x01p\x2a\x01u", b"\x0a\x01g\x1a\x01r\x22\x01n\x2a\x01v"
    assert reserved(before, [one, group]) == kept + field(3, field(2, pods) + field(2, groups))
    assert reserved(before, []) == kept + field(3, b"")


def test_whoever_stays_among_whom_it_is_reserved_for_stays_as_it_was() -> None:
    one, other = (Consumer(resource="pods", name=name, uid=Uid(name * 8)) for name in "pq")
    newer = field(2, b"\x1a\x04pods\x22\x01p\x2a\x08pppppppp\x30\x01")  # with a number that is not known here
    joining = field(2, b"\x1a\x04pods\x22\x01q\x2a\x08qqqqqqqq")
    before = field(3, ALLOCATION + newer)
    assert reserved(before, [one, other]) == field(3, ALLOCATION) + field(3, newer + joining)
    assert reserved(before, [other]) == field(3, ALLOCATION) + field(3, joining)


def test_who_is_called_like_the_identity_of_another_is_not_that_one() -> None:
    one = Consumer(resource="pods", name="p", uid=Uid("u"))
    other = field(2, b"\x0a\x00\x1a\x01r\x22\x03\x2a\x01u\x2a\x01v")
    assert reserved(field(3, other), [one]) == field(3, b"") + field(3, field(2, b"\x1a\x04pods\x22\x01p\x2a\x01u"))


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
        sent(body)


def test_of_a_large_claim_nothing_is_copied_to_read_one_field() -> None:
    large = field(1, field(6, b"27")) + field(2, b"x" * 1_000_000)
    tracemalloc.start()
    assert version_of(large) == "27"
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100_000
