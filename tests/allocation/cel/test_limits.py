"""Texts that try to hang the process or to fill its memory. Each must end with an outcome or a compile error."""

import sys

import pytest

from extender.allocation.cel import (
    EVALUATION_STEPS,
    Budget,
    CompileError,
    EvaluationError,
    SelectorOutcome,
    Verdict,
    compile_attribute,
    compile_expression,
    compile_selector,
)
from extender.allocation.cel.limits import MAX_ERROR, MAX_TEXT
from tests.allocation.cel.devices import DEVICE

TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"


def nested(depth: int, body: str = "true") -> str:
    return "".join(f"{TEN}.all(x{level}, " for level in range(depth)) + body + ")" * depth


def bound(count: int, first: str, body: str, end: str) -> str:
    """Bind variables, each made of the one before."""
    values = [first, *(body.replace("$", f"a{index}") for index in range(count - 1))]
    last = end.replace("$", f"a{count - 1}")
    return "".join(f"cel.bind(a{index}, {value}, " for index, value in enumerate(values)) + last + ")" * count


BOMBS = {
    "loops": nested(7),
    "doubling": '["x"]' + ".map(a, a + a)" * 40 + ".size() == 1",
    "concatenation": bound(60, "[1, 1]", "$ + $", "$.size() == 1"),
    "equality": bound(60, "[1, 1]", "[$, $]", "$ == $"),
    "formatting": bound(60, "[1, 1]", "[$, $]", "'%s'.format([$]) == ''"),
    "replace": '"xxxxxxxxxx"' + '.replace("x", "xxxxxxxxxx")' * 12 + ' == ""',
    "replace-empty": '"xxxxxxxxxx"' + '.replace("", "xxxxxxxxxx")' * 12 + ' == ""',
    "join": 'lists.range(100000).map(x, "aaaaaaaaaaaaaaaaaaaaaaaaaaaa").join(",") == ""',
    "range": "lists.range(9223372036854775807).size() == 1",
    "split": f'"{"a" * 5000}".split("").map(x, "{"b" * 500}".split("")).size() == 1',
    "flatten": "[lists.range(100000)].map(x, [x, x, x, x, x, x, x]).flatten().flatten().size() == 1",
    "sets": "sets.contains(lists.range(5000), lists.range(5000))",
    "distinct": "lists.range(100000).distinct().size() == 1",
    "precision": '"%.99999999f".format([1.5]) == ""',
    "width": '"%.99999999e".format([1.5]) == ""',
    "regex": 'lists.range(1000).all(x, "' + "a" * 4000 + '".matches("(a|aa)*$' + "(a?){50}" * 10 + '"))',
    "failing-variables": bound(60, "1 / 0", "($ == 1 || $ == 2) ? 1 : 0", "$ == 1"),
    "quantity": 'quantity("1e999999999") == quantity("1")',
    "literals": nested(5, "||".join(["false"] * 1400) + "||true"),
    "query": 'url("/?' + "a&" * 4000 + '").getQuery().size() == 1',
}
REFUSED = {
    "unterminated-string": '"' + "\\" * 10_000,
    "unterminated-text": '"""' + '\\"' * 5_000,
    "raw-quotes": "r'''" + "'" * 10_000,
    "brackets": "(" * 10_000,
    "dots": "." * 10_000,
    "digits": "1" * 10_000 + " == 1",
    "sum": "+".join("1" * 5_000) + " == 1",
    "lists": "[" * 300 + "]" * 300 + " == []",
    "type": bound(60, "{1: 1}", "{$: $}", "$ == {}"),
    "repetition": '"a".matches("((a{100}){100}){100}")',
    "length": " " * MAX_TEXT + "true",
}
# What the API server stores, as it costs at most 860,000 by its estimate, and Kubernetes evaluates.
HEAVY = {
    "a short body": nested(5, "device.attributes['dra.example.com'].mig || true"),
    "logic": nested(5, "bool(dyn(dyn('') && dyn(false))) || true"),
    "one of two branches": nested(4, "x0 < 10 ? device.attributes.size() >= 0 : {'a': [x1]} == {'b': [x2]}"),
    "loops in loops": nested(3, f"{TEN}.map(a, {{'a': a}}).all(b, b.a >= 0)"),
}


def outcome(text: str) -> SelectorOutcome:
    return compile_selector(text).evaluate(DEVICE, Budget())


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_bomb_is_an_error(text: str) -> None:
    result = outcome(text)
    assert result.verdict is Verdict.ERROR
    assert not result.error.startswith("internal error")


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_bomb_is_refused(text: str) -> None:
    with pytest.raises(CompileError):
        compile_selector(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 249 + "true" + ")" * 249,
        "!" * 5_000 + "true",
        " || ".join(["device.driver == 'x'"] * 400) + " || true",
        "true ? " * 1 + "true : " + "false ? false : " * 248 + "true",
        "1" + " + 1" * 249 + " == 250",
        "'a'" + ".trim()" * 248 + " == 'a'",
        "".join(f"[1].all(a{n}, " for n in range(200)) + "true" + ")" * 200,
        "".join(f"cel.bind(a{n}, 1, " for n in range(200)) + "a0 == 1" + ")" * 200,
        "optional.of(1)" + ".optMap(x, x)" * 200 + " != optional.none()",
    ],
    ids=["brackets", "signs", "alternatives", "conditions", "sum", "calls", "loops", "variables", "optionals"],
)
def test_deep_expression_is_evaluated(text: str) -> None:
    assert outcome(text).verdict is Verdict.MATCH


