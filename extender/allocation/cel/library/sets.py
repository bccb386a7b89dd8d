"""Lists taken for sets."""

from collections.abc import Iterator

from extender.allocation.cel.equality import is_equal
from extender.allocation.cel.library.lists import LIST, Items
from extender.allocation.cel.limits import Budget
from extender.allocation.cel.overloads import Overload, function, metered
from extender.allocation.cel.types import BOOL


def contains(budget: Budget, items: Items, part: Items) -> bool:
    budget.spend(1 + len(items) * len(part))
    return all(any(is_equal(budget, wanted, item) for item in items) for wanted in part)


def equivalent(budget: Budget, one: Items, other: Items) -> bool:
    return contains(budget, one, other) and contains(budget, other, one)


def intersects(budget: Budget, one: Items, other: Items) -> bool:
    budget.spend(1 + len(one) * len(other))
    return any(is_equal(budget, item, candidate) for item in one for candidate in other)


def overloads() -> Iterator[Overload]:
    for name, compute in (("contains", contains), ("equivalent", equivalent), ("intersects", intersects)):
        yield metered(function(f"sets.{name}", (LIST, LIST), BOOL, compute))
