"""Kubernetes quantities."""

from collections.abc import Callable, Iterator

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.limits import Budget
from extender.allocation.cel.overloads import Overload, function, metered, method, succeeds
from extender.allocation.cel.types import BOOL, DOUBLE, INT, QUANTITY, STRING
from extender.allocation.cel.values import INT_MIN, Sum
from extender.model.quantity import NANO, Quantity, integer_quantity, parse_quantity

# So many bits of a quantity cost a step where it is computed with: it may have thousands.
BITS_PER_STEP = 64


def parse(budget: Budget, text: str) -> Quantity:
    budget.walk(text)
    try:
        return parse_quantity(text)
    except ValueError as error:
        raise Failed(str(error)) from None


def compare(one: Quantity, other: Quantity) -> int:
    return (one.nanos > other.nanos) - (one.nanos < other.nanos)


def sign(quantity: Quantity) -> int:
    return (quantity.nanos > 0) - (quantity.nanos < 0)


def as_integer(quantity: Quantity) -> int:
    value = quantity.as_int64
    if value is None:
        raise Failed("cannot convert value to integer")
    return value


def _metered(compute: Callable[[Quantity, Quantity], Sum]) -> Callable[[Budget, Quantity, Quantity | int], Sum]:
    def account(budget: Budget, one: Quantity, other: Quantity | int) -> Sum:
        other = other if isinstance(other, Quantity) else whole(other)
        budget.spend((one.nanos.bit_length() + other.nanos.bit_length()) // BITS_PER_STEP)
        return compute(one, other)

    return account


def approximate(budget: Budget, quantity: Quantity) -> float:
    budget.spend(quantity.nanos.bit_length() // BITS_PER_STEP)
    return quantity.approximate


def summed(quantity: Quantity) -> Sum:
    return Sum(quantity.nanos, quantity.format, quantity.exponent, quantity.is_int64)


def _sum(one: Quantity, other: Quantity) -> Sum:
    return summed(one.add(other))


def difference(one: Quantity, other: Quantity) -> Sum:
    """Subtract as Go does, where the negative of the smallest integer is that integer."""
    if other.is_int64 and other.nanos == INT_MIN * NANO and (wrapped := one.add(other)).is_int64:
        return summed(wrapped)
    return summed(one.sub(other))


def whole(value: int) -> Quantity:
    return integer_quantity(value, "DecimalExponent")


def overloads() -> Iterator[Overload]:
    yield metered(function("quantity", (STRING,), QUANTITY, parse))
    yield metered(function("isQuantity", (STRING,), BOOL, succeeds(parse)))
    pair, mixed = (QUANTITY, QUANTITY), (QUANTITY, INT)
    yield function("sign", (QUANTITY,), INT, sign)
    yield method("isGreaterThan", pair, BOOL, lambda one, other: one.nanos > other.nanos)
    yield method("isLessThan", pair, BOOL, lambda one, other: one.nanos < other.nanos)
    yield method("compareTo", pair, INT, compare)
    yield metered(method("asApproximateFloat", (QUANTITY,), DOUBLE, approximate))
    yield method("asInteger", (QUANTITY,), INT, as_integer)
    yield method("isInteger", (QUANTITY,), BOOL, lambda quantity: quantity.as_int64 is not None)
    for name, compute in (("add", _metered(_sum)), ("sub", _metered(difference))):
        yield metered(method(name, pair, QUANTITY, compute))
        yield metered(method(name, mixed, QUANTITY, compute))
