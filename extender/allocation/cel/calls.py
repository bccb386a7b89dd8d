"""Closures of function calls and operators. What is common in selectors has a closure of its own."""

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from extender.allocation.cel.dispatch import function_closure
from extender.allocation.cel.equality import compare, equal, not_equal
from extender.allocation.cel.errors import CompileError, Crashed, Failed, no_overload
from extender.allocation.cel.library.conversions import NAMES as CONVERSIONS
from extender.allocation.cel.library.regex import NAMES as SEARCHES
from extender.allocation.cel.limits import Budget
from extender.allocation.cel.literals import in_int_range
from extender.allocation.cel.patterns import check
from extender.allocation.cel.program import BUDGET, Closure, Frame
from extender.allocation.cel.tree import Call, Ident, ListLiteral, Literal, MapLiteral, Node
from extender.allocation.cel.values import (
    MISSING,
    PRIMITIVE,
    UNHASHABLE,
    Key,
    Optional,
    UInt,
    Value,
    encoded,
    held,
    type_name,
)

Values = tuple[object, ...]
# Literals of these are computed once; they cost little, whatever the text of the literal.
FOLDED = CONVERSIONS | {"quantity", "isQuantity", "semver", "isSemver", "ip", "isIP", "cidr", "isCIDR", "url", "isURL"}
FOLDING_STEPS = 100_000
EQUALITIES: dict[str, Callable[..., object]] = {"_==_": equal, "_!=_": not_equal}
# Integers up to here are the same number as a double.
EXACT = 2**53
ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}


def call_closure(
    node: Call, closures: tuple[Closure, ...], constants: Values, checking: Budget
) -> tuple[Closure, object]:
    """Return the closure of a call that the checker has accepted, and its value where that is known, else MISSING.

    *checking* is what may be spent still to see whether patterns are such.
    """
    if node.name == "_?_:_":
        return condition_closure(*closures), MISSING
    if node.name in ("or", "orValue") and node.target is not None:
        return alternative_closure(closures[0], closures[1], is_value=node.name == "orValue"), MISSING
    if node.name in SEARCHES:
        _require_regex(node, constants[1], checking)
        if isinstance(constants[1], str) and is_plain(node.children()[1]):
            # Where upstream knows the pattern it looks at no types of CEL, but at what Go takes for the value.
            closures = (held_closure(closures[0]), closures[1], *map(held_closure, closures[2:]))
    # Upstream looks up constants faster where it knows a list of them from a map.
    is_search = node.name == "@in" and len(node.overloads) == 1
    if is_search and constants[1] == () and is_plain(node.arguments[1]):
        return (lambda _frame: False), False  # upstream does not even evaluate the item
    special = special_closure(node.name, closures, constants) if is_search or node.name != "@in" else None
    closure = special or function_closure(node, closures)
    is_constant = node.name in FOLDED and not any(value is MISSING for value in constants)
    return closure, _folded(node, closure) if is_constant else MISSING


def _require_regex(node: Call, pattern: object, checking: Budget) -> None:
    if isinstance(pattern, str):
        try:
            check(checking, pattern)
        except Failed as error:
            raise CompileError(str(error), node.children()[1].position) from None


def held_closure(operand: Closure) -> Closure:
    return lambda frame: held(operand(frame))


def _folded(node: Call, closure: Closure) -> object:
    """Compute a call of literals now. A conversion that fails is an error of the text, others fail when evaluated."""
    try:
        return closure([None, Budget(FOLDING_STEPS)])
    except Failed as error:
        if is_plain(node):
            raise CompileError(str(error), node.position) from None
        return MISSING


def is_plain(node: Node) -> bool:
    """Tell whether upstream, too, knows the value before any evaluation: literals, and conversions of them."""
    if isinstance(node, (ListLiteral, MapLiteral)):
        return not node.optional and all(map(is_plain, node.children()))
    if isinstance(node, Call):
        return node.target is None and node.name in CONVERSIONS and all(map(is_plain, node.arguments))
    # A name of constant value is the name of a type.
    return isinstance(node, (Ident, Literal))


