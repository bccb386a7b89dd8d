"""When CEL values are equal, and which of two comes first.

Numbers are compared across their types. Values of the Kubernetes types refuse to be compared with values
of another type, an error; inside lists and maps such an error counts as equality, as it does upstream.
"""

import math
from collections.abc import Mapping

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.limits import LONG, Budget
from extender.allocation.cel.values import (
    MAPS,
    MISSING,
    Address,
    Duration,
    Link,
    NamedFormat,
    Network,
    Optional,
    Sum,
    Timestamp,
    UInt,
    Value,
    decoded,
    find,
    type_name,
)
from extender.model.quantity import Quantity
from extender.model.semver import Semver

NUMBERS = frozenset((int, UInt, float))
STRICT = frozenset((Quantity, Sum, Semver, Address, Network, Link, NamedFormat))
PLAIN = frozenset((str, bytes, bool))
# Going down into a list or a map takes about as long as this many of the other steps.
CONTAINER = 10
# And comparing an identifier of a version as long as this many.
IDENTIFIER = 4


def equal(budget: Budget, one: Value, other: Value) -> bool:  # noqa: PLR0911 - one return for each type
    """Tell whether two values are equal; raise Failed where CEL does not compare them."""
    kind, other_kind = type(one), type(other)
    if kind in PLAIN:
        if kind is not bool and len(one) > LONG:
            budget.meet(one, other)
        return kind is other_kind and one == other
    if kind in NUMBERS:
        return other_kind in NUMBERS and compare_numbers(one, other) == 0
    if one is None or other is None:
        return one is other
    if kind is tuple:
        return other_kind is tuple and _equal_lists(budget, one, other)
    if kind in MAPS:
        return other_kind in MAPS and _equal_maps(budget, one, other)
    if kind in STRICT:
        if other_kind is not (Quantity if kind is Sum else kind):
            raise Failed("no such overload")
        _account(budget, one, other)
        return _identity(one) == _identity(other)
    if kind is not other_kind:
        return False
    return _equal_others(budget, one, other)


def _equal_others(budget: Budget, one: Value, other: Value) -> bool:
    if isinstance(one, Timestamp) and isinstance(other, Timestamp):
        return one.nanos == other.nanos
    if isinstance(one, Optional) and isinstance(other, Optional):
        if other.present and other.value is None and type(one.value) in STRICT:
            raise Failed("no such overload")
        return one.present is other.present and (not one.present or equal(budget, one.value, other.value))
    return bool(one == other)


def _account(budget: Budget, one: Value, other: Value) -> None:
    """Account for comparing values of the Kubernetes types, some of which are as long as they were written."""
    if isinstance(one, Semver) and isinstance(other, Semver):
        budget.spend(IDENTIFIER * (len(one.pre) + len(other.pre)))
    elif isinstance(one, Link) and isinstance(other, Link):
        budget.meet(one.text, other.text)


def _identity(value: Value) -> object:
    """Return what makes a value of the Kubernetes types equal to another one."""
    if isinstance(value, Quantity):
        return value.nanos
    if isinstance(value, Semver):
        return value.key
    return value.name if isinstance(value, NamedFormat) else value


def not_equal(budget: Budget, one: Value, other: Value) -> bool:
    """Tell whether two values differ. What cannot be compared differs."""
    return not is_equal(budget, one, other)


def is_equal(budget: Budget, one: Value, other: Value) -> bool:
    """Tell whether two values are equal, False where they cannot be compared."""
    try:
        return equal(budget, one, other)
    except Failed:
        return False


def _equal_items(budget: Budget, one: Value, other: Value) -> bool:
    try:
        return equal(budget, one, other)
    except Failed:
        return True


def _equal_lists(budget: Budget, one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    if len(one) != len(other):
        return False
    budget.spend(CONTAINER + len(one))
    return all(_equal_items(budget, item, counterpart) for item, counterpart in zip(one, other, strict=True))


def _equal_maps(budget: Budget, one: Mapping[object, object], other: Mapping[object, object]) -> bool:
    if len(one) != len(other):
        return False
    budget.spend(CONTAINER + len(one))
    for key, value in one.items():
        if type(key) is str and len(key) > LONG:
            budget.walk(key)
        counterpart = find(other, decoded(key))
        if counterpart is MISSING or not _equal_items(budget, value, counterpart):
            return False
    return True


def compare_numbers(one: float, other: float) -> int:
    """Return -1, 0 or 1; an integer beside a double is taken for a double first, NaN is equal to nothing (2)."""
    if type(one) is float or type(other) is float:
        if type(one) is not float:
            return -_compare_double(other, one)
        return _compare_double(one, other)
    return (one > other) - (one < other)


def _compare_double(double: float, other: float) -> int:
    if math.isnan(double) or math.isnan(other):
        return 2
    if type(other) is not float:
        low, high = (0.0, 2.0**64) if type(other) is UInt else (-(2.0**63), 2.0**63)
        if double < low:
            return -1
        if double > high:
            return 1
        other = float(other)
    return (double > other) - (double < other)


def compare(budget: Budget, one: Value, other: Value) -> int:
    """Return -1, 0 or 1; raise Failed where the values have no order."""
    kind, other_kind = type(one), type(other)
    if kind in NUMBERS and other_kind in NUMBERS:
        order = compare_numbers(one, other)
        if abs(order) == 2:
            raise Failed("NaN values cannot be ordered")
        return order
    if kind is other_kind:
        if kind in PLAIN:
            budget.meet(one, other)
            return int(one > other) - int(one < other)
        if isinstance(one, (Timestamp, Duration)) and isinstance(other, (Timestamp, Duration)):
            return (one.nanos > other.nanos) - (one.nanos < other.nanos)
    raise Failed(f"no such overload: {type_name(one)} and {type_name(other)} have no order")


def is_ordered(value: Value) -> bool:
    """Tell whether values of this type have an order at all."""
    kind = type(value)
    return kind in NUMBERS or kind in PLAIN or kind is Timestamp or kind is Duration
