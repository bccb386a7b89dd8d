"""Semantic versions."""

from collections.abc import Iterator

from extender.allocation.cel.equality import IDENTIFIER
from extender.allocation.cel.errors import Failed
from extender.allocation.cel.limits import Budget
from extender.allocation.cel.overloads import Overload, function, metered, method, succeeds
from extender.allocation.cel.types import BOOL, INT, SEMVER, STRING
from extender.allocation.cel.values import INT_MAX
from extender.model.semver import Semver, parse_semver

WRAP = 2**64


def parse(budget: Budget, text: str, normalize: bool = False) -> Semver:  # noqa: FBT001, FBT002 - an argument of CEL
    budget.walk(text)
    budget.spend(IDENTIFIER * text.count("."))
    try:
        return parse_semver(text, normalize=normalize)
    except ValueError as error:
        raise Failed(str(error)) from None


def compare(budget: Budget, one: Semver, other: Semver) -> int:
    """Return -1, 0 or 1. Most versions differ in their numbers; only equal ones need the whole order."""
    left, right = (one.major, one.minor, one.patch), (other.major, other.minor, other.patch)
    if left != right:
        return 1 if left > right else -1
    if not one.pre and not other.pre:
        return 0
    budget.spend(IDENTIFIER * (len(one.pre) + len(other.pre)))
    return (one.key > other.key) - (one.key < other.key)


def _signed(part: int) -> int:
    """Return a part as upstream's conversion to a signed number of 64 bits has it."""
    return part if part <= INT_MAX else part - WRAP


def overloads() -> Iterator[Overload]:
    pair = (SEMVER, SEMVER)
    yield metered(function("semver", (STRING,), SEMVER, parse))
    yield metered(function("semver", (STRING, BOOL), SEMVER, parse))
    yield metered(function("isSemver", (STRING,), BOOL, succeeds(parse)))
    yield metered(function("isSemver", (STRING, BOOL), BOOL, succeeds(parse)))
    yield metered(method("isGreaterThan", pair, BOOL, lambda budget, one, other: compare(budget, one, other) > 0))
    yield metered(method("isLessThan", pair, BOOL, lambda budget, one, other: compare(budget, one, other) < 0))
    yield metered(method("compareTo", pair, INT, compare))
    yield method("major", (SEMVER,), INT, lambda version: _signed(version.major))
    yield method("minor", (SEMVER,), INT, lambda version: _signed(version.minor))
    yield method("patch", (SEMVER,), INT, lambda version: _signed(version.patch))