def condition_closure(test: Closure, yes: Closure, no: Closure) -> Closure:
    def choose(frame: Frame) -> object:
        decision = test(frame)
        if decision is True:
            return yes(frame)
        if decision is False:
            return no(frame)
        raise no_overload("_?_:_", type_name(decision))

    return choose


def alternative_closure(first: Closure, second: Closure, *, is_value: bool) -> Closure:
    """Compile ``or`` and ``orValue``: the second operand is evaluated where the first is absent."""

    def choose(frame: Frame) -> object:
        optional = first(frame)
        if not isinstance(optional, Optional):
            raise Failed("no such overload")
        if optional.present:
            return optional.value if is_value else optional
        return second(frame)

    return choose


def special_closure(name: str, closures: tuple[Closure, ...], constants: Values) -> Closure | None:
    """Return a faster closure for a comparison with a constant, None where there is none."""
    if len(constants) != 2:
        return None
    left, right = constants
    if name in EQUALITIES and _is_simple(right):
        return equality_closure(closures[0], right, EQUALITIES[name], is_swapped=False)
    if name in EQUALITIES and _is_simple(left):
        return equality_closure(closures[1], left, EQUALITIES[name], is_swapped=True)
    if name in ORDERS and type(right) is int:
        return order_closure(closures[0], right, ORDERS[name])
    if name == "@in" and type(right) is tuple and right and all(type(item) in PRIMITIVE for item in right):
        return membership_closure(closures[0], frozenset(key for item in right for key in keys_of(item)))
    return None


def _is_simple(value: object) -> bool:
    return type(value) is str or (type(value) is int and -EXACT <= value <= EXACT)


def equality_closure(
    operand: Closure, constant: object, compute: Callable[..., object], *, is_swapped: bool
) -> Closure:
    """Compare with a string or a small integer; any other type of value is left to *compute*."""
    kind = type(constant)
    is_equal = compute is equal

    def test(frame: Frame) -> object:
        value = operand(frame)
        if type(value) is kind:
            return (value == constant) is is_equal
        return compute(frame[BUDGET], constant, value) if is_swapped else compute(frame[BUDGET], value, constant)

    return test


def searching_closure(run: Closure) -> Closure:
    """Have each evaluation pay for its regular expressions, and let go of them."""

    def evaluate(frame: Frame) -> object:
        try:
            return run(frame)
        finally:
            frame[BUDGET].expressions.clear()

    return evaluate


def order_closure(operand: Closure, constant: int, order: Callable[[Any, Any], bool]) -> Closure:
    def test(frame: Frame) -> object:
        value = operand(frame)
        return order(value, constant) if type(value) is int else order(compare(frame[BUDGET], value, constant), 0)

    return test


def keys_of(item: Value) -> Iterator[object]:
    """Yield what equals *item* in a list of constants: a number also equals its image under a conversion."""
    if item != item:  # noqa: PLR0124 - NaN, which equals nothing
        return
    yield encoded(item)
    if type(item) is float and math.isfinite(item) and item == int(item):
        if in_int_range(int(item)) and abs(item) < 2.0**63:
            yield int(item)
        if 0 <= item < 2.0**64:
            yield Key("uint", int(item))
    elif type(item) in (int, UInt):
        whole = int(item)
        yield Key("double", float(whole))
        if in_int_range(whole):
            yield whole
        if whole >= 0:
            yield Key("uint", whole)


def membership_closure(operand: Closure, keys: frozenset[object]) -> Closure:
    """Look a value up among constants. Upstream cannot hash some types, which is an error there."""

    def test(frame: Frame) -> object:
        value = operand(frame)
        if type(value) is str:
            return value in keys
        if type(value) in UNHASHABLE:
            raise Crashed(f"a value of type {type_name(value)} cannot be looked up among constants")
        return type(value) in PRIMITIVE and encoded(value) in keys

    return test
