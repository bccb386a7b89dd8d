"""Regular expressions mean what they mean to Go, which has names for classes that RE2 lacks, and sees no bytes."""

import json
from collections.abc import Iterator

import pytest

from extender.allocation.cel import DeviceValue
from extender.allocation.cel.dialect import OUTSIDE, _is_known, re2_of
from tests.allocation.cel.computed import computed, plain
from tests.oracle_program import Oracle

PATTERNS = (
    *(r"\p{Letter}", r"\p{lu}", r"\p{greek}", r"\p{LC}", r"\P{lc}", r"[\p{L_C}1]", r"\p{Assigned}", r"\p{^ assigned}"),
    *(
        r"\p{ASCII}",
        r"[^\p{ascii}a]",
        r"\P{ascii}",
        r"[\P{ASCII}a]",
        r"\p{Any}",
        r"\p{any}",
        r"\p{punct}",
        r"\P{^Letter}",
    ),
    *(
        r"\p{lower-case letter}",
        r"\p{alpha}",
        r"\p{L&}",
        r"\p{IsGreek}",
        r"\p{Script=Greek}",
        r"\p",
        r"\p{",
        r"\pX",
        r"\p{}",
    ),
    *(r"\Q\p{Letter}\E", r"\Q\p{Letter}\Q\E\p{Letter}", r"\\p{Letter}", r"[]\p{Letter}]", r"[^]\p{lu}]", r"[\]\p{lu}]"),
    *(r"[[:^digit:]\p{lu}]", r"(?i:\p{uppercase_letter})", r"(?i)\p{letter}{2}", r"[\p{lu}-z]", r"[[]\p{lu}"),
    *(
        r"\C",
        r"[\C]",
        r"\\C",
        r"\Q\C\E",
        r"(?P<é>a)",
        r"(?<é>a)",
        r"(?P<n1>a)",
        r"(?<n>a)",
        r"(?P<n>a)(?P<n>b)",
        r"[(?P<é>]",
    ),
    *(r"\B", r"(?:\B)+", r"a\B", r"\Bb", r"\b", r"(?m:\B)|1", r"\B$", r"(|\B)"),
    *(
        r"a{,5}",
        r"a{1001}",
        r"a{1000}",
        r"\x{110000}",
        r"\x{3ba}",
        r"\x{1000}",
        r"(?U)a+",
        r"a**",
        r"\Z",
        r"\z",
        r"[a&&b]",
    ),
)
TEXTS = ("", "a", "AaéκΩ1", "Straße", "aéb", "\\p{Letter}", "a\nb]-(", "日本", "\\C")


def searches() -> Iterator[str]:
    for pattern in PATTERNS:
        for text in TEXTS:
            yield f"{json.dumps(text)}.findAll({json.dumps(pattern)})"
            yield f"{json.dumps(text)}.matches({json.dumps(pattern)})"


def test_searches_find_what_kubernetes_finds(oracle: Oracle) -> None:
    texts, device = list(searches()), DeviceValue(driver="gpu.example.com")
    body = {"driver": device.driver, "device": {}, "mode": "value"}
    answers = oracle.ask("cel", [{**body, "expression": text} for text in texts])
    told = [
        (text, theirs, mine)
        for text, answer in zip(texts, answers, strict=True)
        if (theirs := (answer["outcome"], plain(answer["value"]) if answer["outcome"] == "value" else None))
        != (mine := computed(text, device))
    ]
    assert told == []


@pytest.mark.parametrize(
    ("pattern", "given"),
    [
        (r"\pL\p{Lu}[[:alpha:]]", r"\pL\p{Lu}[[:alpha:]]"),
        (r"\p{Letter}", r"\p{L}"),
        (r"[\p{cased letter}x]", r"[\p{Lu}\p{Ll}\p{Lt}x]"),
        (r"\p{unassigned}", r"[^\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}\p{C}]"),
        (r"\Q\p{Letter}\E", r"\Q\p{Letter}\E"),
    ],
)
def test_names_of_classes_are_put_as_re2_knows_them(pattern: str, given: str) -> None:
    assert re2_of(pattern) == given


def test_no_place_within_a_character_is_found() -> None:
    device = DeviceValue(driver="gpu.example.com")
    assert computed("'Straße'.findAll('\\\\B').size()", device) == ("value", ("int", 3))
    assert computed("'aéb'.matches('\\\\B')", device) == ("value", ("bool", False))


def test_groups_without_an_end_are_looked_at_once() -> None:
    text = "(?<" * 10_000
    match = OUTSIDE.match(text)
    assert match is not None
    assert match.end() == len(text)
    assert re2_of(text) == text


def test_a_name_longer_than_any_class_has_is_not_remembered() -> None:
    before = _is_known.cache_info().currsize
    for pattern in (rf"\p{{{'L' * 90_000}}}", rf"[\P{{^{'letter' * 20}}}]"):
        assert re2_of(pattern) == pattern
    assert _is_known.cache_info().currsize == before
