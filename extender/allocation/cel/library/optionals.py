"""Optional values. ``or`` and ``orValue`` are compiled apart: they do not evaluate what they do not need."""

from collections.abc import Iterator

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.library.lists import Items
from extender.allocation.cel.limits import Budget
from extender.allocation.cel.overloads import Overload, function, metered, method
from extender.allocation.cel.types import BOOL, Type, list_of, optional_of
from extender.allocation.cel.values import NONE, Duration, Optional, Timestamp, Value

VALUE = Type("parameter", "V")
OPTIONAL = optional_of(VALUE)
ZERO_YEAR = Timestamp(-62135596800 * 1_000_000_000)


def value_of(optional: Optional) -> object:
    if optional.present:
        return optional.value
    raise Failed("optional.none() dereference")


def is_zero(value: Value) -> bool:
    """Tell whether a value is the zero of its type: empty, 0, false, null."""
    if isinstance(value, Duration):
        return value.nanos == 0
    if isinstance(value, Timestamp):
        return value.nanos == ZERO_YEAR.nanos
    if value is None or type(value) in (bool, int, float, str, bytes, tuple) or isinstance(value, (dict, int)):
        return not value
    return False


def of_non_zero(value: Value) -> Optional:
    return NONE if is_zero(value) else Optional(present=True, value=value)


def unwrap(budget: Budget, items: Items) -> Items:
    budget.items(len(items))
    if any(type(item) is not Optional for item in items):
        raise Failed("a value is not optional")
    return tuple(item.value for item in items if isinstance(item, Optional) and item.present)


def overloads() -> Iterator[Overload]:
    items, optionals = list_of(VALUE), list_of(OPTIONAL)
    yield function("optional.of", (VALUE,), OPTIONAL, lambda value: Optional(present=True, value=value))
    yield function("optional.ofNonZeroValue", (VALUE,), OPTIONAL, of_non_zero)
    yield function("optional.none", (), OPTIONAL, lambda: NONE)
    yield metered(function("optional.unwrap", (optionals,), items, unwrap))
    yield metered(method("unwrapOpt", (optionals,), items, unwrap))
    yield method("value", (OPTIONAL,), VALUE, value_of)
    yield method("hasValue", (OPTIONAL,), BOOL, lambda optional: optional.present)
    yield method("or", (OPTIONAL, OPTIONAL), OPTIONAL, None)
    yield method("orValue", (OPTIONAL, VALUE), VALUE, None)
    yield method("first", (items,), OPTIONAL, lambda given: Optional(present=True, value=given[0]) if given else NONE)
    yield method("last", (items,), OPTIONAL, lambda given: Optional(present=True, value=given[-1]) if given else NONE)
