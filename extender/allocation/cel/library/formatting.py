"""``string.format`` of version 2 of cel-go's extension, in its only locale: American English."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.library.conversions import to_string
from extender.allocation.cel.library.strings import ESCAPES
from extender.allocation.cel.limits import MAX_CHARACTERS, Budget
from extender.allocation.cel.overloads import Overload, metered, method
from extender.allocation.cel.types import DYN, STRING, list_of
from extender.allocation.cel.values import (
    Domains,
    Duration,
    Timestamp,
    TypeValue,
    UInt,
    Value,
    decoded,
    type_name,
)

CLAUSE = re.compile(r"%(?:(%)|(?:\.([0-9]*))?([a-zA-Z])?)")
DEFAULT_PRECISION = 6
# A double has no more digits than this, whatever is asked for.
MAX_PRECISION = 1_100
# Writing a value, and writing one inside a list, take about as long as this many of the other steps.
WRITTEN, NESTED = 10, 10
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
INFINITIES = {"inf": "∞", "-inf": "-∞", "nan": "NaN"}
NAMES = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
STRING_RULE = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
    "durations, and timestamps"
)
RULES = {
    "s": STRING_RULE,
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "X": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}


class Clause(NamedTuple):
    """A part of a format: literal *text*, or where *letter* is set, a value to be written."""

    text: str
    letter: str = ""
    precision: int = DEFAULT_PRECISION


def clauses(text: str) -> tuple[Clause, ...]:
    """Take a format apart; raise Failed where it is none."""
    found: list[Clause] = []
    end = 0
    while (at := text.find("%", end)) >= 0:
        found.append(Clause(text[end:at]))
        match = CLAUSE.match(text, at)
        if match is None or match.end() == at + 1:
            raise Failed(
                "unexpected end of string"
                if at + 1 == len(text)
                else f"unrecognized formatting clause {text[at + 1]!r}"
            )
        percent, precision, letter = match.groups()
        if percent:
            found.append(Clause("%"))
        else:
            found.append(_clause(text, match, precision, letter))
        end = match.end()
    found.append(Clause(text[end:]))
    return tuple(part for part in found if part.text or part.letter)


def _clause(text: str, match: re.Match[str], precision: str | None, letter: str | None) -> Clause:
    if letter is None:
        raise Failed(
            "unexpected end of string" if match.end() == len(text) else "could not find end of precision specifier"
        )
    if letter not in RULES:
        raise Failed(f"unrecognized formatting clause {letter!r}")
    if precision == "":
        raise Failed("unable to convert precision specifier to int")
    return Clause("", letter, DEFAULT_PRECISION if precision is None else int(precision[:9]))


def format_text(budget: Budget, text: str, values: tuple[object, ...]) -> str:
    """Write *values* into the clauses of *text*."""
    budget.walk(text)
    written: list[str] = []
    used = 0
    for clause in clauses(text):
        if not clause.letter:
            written.append(clause.text)
            continue
        if used >= len(values):
            raise Failed(f"index {used} out of range")
        budget.spend(WRITTEN)
        written.append(_written(budget, clause, values[used]))
        budget.characters(len(written[-1]))
        used += 1
    budget.characters(sum(map(len, written)))
    return "".join(written)


def _written(budget: Budget, clause: Clause, value: Value) -> str:
    found = WRITERS[clause.letter](budget, value, clause.precision)
    if found is None:
        raise Failed(f"error during formatting: {RULES[clause.letter]}, was given {type_name(value)}")
    return found


def write_string(budget: Budget, value: Value, _precision: int = 0) -> str | None:
    kind = type(value)
    if value is None:
        return "null"
    if kind is tuple or isinstance(value, (dict, Domains)):
        return _nested(budget, value)
    if kind in (bool, int, UInt, float, str, bytes, TypeValue, Timestamp, Duration):
        return to_string(value)
    return None


def _nested(budget: Budget, value: Value) -> str:  # noqa: PLR0911 - one return for each type
    """Write a value inside a list or a map, where strings have quotes and doubles six places."""
    budget.spend(NESTED)
    if isinstance(value, dict):
        return _map(budget, value)
    if isinstance(value, tuple) and type(value) is tuple:
        return f"[{', '.join([_nested(budget, item) for item in value])}]"
    if isinstance(value, str):
        budget.characters(len(value))
        return quoted(value)
    if isinstance(value, bytes):
        return f"b{quoted(to_string(value))}"
    if isinstance(value, float):
        text = f"{value:.{DEFAULT_PRECISION}f}"
        return {"inf": '"+Inf"', "-inf": '"-Inf"', "nan": '"NaN"'}.get(text, text)
    if isinstance(value, (Timestamp, Duration)):
        return f'{"timestamp" if isinstance(value, Timestamp) else "duration"}("{to_string(value)}")'
    text_or_none = write_string(budget, value)
    if text_or_none is None:
        raise Failed(f"error during formatting: no formatting function for {type_name(value)}")
    return text_or_none


def _map(budget: Budget, value: dict[object, object]) -> str:
    pairs: list[tuple[str, str]] = []
    for key, item in value.items():
        name = decoded(key)
        if type(name) not in (str, bool, int, UInt):
            raise Failed(f"error during formatting: no formatting function for map key of type {type_name(name)}")
        pairs.append((_nested(budget, name), _nested(budget, item)))
    pairs.sort(key=lambda pair: pair[0])
    return f"{{{', '.join(f'{name}:{item}' for name, item in pairs)}}}"


def quoted(text: str) -> str:
    """Quote as Go's ``%q`` does."""
    return '"' + "".join(_quoted(character) for character in text) + '"'


