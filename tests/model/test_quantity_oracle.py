"""Quantities against apimachinery itself, over thousands of texts that lean towards the edges."""

import itertools
from collections.abc import Iterator
from random import Random
from typing import Any, Protocol

from extender.model.quantity import MAX_INT64, NANO, Quantity, parse_quantity

SIGNS = ("", "+", "-")
SMALL = ("", "0", "00", "1", "7", "007", "10", "1000", "1023", "1024", "1025", "65536", "99999", "100000", "12345678")
LARGE = (
    "99999999999",
    "100000000000",
    "123456789012345678",
    "999999999999999999",
    "1000000000000000000",
    str(MAX_INT64),
    str(MAX_INT64 + 1),
    "12345678901234567890123456789",
)
FRACTIONS = (
    "",
    ".",
    ".0",
    ".5",
    ".000",
    ".500",
    ".25",
    ".001",
    ".000000001",
    ".0000000001",
    ".9999999999",
    ".123456789012",
)
DECIMAL = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E")
BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
EXPONENTS = ("e0", "e1", "E2", "e3", "e+3", "E-3", "e-9", "e-10", "e9", "e18", "E19", "e21", "e-30", "e100", "e-400")
WRONG = ("e", "E+", "ee1", "K", "ki", "i", "Kii", "x", " ", "+1", "e1.5", "e5Gi", "_0", "\N{ARABIC-INDIC DIGIT ONE}")
SUFFIXES = DECIMAL + BINARY + EXPONENTS + WRONG

Case = dict[str, Any]
Answer = dict[str, Any]


class Oracle(Protocol):
    def ask(self, command: str, cases: list[Case]) -> list[Answer]: ...


def edges() -> Iterator[str]:
    return map("".join, itertools.product(SIGNS, SMALL + LARGE, FRACTIONS, SUFFIXES))


def drawn(random: Random) -> str:
    """Return a text with up to 22 digits before the point and 14 after it, half of them zeros."""
    alphabet = random.choice(("0123456789", "000000123", "0"))
    whole = "".join(random.choices(alphabet, k=random.randint(0, 22)))
    fraction = "." + "".join(random.choices(alphabet, k=random.randint(0, 14)))
    suffix = random.choice((*DECIMAL, *BINARY, f"e{random.randint(-40, 40)}", f"E{random.randint(-500, 500)}"))
    return random.choice(SIGNS) + whole + random.choice(("", fraction)) + suffix


def differences(case: Case, quantity: Quantity, answer: Answer) -> Iterator[str]:
    mine = {
        "canonical": str(quantity),
        "nanos": str(quantity.nanos),
        "value": quantity.whole,
        "milliValue": quantity.milli,
        "asInt64": [quantity.as_int64 or 0, quantity.as_int64 is not None],
        "format": quantity.format,
    }
    theirs = {**answer, "asInt64": answer["asInt64"] if answer["asInt64"][1] else [0, False]}
    yield from (
        f"{case}: {field} is {mine[field]!r} here and {theirs[field]!r} in Go"
        for field in mine.keys() - set(deliberate(case, quantity, answer))
        if mine[field] != theirs[field]
    )


def loses_its_suffix(quantity: Quantity) -> bool:
    """Tell whether Go is out of suffixes: it prints 1000E as 1, where we keep the largest."""
    return quantity.format != "DecimalExponent" and abs(quantity.nanos) >= 1000 * 10**18 * NANO


def deliberate(case: Case, quantity: Quantity, answer: Answer) -> Iterator[str]:
    """Yield the fields in which Go's answer is not wanted."""
    # Go remembers some spellings, such as +5 or 1.500, and repeats them. A sum never does: see the sums below.
    if answer["canonical"] == case.get("text") or loses_its_suffix(quantity):
        yield "canonical"
    # Where int64 does not hold the answer, Go's wraps or is zero; of negative decimals it is one too large or more.
    is_odd = quantity.nanos < 0 and not quantity.is_int64
    if is_odd or abs(quantity.nanos) > MAX_INT64 * NANO:
        yield "value"
    if is_odd or abs(quantity.nanos) > MAX_INT64 * NANO // 1000:
        yield "milliValue"


def parsed(text: str) -> Quantity | None:
    try:
        return parse_quantity(text)
    except ValueError:
        return None


def compare_texts(oracle: Oracle, texts: list[str]) -> list[str]:
    found: list[str] = []
    cases = [{"text": text} for text in texts]
    for case, answer in zip(cases, oracle.ask("quantity", cases), strict=True):
        quantity = parsed(case["text"])
        if (quantity is None) != bool(answer["error"]):
            found.append(f"{case}: {quantity!r} here, {answer['error'] or 'a quantity'!r} in Go")
        elif quantity is not None:
            found.extend(differences(case, quantity, answer))
    return found


def test_every_combination_of_edges_reads_as_in_go(oracle: Oracle) -> None:
    assert compare_texts(oracle, list(edges())) == []


def test_drawn_texts_read_as_in_go(oracle: Oracle) -> None:
    random = Random(1)  # noqa: S311 - reproducible cases, not secrets
    assert compare_texts(oracle, [drawn(random) for _ in range(5000)]) == []


def test_canonical_forms_read_as_the_same_canonical_forms_in_go(oracle: Oracle) -> None:
    random = Random(2)  # noqa: S311 - reproducible cases, not secrets
    quantities = [quantity for _ in range(5000) if (quantity := parsed(drawn(random))) is not None]
    answers = oracle.ask("quantity", [{"text": str(quantity)} for quantity in quantities])
    for quantity, answer in zip(quantities, answers, strict=True):
        assert not answer["error"]
        assert answer["nanos"] == str(quantity.nanos)
        assert answer["canonical"] == str(quantity) or loses_its_suffix(quantity)


def test_sums_and_differences_are_represented_as_in_go(oracle: Oracle) -> None:
    random = Random(3)  # noqa: S311 - reproducible cases, not secrets
    pairs = [(drawn(random), random.choice((drawn(random), "0", "0.0", "1Ki", "1Pi"))) for _ in range(5000)]
    cases = [{"op": random.choice(("add", "sub")), "a": a, "b": b} for a, b in pairs if parsed(a) and parsed(b)]
    found: list[str] = []
    for case, answer in zip(cases, oracle.ask("quantity-ops", cases), strict=True):
        left, right = parse_quantity(case["a"]), parse_quantity(case["b"])
        total = left.add(right) if case["op"] == "add" else left.sub(right)
        found.extend(differences(case, total, answer))
    assert found == []
