"""Operators: arithmetic within 64 bits, comparison, membership, and the checker's view of the rest."""

import math
import operator
from collections.abc import Callable, Iterator

from extender.allocation.cel.equality import compare, equal, is_equal, not_equal
from extender.allocation.cel.errors import Failed, no_overload
from extender.allocation.cel.library.clock import FIRST_SECOND, LAST_SECOND, NANOS
from extender.allocation.cel.limits import LONG, Budget
from extender.allocation.cel.overloads import Overload, function, metered, method, unguarded
from extender.allocation.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    PARAMETER_A,
    PARAMETER_B,
    STRING,
    TIMESTAMP,
    UINT,
    list_of,
    map_of,
    optional_of,
)
from extender.allocation.cel.values import (
    INT_MAX,
    INT_MIN,
    MAPS,
    MISSING,
    UINT_MAX,
    Duration,
    Timestamp,
    UInt,
    Value,
    encoded,
    find,
    type_name,
)

LIST_A = list_of(PARAMETER_A)
MAP_AB = map_of(PARAMETER_A, PARAMETER_B)


def checked_int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise Failed("integer overflow")


def checked_uint(value: int) -> UInt:
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise Failed("unsigned integer overflow")


def checked_duration(nanos: int) -> Duration:
    return Duration(checked_int(nanos))


def checked_timestamp(nanos: int, offset_s: int) -> Timestamp:
    if FIRST_SECOND <= nanos // NANOS <= LAST_SECOND:
        return Timestamp(nanos, offset_s)
    raise Failed("timestamp overflow")


def add(budget: Budget, one: Value, other: Value) -> object:  # noqa: C901, PLR0911 - one return for each type
    kind = type(one)
    if kind is type(other):
        if kind is int:
            return checked_int(one + other)
        if kind is str or kind is bytes:
            budget.characters(len(one) + len(other))
            return one + other
        if kind is float:
            return one + other
        if kind is tuple:
            budget.items(len(one) + len(other))
            return one + other
        if kind is UInt:
            return checked_uint(int(one) + int(other))
    if isinstance(one, Duration):
        if isinstance(other, Duration):
            return checked_duration(one.nanos + other.nanos)
        if isinstance(other, Timestamp):
            return checked_timestamp(other.nanos + one.nanos, other.offset_s)
    if isinstance(one, Timestamp) and isinstance(other, Duration):
        return checked_timestamp(one.nanos + other.nanos, one.offset_s)
    raise no_overload("_+_", type_name(one), type_name(other))


def subtract(one: Value, other: Value) -> object:
    if isinstance(other, Duration):
        if isinstance(one, Duration):
            return checked_duration(one.nanos - other.nanos)
        if isinstance(one, Timestamp):
            return checked_timestamp(one.nanos + checked_int(-other.nanos), one.offset_s)
    if isinstance(one, Timestamp) and isinstance(other, Timestamp):
        return checked_duration(one.nanos - other.nanos)
    return _arithmetic("_-_", operator.sub, one, other)


def multiply(one: Value, other: Value) -> object:
    return _arithmetic("_*_", operator.mul, one, other)


def divide(one: Value, other: Value) -> object:
    if type(one) is float and type(other) is float:
        if other != 0:
            return one / other
        return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, other)
    if other == 0 and type(one) is type(other):
        raise Failed("division by zero")
    return _arithmetic("_/_", _truncated, one, other)


def modulo(one: Value, other: Value) -> object:
    if type(one) is float or type(other) is float:
        raise no_overload("_%_", type_name(one), type_name(other))
    if other == 0 and type(one) is type(other) and type(one) in (int, UInt):
        raise Failed("modulus by zero")
    if type(one) is int and type(other) is int:
        checked_int(_truncated(one, other))
    return _arithmetic("_%_", lambda left, right: left - right * _truncated(left, right), one, other)


def _truncated(one: int, other: int) -> int:
    quotient = abs(one) // abs(other)
    return quotient if (one < 0) == (other < 0) else -quotient


def _arithmetic(name: str, compute: Callable[..., Value], one: Value, other: Value) -> object:
    kind = type(one)
    if kind is type(other):
        if kind is int:
            return checked_int(compute(one, other))
        if kind is float:
            return compute(one, other)
        if kind is UInt:
            return checked_uint(compute(int(one), int(other)))
    raise no_overload(name, type_name(one), type_name(other))


def negate(value: Value) -> object:
    kind = type(value)
    if kind is int:
        return checked_int(-value)
    if kind is float:
        return -value
    if isinstance(value, Duration):
        return checked_duration(-value.nanos)
    raise no_overload("-_", type_name(value))


def negate_bool(value: Value) -> bool:
    if type(value) is bool:
        return not value
    raise no_overload("!_", type_name(value))


def contains(budget: Budget, item: object, box: Value) -> bool:
    """Tell whether *item* is in a list, or is a key of a map."""
    if type(box) is tuple:
        budget.spend(1 + len(box))
        return any(is_equal(budget, item, candidate) for candidate in box)
    if type(box) in MAPS:
        if type(item) is str and len(item) > LONG:
            budget.walk(item)
        # An unknown domain has a value and is nevertheless not there, hence the copy without default.
        return _in_map(item, box)
    raise no_overload("@in", type_name(item), type_name(box))


