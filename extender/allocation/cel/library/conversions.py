"""Conversions between types, with the spellings that Go's strconv reads and writes."""

import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.library.clock import (
    NANOS,
    format_duration,
    format_timestamp,
    parse_duration,
    parse_timestamp,
)
from extender.allocation.cel.library.operators import checked_int, checked_timestamp, checked_uint
from extender.allocation.cel.limits import Budget
from extender.allocation.cel.overloads import Overload, function, metered, unguarded
from extender.allocation.cel.types import (
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    INT,
    IP,
    PARAMETER_A,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    type_of_type,
)
from extender.allocation.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Address,
    Network,
    Timestamp,
    TypeValue,
    UInt,
    classes_of,
    type_name,
)

TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
# As many digits as 64 bits take, after any number of zeros.
UNSIGNED = re.compile(r"(?=[0-9])0*+([0-9]{0,20})")
SIGNED = re.compile(rf"([+-]?){UNSIGNED.pattern}")
# Go allows an underscore between two digits, as Python does. What was taken for digits stays so, in all of these:
# looked at again and again, many digits that are no number would take long.
DIGITS = "[0-9]++(?:_[0-9]++)*+"
DECIMAL = re.compile(rf"[+-]?(?:{DIGITS}(?:\.(?:{DIGITS})?)?|\.{DIGITS})(?:[eE][+-]?{DIGITS})?")
HEX = "[0-9a-fA-F]"
HEXADECIMAL = re.compile(rf"[+-]?0[xX](?:{HEX}++(?:\.{HEX}*+)?|\.{HEX}++)[pP][+-]?[0-9]++")
INFINITY = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE | re.ASCII)
# Steps to write what is more than a number in digits: the shortest double, a date.
WRITTEN = 15
# Outside of these powers of ten, Go writes a number with an exponent.
LOW_POWER, HIGH_POWER = -4, 6


def conversion_failed(source: str, target: str) -> Failed:
    return Failed(f"type conversion error from '{source}' to '{target}'")


def string_to_int(text: str) -> int:
    match = SIGNED.fullmatch(text)
    if match is not None and INT_MIN <= (value := int(f"{match[1]}0{match[2]}")) <= INT_MAX:
        return value
    raise conversion_failed("string", "int")


def string_to_uint(text: str) -> UInt:
    match = UNSIGNED.fullmatch(text)
    if match is not None and (value := int(f"0{match[1]}")) <= UINT_MAX:
        return UInt(value)
    raise conversion_failed("string", "uint")


def string_to_double(text: str) -> float:
    """Read a number as Go does, which knows hexadecimal and the names of infinity, and refuses what is too large."""
    if infinity := INFINITY.fullmatch(text):
        return -math.inf if infinity[1] == "-" else math.inf
    if text.lower() == "nan":
        return math.nan
    value = math.inf
    if DECIMAL.fullmatch(text):
        value = float(text)
    elif HEXADECIMAL.fullmatch(text):
        try:
            value = float.fromhex(text)
        except OverflowError:
            value = math.inf
    if math.isinf(value):
        raise conversion_failed("string", "double")
    return value


def string_to_bool(text: str) -> bool:
    if text in TRUE or text in FALSE:
        return text in TRUE
    raise conversion_failed("string", "bool")


def double_to_int(value: float) -> int:
    if math.isnan(value) or not INT_MIN < value < INT_MAX:
        raise Failed("integer overflow")
    return int(value)


def double_to_uint(value: float) -> UInt:
    if math.isnan(value) or not 0 <= value < UINT_MAX:
        raise Failed("unsigned integer overflow")
    return UInt(int(value))


def bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Failed("invalid UTF-8 in bytes, cannot convert to string") from None


