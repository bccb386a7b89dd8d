"""Selectors against Kubernetes' own environment: the same outcome, expression by expression."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import pytest

from extender.allocation.cel import Budget, CelValue, CompileError, DeviceValue, Verdict, compile_selector
from extender.model.semver import Semver
from tests.allocation.cel.cases import FAILING, REFUSED, TRUE
from tests.allocation.cel.computed import computed, plain
from tests.allocation.cel.expressions import device, expression, seeded
from tests.allocation.cel.scopes import scoped
from tests.allocation.cel.test_limits import HEAVY
from tests.allocation.cel.typed import drawn
from tests.allocation.cel.written.fixtures import asked, sight

WORDS = {Verdict.NO: "no", Verdict.ERROR: "error", Verdict.MATCH: "match"}
# The one exception: upstream's interpreter crashes where an overflow inside map() reaches its list, as in
# `[1, 2].map(x, x + 9223372036854775807).sort()`. Nothing absorbs that crash; here it is an overflow like any other.
INTERNAL = "internal error: interface conversion: *types.Err"
CRASH = f"error: {INTERNAL}"
# Where upstream's compiler crashes, or loses the name of a variable, the API server stores nothing to be evaluated.
UNSTORED = ("panic: ", "reference to undefined type: ")
# Longer texts take long, and tell no more.
LONG = 2000
DRAWN = int(os.environ.get("DRA_CASES", "1000"))


class Oracle(Protocol):
    def ask(self, command: str, cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]: ...


def published(value: CelValue) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    if isinstance(value, Semver):
        return {"version": str(value)}
    if isinstance(value, tuple):
        return {"ints" if value and isinstance(value[0], int) else "strings": list(value)}
    return {"string": value}


def question(text: str, value: DeviceValue) -> dict[str, Any]:
    attributes = {
        f"{domain}/{name}": published(item)
        for domain, inner in value.attributes.items()
        for name, item in inner.items()
    }
    capacity = {
        f"{domain}/{name}": {"value": str(item)}
        for domain, inner in value.capacity.items()
        for name, item in inner.items()
    }
    body = {
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": value.allow_multiple_allocations,
    }
    return {"expression": text, "driver": value.driver, "device": body}


def ours(text: str, value: DeviceValue) -> str:
    try:
        program = compile_selector(text)
    except CompileError:
        return "refused"
    return WORDS[program.evaluate(value, Budget()).verdict]


def differences(oracle: Oracle, pairs: list[tuple[str, DeviceValue]]) -> list[tuple[str, str, str]]:
    answers = oracle.ask("cel", [question(text, value) for text, value in pairs])
    told = [
        (text, answer["outcome"] + ": " + answer["error"], ours(text, value))
        for (text, value), answer in zip(pairs, answers, strict=True)
    ]
    return [row for row in told if row[1].partition(":")[0] != row[2] and not row[1].startswith(CRASH)]


def can_be_published(value: DeviceValue) -> bool:
    """Tell whether a slice can say it: an empty list is no value there, and a domain has at least one name."""
    domains = [*value.attributes.values(), *value.capacity.values()]
    return all(domains) and all(item != () for inner in value.attributes.values() for item in inner.values())


KINDS = ("bool", "bool", "int", "string", "list", "quantity", "optional", "dyn")


def test_drawn_expressions_have_the_value_that_kubernetes_computes(oracle: Oracle) -> None:
    random = seeded("values")
    devices = [value for _ in range(200) if can_be_published(value := device(random))]
    pairs = [(expression(random, random.choice(KINDS)), random.choice(devices)) for _ in range(DRAWN)]
    answers = oracle.ask("cel", [{**question(text, value), "mode": "value"} for text, value in pairs])
    told = [
        (text, theirs, mine)
        for (text, value), answer in zip(pairs, answers, strict=True)
        if not answer.get("error", "").startswith(INTERNAL)
        and (theirs := (answer["outcome"], plain(answer["value"]) if answer["outcome"] == "value" else None))
        != (mine := computed(text, value))
    ]
    assert told == []
    assert 0.2 * DRAWN < sum(answer["outcome"] == "value" for answer in answers) < 0.9 * DRAWN


def test_drawn_selectors_have_the_outcome_that_kubernetes_gives(oracle: Oracle) -> None:
    random = seeded("oracle")
    devices = [value for _ in range(200) if can_be_published(value := device(random))]
    pairs = [(expression(random), random.choice(devices)) for _ in range(DRAWN)]
    assert differences(oracle, pairs) == []


def values_alike(oracle: Oracle, texts: Sequence[str]) -> int:
    """Compare what *texts* come to; return how many of them have a value."""
    full = sight("full")
    answers = oracle.ask("cel", [asked("full", text) for text in texts])
    told = [
        (text, theirs, mine)
        for text, answer in zip(texts, answers, strict=True)
        if not answer.get("error", "").startswith((INTERNAL, *UNSTORED))
        and (theirs := (answer["outcome"], plain(answer["value"]) if answer["outcome"] == "value" else None))
        != (mine := computed(text, full))
    ]
    assert told == []
    return sum(answer["outcome"] == "value" for answer in answers)


def test_drawn_calls_of_every_function_have_the_value_that_kubernetes_computes(oracle: Oracle) -> None:
    random = seeded("functions")
    texts = [text for _ in range(DRAWN) if len(text := drawn(random)) < LONG]
    assert 0.3 * DRAWN < values_alike(oracle, texts) < 0.8 * DRAWN


def test_variables_keep_their_values_within_loops_within_bindings(oracle: Oracle) -> None:
    random = seeded("scopes")
    texts = [text for _ in range(DRAWN) if len(text := scoped(random)) < LONG]
    assert values_alike(oracle, texts) > 0.8 * DRAWN


@pytest.mark.parametrize("table", [TRUE, FAILING, REFUSED], ids=["true", "failing", "refused"])
def test_every_written_selector_has_the_outcome_that_kubernetes_gives(
    oracle: Oracle, table: dict[str, tuple[str, ...]]
) -> None:
    plain = DeviceValue(driver="dra.example.com")
    pairs = [(text, plain) for group in table.values() for text in group]
    assert pairs
    assert differences(oracle, pairs) == []


def test_bytes_that_are_no_text_are_told_as_kubernetes_tells_them(oracle: Oracle) -> None:
    text, plain = "{'a': 1}[url('http://a/?a=%ff%e2%82x').getQuery()['a'][0]] == 1", DeviceValue(driver="d.example.com")
    (answer,) = oracle.ask("cel", [question(text, plain)])
    assert compile_selector(text).evaluate(plain, Budget()).error == answer["error"]


def test_heavy_selectors_are_evaluated_by_kubernetes_too(oracle: Oracle) -> None:
    full = sight("full")
    answers = oracle.ask("cel", [{**asked("full", text), "mode": "selector"} for text in HEAVY.values()])
    assert [answer["outcome"] for answer in answers] == ["match"] * len(HEAVY)
    assert [ours(text, full) for text in HEAVY.values()] == ["match"] * len(HEAVY)
