import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.quantity import (
    MAX_EXPONENT,
    MAX_INT64,
    MAX_LENGTH,
    MIN_INT64,
    NANO,
    Format,
    Quantity,
    integer_quantity,
    parse_quantity,
    quantity_of,
)

DECIMAL = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E")
BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
CAP = MAX_INT64 * NANO

signs = st.sampled_from(["", "+", "-"])
digits = st.text("0123456789", max_size=30)
suffixes = st.one_of(
    st.sampled_from(DECIMAL + BINARY),
    st.builds("{}{}".format, st.sampled_from("eE"), st.integers(-40, 40)),
)
texts = st.builds(
    "{}{}{}{}{}".format, signs, st.sampled_from(["0", "7", "00"]), digits, digits.map(".{}".format), suffixes
)
quantities = texts.map(parse_quantity)


@pytest.mark.parametrize(
    ("text", "nanos", "canonical"),
    [
        pytest.param("0", 0, "0", id="zero"),
        pytest.param("-0", 0, "0", id="negative-zero"),
        pytest.param("40Gi", 40 * 2**30 * NANO, "40Gi", id="binary"),
        pytest.param("1024Mi", 2**30 * NANO, "1Gi", id="largest-binary-suffix"),
        pytest.param("1.5Gi", 1536 * 2**20 * NANO, "1536Mi", id="binary-fraction"),
        pytest.param("1023Ki", 1023 * 1024 * NANO, "1023Ki", id="binary-not-divisible"),
        pytest.param("0.5Ki", 512 * NANO, "512", id="below-1024-no-binary-suffix"),
        pytest.param("0.9765625Ki", 1000 * NANO, "1k", id="below-1024-decimal-suffix"),
        pytest.param("-1Ki", -1024 * NANO, "-1Ki", id="negative-binary"),
        pytest.param("1.0001Ki", 1024_102400000, "1024102400u", id="binary-with-fraction-left"),
        pytest.param("0.0001Ki", 102400000, "102400u", id="binary-below-one-is-decimal"),
        pytest.param("1500m", 1_500_000_000, "1500m", id="milli"),
        pytest.param("0.5", 500_000_000, "500m", id="fraction"),
        pytest.param(".5", 500_000_000, "500m", id="nothing-before-the-point"),
        pytest.param("5.", 5 * NANO, "5", id="nothing-after-the-point"),
        pytest.param("+007", 7 * NANO, "7", id="sign-and-leading-zeros"),
        pytest.param("1000k", 10**6 * NANO, "1M", id="largest-decimal-suffix"),
        pytest.param("100k", 10**5 * NANO, "100k", id="thousands"),
        pytest.param("12e6", 12 * 10**6 * NANO, "12e6", id="exponent"),
        pytest.param("1E3", 1000 * NANO, "1e3", id="capital-exponent"),
        pytest.param("1e4", 10**4 * NANO, "10e3", id="exponent-in-threes"),
        pytest.param("1e0", NANO, "1", id="exponent-zero-is-not-printed"),
        pytest.param("1e-3", 10**6, "1e-3", id="negative-exponent"),
        pytest.param("3E", 3 * 10**18 * NANO, "3E", id="suffix-exa-is-no-exponent"),
        pytest.param("1000E", 10**21 * NANO, "1000E", id="beyond-exa-keeps-the-suffix"),
        pytest.param("1e24", 10**24 * NANO, "1e24", id="beyond-exa-as-exponent"),
        pytest.param("0.1n", 1, "1n", id="below-nano-rounds-up"),
        pytest.param("-0.1n", -1, "-1n", id="below-nano-rounds-away-from-zero"),
        pytest.param("1.0000000001", NANO + 1, "1000000001n", id="beyond-nano-rounds-up"),
        pytest.param("1e-1000", 1, "1e-9", id="tiny-exponent"),
        pytest.param("16Ei", CAP, str(MAX_INT64), id="binary-is-capped"),
        pytest.param("-16Ei", -CAP, f"-{MAX_INT64}", id="negative-binary-is-capped"),
        pytest.param("9223372036854775808", 2**63 * NANO, str(2**63), id="decimal-is-not-capped"),
        pytest.param("99999999999999999999E", (10**20 - 1) * 10**27, "99999999999999999999E", id="any-size"),
        # Nobody writes these, but they are what apimachinery reads.
        pytest.param("+", 0, "0", id="sign-alone"),
        pytest.param(".", 0, "0", id="point-alone"),
        pytest.param("Ki", 0, "0", id="suffix-alone"),
        pytest.param("1e+3", 1000 * NANO, "1e3", id="signed-exponent"),
    ],
)
def test_a_quantity_is_an_exact_number_with_one_canonical_form(text: str, nanos: int, canonical: str) -> None:
    quantity = parse_quantity(text)
    assert (quantity.nanos, str(quantity)) == (nanos, canonical)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1 ",
        " 1",
        "a b",
        "NaN",
        "Infinity",
        "1_000",
        "1,5",
        "1.2.3",
        "--1",
        "1-",
        "0x10",
        "200K",
        "1i",
        "1ki",
        "1Kii",
        "1KiB",
        "1e",
        "1E+",
        "1ee3",
        "1e3k",
        "1e5Gi",
        "1e1.5",
        "1+5",
        "1k5",
        "1.1.M",
        "1+1.0M",
        "Pi",
        "e-10",
        "\N{ARABIC-INDIC DIGIT ONE}",
    ],
)
def test_what_is_no_quantity_is_refused_and_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("9" * (MAX_LENGTH + 1), "at most 512 characters, not 513", id="long"),
        pytest.param("9" * 10**6, "at most 512 characters", id="a-million-digits"),
        pytest.param(f"1e{MAX_EXPONENT + 1}", "exponent is beyond 1000", id="exponent"),
        pytest.param("1e999999999", "exponent is beyond 1000", id="huge-exponent"),
        pytest.param("1e-999999999", "exponent is beyond 1000", id="huge-negative-exponent"),
        pytest.param("1e4294967297", "exponent is beyond 1000", id="exponent-that-wraps-in-go"),
        pytest.param("1e" + "9" * 500, "exponent is beyond 1000", id="exponent-with-500-digits"),
        pytest.param("0" * 250 + "1" * 250 + "x", "is not a quantity", id="nothing-to-backtrack-into"),
    ],
)
def test_what_would_take_for_ever_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_quantity(text)


