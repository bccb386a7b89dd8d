import math

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from extender.allocation.cel import (
    Budget,
    CompileError,
    DeviceValue,
    EvaluationError,
    Verdict,
    compile_expression,
    compile_selector,
)
from extender.allocation.cel.errors import Crashed
from extender.allocation.cel.library.clock import calendar, day_number, format_timestamp, parse_timestamp
from extender.allocation.cel.library.conversions import format_double
from extender.allocation.cel.values import Optional, Timestamp
from tests.allocation.cel.expressions import device, expression, seeded
from tests.allocation.cel.fuzz import attack, garbage

SEEDS = st.integers(0, 2**64)


def verdict(text: str, seen: DeviceValue) -> Verdict | None:
    """Evaluate *text*; None where it does not compile, ends as no other term can absorb, or in an optional's bool."""
    try:
        program = compile_expression(text)
    except CompileError:
        return None
    try:
        if isinstance(program.compute(seen, Budget()), Optional):
            return None
    except Crashed:
        return None
    except EvaluationError:
        pass
    return program.evaluate(seen, Budget()).verdict


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_logic_is_minimum_and_maximum_of_verdicts(seed: int) -> None:
    random = seeded(seed)
    left, right, seen = expression(random, depth=3), expression(random, depth=3), device(random)
    one, other = verdict(left, seen), verdict(right, seen)
    if one is None or other is None:
        reject()
    assert verdict(f"({left}) && ({right})", seen) == min(one, other)
    assert verdict(f"({right}) || ({left})", seen) == max(one, other)
    assert verdict(f"!({left})", seen) == 2 - one


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_same_program_gives_the_same_outcome(seed: int) -> None:
    random = seeded(seed)
    text, seen = expression(random), device(random)
    try:
        first, second = compile_expression(text), compile_expression(text)
    except CompileError:
        reject()
    outcomes = [program.evaluate(seen, Budget()) for program in (first, second, first)]
    assert outcomes[0] == outcomes[1] == outcomes[2]


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_nothing_but_our_errors_leaves_the_compiler(seed: int) -> None:
    attack(garbage(seeded(seed)), device(seeded(seed)))


@given(st.text(max_size=80))
def test_any_text_compiles_or_is_refused_with_a_place(text: str) -> None:
    refusal: CompileError | None = None
    try:
        compile_selector(text)
    except CompileError as error:
        refusal = error
    assert refusal is None or -1 <= refusal.position <= len(text)
    assert refusal is None or refusal.pointed(text).startswith(refusal.message)


@given(st.text(max_size=40))
def test_string_literal_stands_for_its_text(text: str) -> None:
    escaped = "".join(f"\\U{ord(character):08x}" for character in text if not 0xD800 <= ord(character) < 0xE000)
    value = compile_expression(f"'{escaped}'").compute(DeviceValue(driver=""), Budget())
    assert value == "".join(character for character in text if not 0xD800 <= ord(character) < 0xE000)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_sum_is_exact_or_an_error(one: int, other: int) -> None:
    program = compile_expression(f"{one} + {other}")
    if -(2**63) <= one + other < 2**63:
        assert program.compute(DeviceValue(driver=""), Budget()) == one + other
    else:
        assert program.evaluate(DeviceValue(driver=""), Budget()).verdict is Verdict.ERROR


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_double_survives_being_written(value: float) -> None:
    assert float(format_double(value)) == value
    assert math.copysign(1, float(format_double(value))) == math.copysign(1, value)


@given(st.integers(-62135596800, 253402300799), st.integers(0, 999_999_999), st.integers(-1439, 1439))
def test_timestamp_survives_being_written(seconds: int, nanos: int, minutes: int) -> None:
    timestamp = Timestamp(seconds * 1_000_000_000 + nanos, minutes * 60)
    local_year = calendar(timestamp, minutes * 60).year
    if 0 <= local_year <= 9999:
        assert parse_timestamp(format_timestamp(timestamp)) == timestamp


@given(st.integers(-719162, 2932896))
def test_day_has_one_number(day: int) -> None:
    at = calendar(Timestamp(day * 86_400 * 1_000_000_000), 0)
    assert day_number(at.year, at.month, at.day) == day


def test_values_can_be_computed_after_a_failure() -> None:
    program, budget = compile_expression("1 / (size(device.driver) - 1)"), Budget()
    with pytest.raises(EvaluationError, match="division by zero"):
        program.compute(DeviceValue(driver="a"), budget)
    assert program.compute(DeviceValue(driver="abc"), budget) == 0