def _quoted(character: str) -> str:
    if character in ESCAPES:
        return ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def write_decimal(_budget: Budget, value: Value, _precision: int) -> str | None:
    return str(int(value)) if type(value) in (int, UInt) else None


def _double(value: Value) -> float | None:
    if isinstance(value, float):
        return value
    return float(NAMES[value]) if isinstance(value, str) and value in NAMES else None


def _limited(precision: int) -> int:
    if precision > MAX_CHARACTERS:
        raise Failed(f"precision {precision} is too large")
    return min(precision, MAX_PRECISION)


def write_fixed(_budget: Budget, value: Value, precision: int) -> str | None:
    double = _double(value)
    if double is None:
        return None
    text = f"{double or 0.0:,.{_limited(precision)}f}"
    return INFINITIES.get(text, text + "0" * (precision - MAX_PRECISION))


def write_scientific(budget: Budget, value: Value, precision: int) -> str | None:
    double = _double(value)
    if double is None:
        return None
    mantissa, mark, power = f"{double or 0.0:.{DEFAULT_PRECISION}e}".partition("e")
    digits = f"{'-' if power[:1] == '-' else ''}{power[1:]}".translate(SUPERSCRIPTS)
    text = f"{mantissa}×10{digits}" if mark else INFINITIES[mantissa]  # noqa: RUF001 - the sign that the locale writes
    # Upstream passes the precision on as the width.
    budget.characters(precision)
    return text.rjust(precision)


def write_binary(_budget: Budget, value: Value, _precision: int) -> str | None:
    if type(value) is bool:
        return "1" if value else "0"
    return f"{int(value):b}" if type(value) in (int, UInt) else None


def write_hex(_budget: Budget, value: Value, _precision: int) -> str | None:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").hex()
    if isinstance(value, bytes):
        return value.hex()
    return f"{int(value):x}" if type(value) in (int, UInt) else None


def write_upper_hex(budget: Budget, value: Value, precision: int) -> str | None:
    text = write_hex(budget, value, precision)
    return None if text is None else text.upper()


def write_octal(_budget: Budget, value: Value, _precision: int) -> str | None:
    return f"{int(value):o}" if type(value) in (int, UInt) else None


WRITERS: dict[str, Callable[[Budget, object, int], str | None]] = {
    "s": write_string,
    "d": write_decimal,
    "f": write_fixed,
    "e": write_scientific,
    "b": write_binary,
    "x": write_hex,
    "X": write_upper_hex,
    "o": write_octal,
}


def overloads() -> Iterator[Overload]:
    yield metered(method("format", (STRING, list_of(DYN)), STRING, format_text))