@pytest.mark.parametrize("text", HEAVY.values(), ids=HEAVY)
def test_what_costs_little_less_than_kubernetes_allows_is_evaluated(text: str) -> None:
    assert outcome(text).verdict is Verdict.MATCH


def turn(body: str) -> int:
    """Return what one turn of a loop spends."""
    budget = Budget()
    spent: list[int] = []
    for items in ("[0]", "[0, 0]"):
        compile_selector(f"{items}.all(x, {body})").evaluate(DEVICE, budget)
        spent.append(budget.spent)
    return spent[1] - spent[0]


@pytest.mark.parametrize(
    "body",
    [
        f"[x{', 1' * 1000}].size() > 1",
        f"{{x: 1{''.join(f', {number}: 1' for number in range(1, 1000))}}}.size() > 1",
        f"false{' || false' * 1000} || true",
    ],
    ids=["list", "map", "logic"],
)
def test_many_literals_are_paid_for_in_each_turn(body: str) -> None:
    assert turn(body) > 500


def test_a_turn_pays_for_the_dearer_branch_and_for_no_turn_of_a_loop_within() -> None:
    dear = "[[x], [x], [x]] == []"
    assert turn(f"(x == 0 ? {dear} : {dear}) || true") < 1.5 * turn(f"{dear} || true")
    assert turn("[].all(y, {'a': y} == {'b': y})") == turn("[].all(y, y)")


def test_budget_is_not_absorbed_by_logic() -> None:
    assert outcome(f"true || {nested(7)}").verdict is Verdict.MATCH
    assert outcome(f"{nested(7)} || true").verdict is Verdict.ERROR


def test_cost_limit_names_itself() -> None:
    assert "cost limit exceeded" in outcome(nested(7)).error


def test_one_evaluation_spends_no_more_than_its_limit() -> None:
    budget = Budget()
    compile_selector(nested(7)).evaluate(DEVICE, budget)
    assert EVALUATION_STEPS < budget.spent < 1.001 * EVALUATION_STEPS


def test_an_evaluation_begins_with_a_whole_budget_whatever_was_spent() -> None:
    program, budget = compile_selector("device.driver == 'x'"), Budget()
    assert compile_selector(nested(7)).evaluate(DEVICE, budget).verdict is Verdict.ERROR
    assert program.evaluate(DEVICE, budget).verdict is Verdict.NO
    assert compile_expression("1 + 1").compute(DEVICE, budget) == 2


def test_every_evaluation_pays_for_the_size_of_its_expression() -> None:
    program = compile_selector(" || ".join(["device.driver == 'x'"] * 100))
    budget = Budget()
    program.evaluate(DEVICE, budget)
    assert budget.spent >= 300


def deep(calls: int, text: str) -> SelectorOutcome | None:
    if calls:
        return deep(calls - 1, text)
    try:
        return outcome(text)
    except CompileError:
        return None


def test_deep_stack_of_the_caller_is_no_exception() -> None:
    text = "".join(f"[1].all(a{n}, " for n in range(150)) + "true" + ")" * 150
    for spare in (60, 150, 300):
        calls = sys.getrecursionlimit() - spare - len(_frames())
        result = deep(max(calls, 0), text)
        assert result is None or result.verdict in (Verdict.MATCH, Verdict.ERROR)


def _frames() -> list[object]:
    frame, found = sys._getframe(), []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back  # type: ignore[assignment]  # None ends the walk
    return found


def test_value_computed_within_the_limits_only() -> None:
    with pytest.raises(EvaluationError):
        compile_expression("lists.range(200000)").compute(DEVICE, Budget())


def test_an_error_quotes_no_more_than_is_told_of_what_was_built() -> None:
    key = '"' + "x" * 1000 + '"' + '.replace("x", "xxxxxxxxxx")' * 2
    outcome = compile_selector(f"{{'a': true}}[{key}]").evaluate(DEVICE, Budget())
    assert outcome.verdict is Verdict.ERROR
    assert outcome.error.startswith("no such key: xxx")
    assert len(outcome.error) == MAX_ERROR + 1
    with pytest.raises(EvaluationError) as met:
        compile_attribute(f"{{'a': true}}[{key}]").compute(DEVICE, Budget())
    assert str(met.value) == outcome.error