def test_a_quantity_at_the_limits_is_read_and_printed() -> None:
    text = "9" * (MAX_LENGTH - 5) + f"e{MAX_EXPONENT}"
    quantity = parse_quantity(text)
    assert parse_quantity(str(quantity)) == quantity


@pytest.mark.parametrize(
    ("text", "whole", "milli"),
    [
        pytest.param("2", 2, 2000, id="integer"),
        pytest.param("1500m", 2, 1500, id="up"),
        pytest.param("-1500m", -2, -1500, id="away-from-zero"),
        pytest.param("1n", 1, 1, id="never-zero"),
        pytest.param("-1n", -1, -1, id="never-zero-below"),
        pytest.param("0", 0, 0, id="zero"),
        pytest.param("40Gi", 40 * 2**30, 40 * 2**30 * 1000, id="binary"),
        pytest.param("9E", 9 * 10**18, MAX_INT64, id="thousandths-saturate"),
        pytest.param("1e30", MAX_INT64, MAX_INT64, id="saturates"),
        pytest.param("-1e30", MIN_INT64, MIN_INT64, id="saturates-below"),
    ],
)
def test_integers_are_rounded_away_from_zero_and_saturate(text: str, whole: int, milli: int) -> None:
    quantity = parse_quantity(text)
    assert (quantity.whole, quantity.milli) == (whole, milli)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("40Gi", 40 * 2**30, id="binary"),
        pytest.param("3k", 3000, id="thousands"),
        pytest.param("9E", 9 * 10**18, id="largest-suffix"),
        pytest.param("10E", None, id="beyond-int64"),
        pytest.param("500m", None, id="fraction"),
        pytest.param("5000m", None, id="whole-but-in-thousandths"),
        pytest.param("1.0", None, id="whole-but-with-a-point"),
        pytest.param("0.0", None, id="zero-with-a-point"),
        pytest.param("0.5Mi", None, id="binary-fraction"),
        pytest.param("1Pi", None, id="pebi-is-too-large-for-the-fast-path"),
        pytest.param("99Ti", 99 * 2**40, id="two-digits-of-tebi"),
        pytest.param("100Ti", None, id="three-digits-of-tebi"),
        pytest.param("123456789012345678", 123456789012345678, id="18-digits"),
        pytest.param("1234567890123456789", None, id="19-digits"),
    ],
)
def test_what_cel_takes_for_an_integer_depends_on_the_spelling(text: str, value: int | None) -> None:
    assert parse_quantity(text).as_int64 == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("1500m", 1500 * 1e-3, id="milli"),
        pytest.param("0.1n", 1 * 1e-9, id="nano"),
        pytest.param("9" * 400, float("inf"), id="infinite"),
        pytest.param("-" + "9" * 400, float("-inf"), id="negative-infinite"),
        pytest.param("1e400", float("inf"), id="exponent-too-large"),
        pytest.param("1e40", 1e40, id="exponent"),
        pytest.param("40Gi", 40.0 * 2**30, id="binary"),
    ],
)
def test_the_float_is_an_approximation(text: str, value: float) -> None:
    assert parse_quantity(text).approximate == value