def format_double(value: float) -> str:
    """Write a double as Go's ``%g``: the shortest digits, an exponent where the number is large or small."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)
    prefix = "-" if sign else ""
    power = point - 1
    if LOW_POWER <= power < HIGH_POWER:
        return prefix + _plain(text, point)
    mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
    return f"{prefix}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _plain(digits: str, point: int) -> str:
    if point <= 0:
        return "0." + "0" * -point + digits
    if point >= len(digits):
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"


def int_to_timestamp(seconds: int) -> Timestamp:
    return checked_timestamp(seconds * NANOS, 0)


def network_text(network: Network) -> str:
    return f"{network.address}/{network.prefix}"


def address_text(address: Address) -> str:
    return str(address.address)


def same(value: object) -> object:
    return value


def to_type(value: object) -> TypeValue:
    return TypeValue(type_name(value))


CONVERSIONS: tuple[tuple[str, Type, Type, Callable[..., object]], ...] = (
    ("bool", BOOL, BOOL, same),
    ("bool", STRING, BOOL, string_to_bool),
    ("bytes", BYTES, BYTES, same),
    ("bytes", STRING, BYTES, lambda text: text.encode("utf-8", "replace")),
    ("double", DOUBLE, DOUBLE, same),
    ("double", INT, DOUBLE, float),
    ("double", STRING, DOUBLE, string_to_double),
    ("double", UINT, DOUBLE, float),
    ("duration", DURATION, DURATION, same),
    ("duration", STRING, DURATION, parse_duration),
    ("int", INT, INT, same),
    ("int", DOUBLE, INT, double_to_int),
    ("int", DURATION, INT, lambda duration: duration.nanos),
    ("int", STRING, INT, string_to_int),
    ("int", TIMESTAMP, INT, lambda timestamp: timestamp.nanos // NANOS),
    ("int", UINT, INT, lambda value: checked_int(int(value))),
    ("string", STRING, STRING, same),
    ("string", BOOL, STRING, lambda value: "true" if value else "false"),
    ("string", BYTES, STRING, bytes_to_string),
    ("string", DOUBLE, STRING, format_double),
    ("string", DURATION, STRING, format_duration),
    ("string", INT, STRING, str),
    ("string", TIMESTAMP, STRING, format_timestamp),
    ("string", UINT, STRING, lambda value: str(int(value))),
    ("string", IP, STRING, address_text),
    ("string", CIDR, STRING, network_text),
    ("timestamp", TIMESTAMP, TIMESTAMP, same),
    ("timestamp", INT, TIMESTAMP, int_to_timestamp),
    ("timestamp", STRING, TIMESTAMP, parse_timestamp),
    ("uint", UINT, UINT, same),
    ("uint", DOUBLE, UINT, double_to_uint),
    ("uint", INT, UINT, checked_uint),
    ("uint", STRING, UINT, string_to_uint),
)

# Applied to a literal, these are computed when the expression is compiled, where they may fail.
NAMES = frozenset((*(name for name, *_ in CONVERSIONS), "dyn", "type"))


# How values are written, by their class.
WRITERS: dict[type, Callable[..., object]] = {
    kind: compute for name, source, _, compute in CONVERSIONS if name == "string" for kind in classes_of(source)
}
WRITERS[TypeValue] = lambda value: value.name


def to_string(value: object) -> str:
    """Convert as ``string()`` does, for the other functions that write values."""
    write = WRITERS.get(type(value))
    if write is None:
        raise conversion_failed(type_name(value), "string")
    return str(write(value))


def _read(compute: Callable[..., object], target: Type) -> Callable[..., object]:
    """Account for what is read from end to end, a time in many parts."""
    is_time = target in (DURATION, TIMESTAMP)

    def read(budget: Budget, text: str | bytes) -> object:
        budget.walk(text)
        if is_time:
            budget.spend(len(text))
        return compute(text)

    return read


def _write(compute: Callable[..., object]) -> Callable[..., object]:
    def write(budget: Budget, value: object) -> object:
        budget.spend(WRITTEN)
        return compute(value)

    return write


def overloads() -> Iterator[Overload]:
    for name, source, target, compute in CONVERSIONS:
        if source in (STRING, BYTES) and source is not target:
            yield metered(function(name, (source,), target, _read(compute, target)))
        elif name == "string" and source in (DOUBLE, DURATION, TIMESTAMP, IP, CIDR):
            yield metered(function(name, (source,), target, _write(compute)))
        else:
            yield function(name, (source,), target, compute)
    yield unguarded(function("type", (PARAMETER_A,), type_of_type(PARAMETER_A), to_type))
