"""From the bytes of a watch to events: what cannot be read is a reason to list anew."""

import json

import pytest

from extender.kube.setback import Remedy, Setback
from extender.kube.stream import Event, Lines, event_of, is_newer, is_older

METADATA = {"name": "n1", "resourceVersion": "7"}


def read(kind: object, inside: object) -> Event | Setback:
    return event_of(json.dumps({"type": kind, "object": inside}).encode())


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
def test_an_event_has_its_kind_and_the_version_of_its_object(kind: str) -> None:
    event = read(kind, {"metadata": METADATA})
    assert isinstance(event, Event)
    assert (event.type, event.version) == (kind, "7")


@pytest.mark.parametrize(
    ("kind", "inside"),
    [
        pytest.param("MOVED", {"metadata": METADATA}, id="a kind that nobody knows"),
        pytest.param("ADDED", {"metadata": {"name": "n1"}}, id="no version"),
        pytest.param("BOOKMARK", {"metadata": {"resourceVersion": ""}}, id="an empty version"),
        pytest.param("ADDED", {"metadata": {"resourceVersion": 7}}, id="a version that is no text"),
        pytest.param("ADDED", "n1", id="no object"),
    ],
)
def test_what_is_no_event_has_all_listed_anew(kind: object, inside: object) -> None:
    found = read(kind, inside)
    assert isinstance(found, Setback)
    assert found.remedy is Remedy.RELIST


@pytest.mark.parametrize("line", [b"{", b"[]", b"7"])
def test_what_is_no_json_or_no_object_has_all_listed_anew(line: bytes) -> None:
    found = event_of(line)
    assert isinstance(found, Setback)
    assert found.remedy is Remedy.RELIST


@pytest.mark.parametrize(("code", "is_expired"), [(410, True), (500, False), (404, False)])
def test_a_watch_that_ends_with_an_error_is_not_resumed(code: int, *, is_expired: bool) -> None:
    status = {"kind": "Status", "code": code, "reason": "So"}
    found = read("ERROR", status)
    assert isinstance(found, Setback)
    assert (found.remedy, found.is_expired, found.is_lasting) == (Remedy.RELIST, is_expired, False)


def test_lines_are_whole_however_they_come_and_empty_ones_are_none() -> None:
    lines = Lines()
    assert [lines.feed(chunk) for chunk in (b"on", b"e\ntwo\n\n \nthr", b"ee", b"\n")] == [
        [],
        [b"one", b"two"],
        [],
        [b"three"],
    ]


@pytest.mark.parametrize(
    ("one", "other", "newer", "older"),
    [
        ("10", "9", True, False),
        ("9", "10", False, True),
        ("9", "9", False, False),
        ("a", "9", True, False),
        ("a", "a", False, False),
    ],
)
def test_versions_are_numbers_and_others_are_known_to_differ_alone(
    one: str, other: str, *, newer: bool, older: bool
) -> None:
    assert (is_newer(one, other), is_older(one, other)) == (newer, older)
