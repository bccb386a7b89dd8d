"""Regular expressions that try to take time or memory: what is built and searched is paid for, and little is kept."""

from typing import Any

import pytest

from extender.allocation.cel import EVALUATION_STEPS, Budget, SelectorOutcome, Verdict, compile_selector, patterns
from extender.allocation.cel.errors import Failed
from extender.allocation.cel.limits import MAX_TEXT
from tests.allocation.cel.devices import DEVICE

TEN = "['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']"
AB = "'" + "x" * 200 + "'.replace('x', '" + "ab" * 50 + "')"


def many(count: int, pattern: str, text: str = "''") -> str:
    return "||".join(f"{text}.matches('{pattern}{number:x}')" for number in range(count))


BOMBS = {
    "five": many(5, "\\\\pL{200}"),
    "thirty": many(30, "\\\\pL{200}"),
    "all-that-a-text-holds": many(374, "\\\\pL{200}"),
    "too-large": many(60, "\\\\pL{300}", "'a'"),
    "middling": many(60, "\\\\pL{20}", "'a'"),
    "made-in-turns": f"{TEN}.all(a, {TEN}.all(b, 'x'.matches('\\\\pL{{300}}' + a + b) || true))",
    "small-ones": f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, !'x'.matches('\\\\pL' + a + b + c + d)))))",
    "long": "'a'.matches('" + "x" * 100 + "'.replace('x', '" + "\\\\pL" * 3 + "'))",
    "states": f"{AB}.matches('(.?){{1000}}c')",
    "more-states": f"[{AB}].exists(t, {many(60, 'a.{60}c', 't')})",
    "many-matches": f"{AB}.findAll('b*').size() > 0",
    "each-to-the-end": f"{AB}.findAll('a(.*c)?').size() > 0",
    "again-and-again": f"[{AB}].all(t, lists.range(1000).all(i, !t.matches('(a|b)*a(a|b){{20}}c')))",
}


class Counted:
    """An expression that counts the bytes of its searches times its instructions."""

    def __init__(self, regexp: Any, met: list[int]) -> None:
        self.regexp, self.met = regexp, met

    def ProgramSize(self) -> int:  # noqa: N802 - as RE2 has it
        return int(self.regexp.ProgramSize())

    def Match(self, how: object, raw: bytes, start: int, end: int) -> Any:  # noqa: N802 - as RE2 has it
        self.met.append((end - start) * self.ProgramSize())
        return self.regexp.Match(how, raw, start, end)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], list[int]]:
    """Count the room that expressions are built in, and what searches meet; nothing is built yet."""
    rooms, met, build = list[int](), list[int](), patterns._regexp

    def counted(pattern: str, memory: int) -> Any:
        rooms.append(memory)
        regexp = build(pattern, memory)
        return regexp and Counted(regexp, met)

    monkeypatch.setattr(patterns, "_regexp", counted)
    monkeypatch.setattr(patterns, "_SHELF", patterns.Shelf())
    return rooms, met


def outcome(text: str) -> SelectorOutcome:
    return compile_selector(text).evaluate(DEVICE, Budget())


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_what_is_built_and_searched_is_bounded(text: str, work: tuple[list[int], list[int]]) -> None:
    rooms, met = work
    program = compile_selector(text)
    # To be seen as patterns they need next to none, and nothing is kept.
    assert all(room == patterns.UNBUILT for room in rooms)
    rooms.clear()
    assert program.evaluate(DEVICE, Budget()).verdict is not Verdict.MATCH
    large = [room for room in rooms if room > patterns.TIERS[0].memory]
    assert sum(large) <= 16 << 20
    assert len(rooms) < 1000
    assert sum(met) <= 16 * EVALUATION_STEPS
    assert patterns._SHELF.taken <= patterns.ROOM


def test_programs_keep_no_expressions_and_all_together_few(work: tuple[list[int], list[int]]) -> None:
    rooms, _ = work
    budget = Budget()
    for number in range(20):
        compile_selector(many(100, f"a{number}-")).evaluate(DEVICE, budget)
        assert not budget.expressions
    assert len(rooms) > 2000
    assert len(patterns._SHELF._known) <= patterns.ROOM // patterns.TIERS[0].memory


def test_what_no_literal_can_be_is_not_kept(work: tuple[list[int], list[int]]) -> None:
    long = "'" + "x" * 100 + "'.replace('x', '" + "(a*)*" * 30 + "')"
    assert outcome(f"'a'.matches({long})").verdict is Verdict.MATCH
    assert len("(a*)*") * 30 * 100 > MAX_TEXT
    assert not patterns._SHELF._known
    assert work[0]


def test_an_expression_costs_the_same_whoever_has_built_it_before(work: tuple[list[int], list[int]]) -> None:
    rooms, _ = work
    for text in ("'a'.matches('^a$')", "'a'.matches('^\\\\pL{20}$') || true", f"'a'.matches({TEN}[1] + '|a')"):
        program, budget, spent = compile_selector(text), Budget(), list[int]()
        rooms.clear()
        for _ in range(3):
            assert program.evaluate(DEVICE, budget).verdict is Verdict.MATCH
            spent.append(budget.spent)
        assert len(set(spent)) == 1
        assert len(rooms) <= len(patterns.TIERS)


def test_an_expression_is_paid_for_once_in_an_evaluation() -> None:
    costs = []
    for count in (1, 2, 102):
        budget = Budget()
        compile_selector(f"lists.range({count}).all(i, 'a'.matches('^a$'))").evaluate(DEVICE, budget)
        costs.append(budget.spent)
    assert costs[1] - costs[0] < patterns.PATTERN
    assert costs[2] - costs[1] == 100 * (costs[1] - costs[0])


def test_names_of_all_alphabets_are_matched() -> None:
    text = "'Größe-7'.matches('^[\\\\p{L}\\\\p{N}_-]{1,63}$') && !'a b'.matches('^[\\\\p{L}\\\\p{N}_-]{1,63}$')"
    assert outcome(text).verdict is Verdict.MATCH


def test_what_takes_more_than_there_is_room_for_is_an_error_where_it_is_needed() -> None:
    assert outcome("'a'.matches('\\\\pL{500}') || true").error == patterns.TOO_LARGE
    assert outcome("true || 'a'.matches('\\\\pL{500}')").verdict is Verdict.MATCH
    assert (
        outcome("'a'.matches('" + "x" * 100 + "'.replace('x', '\\\\pL\\\\pL\\\\pL\\\\pL'))").error == patterns.TOO_LARGE
    )


@pytest.mark.parametrize(
    "pattern", ["(", "a**", "\\\\pL{200}(", "[z-a]", "(?<a", "\\\\8", "a{1001}", "((a{100}){100}){100}"]
)
def test_what_is_no_pattern_does_not_compile(pattern: str) -> None:
    with pytest.raises(Failed):
        patterns.check(Budget(), pattern.replace("\\\\", "\\"))


def test_a_text_with_more_patterns_than_are_looked_at_is_evaluated() -> None:
    heavy = many(20, "[^\\\\pL]" * 20, "'a'")
    bad = "'a'.matches('" + "[^\\\\pL]" * 20 + "(')"
    assert outcome(f"true || {heavy} || {bad} || {heavy}").verdict is Verdict.MATCH
    assert outcome(f"false && ({heavy}) || {bad} || false && ({heavy})").error.startswith("error parsing regexp")