def _in_map(key: Value, box: dict[object, object]) -> bool:
    if type(key) is str:
        return key in box
    return bool(box) and type(box) is dict and find(box, key) is not MISSING


def put(budget: Budget, target: dict[object, object], key: Value, value: Value) -> None:
    """Put one more entry into a map that is being built."""
    budget.meet(key, key)
    if find(target, key) is not MISSING:
        raise Failed(f"insert failed: key {key} already exists")
    target[encoded(key)] = value


def size(value: Value) -> int:
    if isinstance(value, (str, bytes)) or type(value) is tuple or isinstance(value, dict):
        return len(value)
    raise no_overload("size", type_name(value))


# The order of the variants is upstream's: where a type is still open, the first one that fits decides it.
COMPARED = (
    (BOOL, BOOL),
    *((INT, other) for other in (INT, DOUBLE, UINT)),
    *((UINT, other) for other in (UINT, DOUBLE, INT)),
    *((DOUBLE, other) for other in (DOUBLE, INT, UINT)),
    *((kind, kind) for kind in (STRING, BYTES, TIMESTAMP, DURATION)),
)
NUMERIC = (DOUBLE, INT, UINT)


def _comparisons() -> Iterator[Overload]:
    tests = (
        ("_<_", lambda budget, one, other: compare(budget, one, other) < 0),
        ("_<=_", lambda budget, one, other: compare(budget, one, other) <= 0),
        ("_>_", lambda budget, one, other: compare(budget, one, other) > 0),
        ("_>=_", lambda budget, one, other: compare(budget, one, other) >= 0),
    )
    for name, compute in tests:
        for pair in COMPARED:
            yield metered(unguarded(function(name, pair, BOOL, compute)))


def _calculations() -> Iterator[Overload]:
    sums = [(kind, kind, kind) for kind in (BYTES, DOUBLE, DURATION)]
    sums += [(DURATION, TIMESTAMP, TIMESTAMP), (TIMESTAMP, DURATION, TIMESTAMP)]
    sums += [(kind, kind, kind) for kind in (INT, LIST_A, STRING, UINT)]
    for one, other, result in sums:
        yield metered(unguarded(function("_+_", (one, other), result, add)))
    differences = [(kind, kind, kind) for kind in (DOUBLE, DURATION, INT)]
    differences += [(TIMESTAMP, DURATION, TIMESTAMP), (TIMESTAMP, TIMESTAMP, DURATION), (UINT, UINT, UINT)]
    for one, other, result in differences:
        yield unguarded(function("_-_", (one, other), result, subtract))
    for kind in NUMERIC:
        yield unguarded(function("_*_", (kind, kind), kind, multiply))
        yield unguarded(function("_/_", (kind, kind), kind, divide))
    for kind in (INT, UINT):
        yield unguarded(function("_%_", (kind, kind), kind, modulo))
    for kind in (DOUBLE, INT):
        yield unguarded(function("-_", (kind,), kind, negate))


def _accesses() -> Iterator[Overload]:
    """Declare what the compiler computes in its own ways; only the checker looks at these."""
    optional_list, optional_map = optional_of(LIST_A), optional_of(MAP_AB)
    optional_a, optional_b = optional_of(PARAMETER_A), optional_of(PARAMETER_B)
    yield function("_?_:_", (BOOL, PARAMETER_A, PARAMETER_A), PARAMETER_A, None)
    yield function("_[_]", (LIST_A, INT), PARAMETER_A, None)
    yield function("_[_]", (MAP_AB, PARAMETER_A), PARAMETER_B, None)
    yield function("_[_]", (optional_list, INT), optional_a, None)
    yield function("_[_]", (optional_map, PARAMETER_A), optional_b, None)
    yield function("_[?_]", (LIST_A, INT), optional_a, None)
    yield function("_[?_]", (optional_list, INT), optional_a, None)
    yield function("_[?_]", (MAP_AB, PARAMETER_A), optional_b, None)
    yield function("_[?_]", (optional_map, PARAMETER_A), optional_b, None)
    yield function("dyn", (PARAMETER_A,), DYN, lambda value: value)


def _sizes() -> Iterator[Overload]:
    for kind in (BYTES, LIST_A, MAP_AB, STRING):
        yield unguarded(function("size", (kind,), INT, size))
        yield unguarded(method("size", (kind,), INT, size))


def overloads() -> Iterator[Overload]:
    pair = (PARAMETER_A, PARAMETER_A)
    yield unguarded(function("!_", (BOOL,), BOOL, negate_bool))
    yield metered(unguarded(function("_==_", pair, BOOL, equal)))
    yield metered(unguarded(function("_!=_", pair, BOOL, not_equal)))
    yield from _calculations()
    yield from _comparisons()
    yield from _accesses()
    yield metered(unguarded(function("@in", (PARAMETER_A, LIST_A), BOOL, contains)))
    yield metered(unguarded(function("@in", (PARAMETER_A, MAP_AB), BOOL, contains)))
    yield function("@mapInsert", (MAP_AB, PARAMETER_A, PARAMETER_B), MAP_AB, None)
    yield function("@mapInsert", (MAP_AB, MAP_AB), MAP_AB, None)
    yield from _sizes()
