"""Lists: Kubernetes' functions, version 3 of cel-go's extension, and sets' neighbours in the standard library."""

from collections.abc import Iterator
from functools import cmp_to_key
from itertools import pairwise

from extender.allocation.cel.equality import compare, is_equal, is_ordered
from extender.allocation.cel.errors import Failed, no_overload
from extender.allocation.cel.library.operators import add
from extender.allocation.cel.limits import Budget
from extender.allocation.cel.overloads import Computation, Overload, function, metered, method, unguarded
from extender.allocation.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
)
from extender.allocation.cel.values import Duration, UInt, type_name

ORDERED = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
ZEROS: dict[Type, object] = {INT: 0, UINT: UInt(0), DOUBLE: 0.0, DURATION: Duration(0)}
PARAMETER = Type("parameter", "T")
LIST = list_of(PARAMETER)
Items = tuple[object, ...]


def is_sorted(budget: Budget, items: Items) -> bool:
    budget.spend(1 + len(items))
    for one, other in pairwise(items):
        _require_order(one)
        _require_order(other)
        if _order(budget, one, other) == 1:
            return False
    if len(items) == 1:
        _require_order(items[0])
    return True


def _require_order(item: object) -> None:
    if not is_ordered(item):
        raise no_overload("compare", type_name(item))


def _order(budget: Budget, one: object, other: object) -> int:
    """Compare; values without a common order have none, which is neither of -1, 0 and 1."""
    try:
        return compare(budget, one, other)
    except Failed:
        return 2


def _extreme(name: str, wrong: int) -> Computation:
    def compute(budget: Budget, items: Items) -> object:
        budget.spend(1 + len(items))
        if not items:
            raise Failed(f"{name} called on empty list")
        best = items[0]
        for item in items:
            _require_order(item)
            if _order(budget, best, item) == wrong:
                best = item
        return best

    return compute


def _sum(zero: object) -> Computation:
    def compute(budget: Budget, items: Items) -> object:
        total = zero
        for item in items:
            total = add(budget, total, item)
        budget.spend(1 + len(items))
        return total

    return compute


def index_of(budget: Budget, items: Items, item: object) -> int:
    budget.spend(1 + len(items))
    return next((index for index, found in enumerate(items) if is_equal(budget, found, item)), -1)


def last_index_of(budget: Budget, items: Items, item: object) -> int:
    budget.spend(1 + len(items))
    return next((index for index in reversed(range(len(items))) if is_equal(budget, items[index], item)), -1)


def includes(budget: Budget, target: object, item: object) -> bool:
    """Tell whether a list has *item*, or another value equals it."""
    if type(target) is not tuple:
        return is_equal(budget, target, item)
    budget.spend(1 + len(target))
    return any(is_equal(budget, found, item) for found in target)


def part(budget: Budget, items: Items, start: int, end: int) -> Items:
    if start < 0 or end < 0:
        raise Failed(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise Failed(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(items) < end:
        raise Failed(f"cannot slice({start}, {end}), list is length {len(items)}")
    budget.items(end - start)
    return items[start:end]


def flatten(budget: Budget, items: Items, depth: int = 1) -> Items:
    if type(items) is not tuple or type(depth) is not int:
        raise no_overload("flatten", type_name(items), type_name(depth))
    if depth < 0:
        raise Failed("level must be non-negative")
    budget.spend(len(items) * depth)
    while depth > 0 and any(type(item) is tuple for item in items):
        budget.items(sum(len(item) if isinstance(item, tuple) else 1 for item in items))
        flat: list[object] = []
        for item in items:
            if type(item) is tuple:
                flat += item
            else:
                flat.append(item)
        items = tuple(flat)
        depth -= 1
    return items


def sort(budget: Budget, items: Items) -> Items:
    if type(items) is not tuple:
        raise no_overload("sort", type_name(items))
    return sort_by(budget, items, items)


def sort_by(budget: Budget, items: Items, keys: Items) -> Items:
    """Sort *items* by the *keys* that stand at the same places."""
    if len(items) != len(keys):
        raise Failed(f"expected as many keys as items, but got {len(keys)} and {len(items)}")
    if not items:
        return items
    if not is_ordered(keys[0]):
        raise Failed("list elements must be comparable")
    if len(keys) > 1 and any(type(key) is not type(keys[0]) for key in keys):
        raise Failed("list elements must have the same type")
    _compare_all(budget, keys)

    def order_of(one: int, other: int) -> int:
        return _sorting(budget, keys[one], keys[other])

    order = sorted(range(len(items)), key=cmp_to_key(order_of))
    return tuple(items[index] for index in order)


def _compare_all(budget: Budget, items: Items) -> None:
    """Account for comparing all items with all; what it costs to compare strings depends on the first."""
    is_text = bool(items) and isinstance(items[0], (str, bytes))
    budget.spend(len(items) ** 2 * (21 if is_text else 20) // 10)
    budget.items(len(items))


def _sorting(budget: Budget, one: object, other: object) -> int:
    order = _order(budget, one, other)
    return 0 if order == 2 else order


def count_to(budget: Budget, count: int) -> Items:
    if count < 0:
        raise Failed(f"lists.range: size must be non-negative, got {count}")
    budget.items(count)
    return tuple(range(count))


def reverse(budget: Budget, items: Items) -> Items:
    budget.items(len(items))
    return items[::-1]


def distinct(budget: Budget, items: Items) -> Items:
    """Keep the first of equal items."""
    _compare_all(budget, items)
    kept: list[object] = []
    for item in items:
        if not any(is_equal(budget, item, other) for other in kept):
            kept.append(item)
    return tuple(kept)


def overloads() -> Iterator[Overload]:
    smallest, largest = _extreme("min", 1), _extreme("max", -1)
    for kind in ORDERED:
        items = list_of(kind)
        yield metered(method("isSorted", (items,), BOOL, is_sorted))
        yield metered(method("min", (items,), kind, smallest))
        yield metered(method("max", (items,), kind, largest))
        yield metered(unguarded(method("sort", (items,), items, sort)))
        yield metered(method("@sortByAssociatedKeys", (LIST, items), LIST, sort_by))
    for kind, zero in ZEROS.items():
        yield metered(method("sum", (list_of(kind),), kind, _sum(zero)))
    yield metered(method("indexOf", (LIST, PARAMETER), INT, index_of))
    yield metered(method("lastIndexOf", (LIST, PARAMETER), INT, last_index_of))
    yield metered(unguarded(method("includes", (DYN, DYN), BOOL, includes)))
    yield metered(method("slice", (LIST, INT, INT), LIST, part))
    yield metered(unguarded(method("flatten", (list_of(LIST),), LIST, flatten)))
    yield metered(unguarded(method("flatten", (list_of(DYN), INT), list_of(DYN), flatten)))
    yield metered(function("lists.range", (INT,), list_of(INT), count_to))
    yield metered(method("reverse", (LIST,), LIST, reverse))
    yield metered(method("distinct", (LIST,), LIST, distinct))