@pytest.mark.parametrize(
    ("left", "right", "total", "unit", "value"),
    [
        pytest.param("1Gi", "1Gi", "2Gi", "BinarySI", 2**31, id="binary"),
        pytest.param("1k", "1Ki", "2024", "DecimalSI", 2024, id="the-first-gives-the-format"),
        pytest.param("0", "1Ki", "1Ki", "BinarySI", 1024, id="unless-it-is-zero"),
        pytest.param("1500m", "500m", "2", "DecimalSI", None, id="thousandths-remain"),
        pytest.param("1", "0.0", "1", "DecimalSI", 1, id="zero-changes-nothing"),
        pytest.param("1", "0.5Mi", "524289", "DecimalSI", None, id="one-decimal-makes-a-decimal"),
        pytest.param("9E", "1E", "10E", "DecimalSI", 10**19, id="beyond-int64-in-its-own-scale"),
        pytest.param("9E", "1", "9000000000000000001", "DecimalSI", 9 * 10**18 + 1, id="just-within-int64"),
    ],
)
def test_a_sum_keeps_what_go_remembers(left: str, right: str, total: str, unit: Format, value: int | None) -> None:
    result = parse_quantity(left).add(parse_quantity(right))
    expected = value if value is None or value <= MAX_INT64 else None
    assert (str(result), result.format, result.as_int64) == (total, unit, expected)


def test_a_difference_is_a_sum_with_the_negative() -> None:
    assert str(parse_quantity("2Gi").sub(parse_quantity("1Mi"))) == "2047Mi"
    assert str(parse_quantity("1").sub(parse_quantity("1500m"))) == "-500m"
    assert parse_quantity("1Ki").neg().spelling == parse_quantity("-1Ki").spelling


def test_equal_numbers_are_equal_however_spelt() -> None:
    assert parse_quantity("1Gi") == parse_quantity("1073741824")
    assert len({parse_quantity("1"), parse_quantity("1000m"), parse_quantity("1e0")}) == 1
    assert parse_quantity("1") != parse_quantity("2")
    assert parse_quantity("1") != NANO


def test_spelling_tells_equal_numbers_apart() -> None:
    assert parse_quantity("1Gi").spelling != parse_quantity("1073741824").spelling
    assert parse_quantity("1000m").spelling != parse_quantity("1").spelling
    assert parse_quantity("+1").spelling == parse_quantity("1").spelling


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_there_is_no_order_by_operators(compare: Callable[[Any, Any], bool]) -> None:
    with pytest.raises(TypeError):
        compare(parse_quantity("1"), parse_quantity("2"))


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        ("40Gi", "40Gi"),
        (" 2 ", "2"),
        (2, "2"),
        (-3, "-3"),
        (0.5, "500m"),
        (1e-05, "10e-6"),
        (1e16, "10e15"),
        (10**30, "1e30"),
    ],
)
def test_json_numbers_stand_for_strings(value: object, canonical: str) -> None:
    assert quantity_of(value) == parse_quantity(canonical)


@pytest.mark.parametrize("value", [True, False, None, [], {}, b"1", float("nan"), float("inf"), 10**500])
def test_other_json_values_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="quantity"):
        quantity_of(value)


@pytest.mark.parametrize("value", [0, 1, -1, MAX_INT64, MIN_INT64])
def test_an_integer_from_cel_stays_one(value: int) -> None:
    quantity = integer_quantity(value, "DecimalExponent")
    assert (quantity.as_int64, quantity.whole, quantity.nanos) == (value, value, value * NANO)


@given(quantities)
def test_the_canonical_form_reads_as_the_same_number(quantity: Quantity) -> None:
    again = parse_quantity(str(quantity))
    assert again == quantity
    assert str(again) == str(quantity)


@given(st.text("0123456789.+-eEinumkKMGTP xX_", max_size=12) | st.text(max_size=8))
def test_any_text_is_a_quantity_or_a_value_error(text: str) -> None:
    try:
        quantity = parse_quantity(text)
    except ValueError:
        return
    assert parse_quantity(str(quantity)) == quantity


@given(quantities, quantities)
def test_sums_are_exact_and_equal_numbers_have_equal_hashes(left: Quantity, right: Quantity) -> None:
    assert left.add(right).nanos == left.nanos + right.nanos
    assert left.add(right) == right.add(left)
    assert left.add(right).sub(right) == left
    assert (left == right) == (left.nanos == right.nanos)
    assert left != right or hash(left) == hash(right)


@given(st.integers(-(10**40), 10**40), st.sampled_from(["DecimalSI", "BinarySI", "DecimalExponent"]))
def test_any_number_is_printed_so_that_it_can_be_read(nanos: int, unit: Format) -> None:
    text = str(Quantity(nanos, unit))
    if unit != "BinarySI" or abs(nanos) <= CAP:
        assert parse_quantity(text).nanos == nanos
    assert not {".", "+"} & set(text)


@given(quantities)
def test_rounding_never_loses_and_never_adds_a_whole_unit(quantity: Quantity) -> None:
    if abs(quantity.nanos) < CAP:
        assert 0 <= abs(quantity.whole) * NANO - abs(quantity.nanos) < NANO
