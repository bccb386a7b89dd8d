"""Calls of functions of the table: the variant that the checker chose, or the first one that takes the values."""

from collections.abc import Callable, Sequence

from extender.allocation.cel.errors import Crashed, Failed, no_overload
from extender.allocation.cel.overloads import Overload, table
from extender.allocation.cel.program import BUDGET, Closure, Frame
from extender.allocation.cel.tree import Call, Literal, Node
from extender.allocation.cel.types import is_open
from extender.allocation.cel.values import classes_of, type_name

# The argument that upstream takes the measure of to tell the cost of a call, with no regard to what it is.
MEASURED: dict[str, tuple[int, type]] = {"distinct": (0, tuple), "sort": (0, tuple), "flatten": (1, int)}


def function_closure(node: Call, closures: tuple[Closure, ...]) -> Closure:
    """Call the one variant that the checker left, else, as upstream does, the first that takes the values."""
    first = node.overloads[0]
    if node.name in MEASURED and len(node.overloads) == 1:
        closures = _measured(closures, *MEASURED[node.name])
    if not first.is_guarded:
        return certain_closure(first, closures)
    if len(node.overloads) == 1:
        sure = [not first.classes[place] or _is_sure(argument) for place, argument in enumerate(node.children())]
        return certain_closure(first, closures) if all(sure) else _guarded_closure(first, closures)
    variants = tuple(variant for variant in table()[node.name] if len(variant.parameters) == len(closures))
    return _dispatching_closure(node.name, variants, closures)


def _measured(closures: tuple[Closure, ...], place: int, kind: type) -> tuple[Closure, ...]:
    """Let the evaluation end where the argument at *place* fails or is of another type: upstream's would crash."""
    if place >= len(closures):
        return closures
    argument = closures[place]

    def measure(frame: Frame) -> object:
        try:
            value = argument(frame)
        except Failed as error:
            raise Crashed(*error.args) from None
        if type(value) is not kind:
            raise Crashed(f"the cost of a call with a value of type {type_name(value)} cannot be told")
        return value

    return (*closures[:place], measure, *closures[place + 1 :])


def _is_sure(node: Node) -> bool:
    """Tell whether the value is of the static type. What generic functions make of ``dyn`` often is not."""
    if not isinstance(node, Call):
        # Null passes the checker in place of values that it is not.
        return isinstance(node, Literal) and node.value is not None
    only = node.overloads[0] if len(node.overloads) == 1 else None
    is_exact = only is not None and only.is_guarded and not only.is_deep and not is_open(only.result)
    return only is not None and is_exact and bool(classes_of(only.result))


def certain_closure(variant: Overload, closures: tuple[Closure, ...]) -> Closure:
    """Call a variant without a look at the values."""
    compute = variant.compute
    assert compute is not None  # noqa: S101 - what cannot be computed takes no value, and is guarded
    if variant.is_metered:
        return _metered_closure(compute, closures)
    if len(closures) == 1:
        (only,) = closures
        return lambda frame: compute(only(frame))
    if len(closures) == 2:
        one, other = closures
        return lambda frame: compute(one(frame), other(frame))
    return lambda frame: compute(*[closure(frame) for closure in closures])


def _metered_closure(compute: Callable[..., object], closures: tuple[Closure, ...]) -> Closure:
    if len(closures) == 1:
        (only,) = closures
        return lambda frame: compute(frame[BUDGET], only(frame))
    if len(closures) == 2:
        one, other = closures
        return lambda frame: compute(frame[BUDGET], one(frame), other(frame))
    return lambda frame: compute(frame[BUDGET], *[closure(frame) for closure in closures])


def _guarded_closure(variant: Overload, closures: tuple[Closure, ...]) -> Closure:
    """Call a variant where the values are of its types."""
    if variant.compute is not None and not variant.is_deep and all(variant.classes):
        if len(closures) == 1:
            return _guarded_unary(variant, variant.compute, closures[0])
        if len(closures) == 2:
            return _guarded_binary(variant, variant.compute, *closures)

    def call(frame: Frame) -> object:
        values = [closure(frame) for closure in closures]
        return _applied(fitting(variant.name, (variant,), values), frame, values)

    return call


def _guarded_unary(variant: Overload, compute: Callable[..., object], only: Closure) -> Closure:
    name, (classes,), is_metered = variant.name, variant.classes, variant.is_metered

    def call(frame: Frame) -> object:
        value = only(frame)
        if type(value) not in classes:
            raise no_overload(name, type_name(value))
        return compute(frame[BUDGET], value) if is_metered else compute(value)

    return call


def _guarded_binary(variant: Overload, compute: Callable[..., object], one: Closure, other: Closure) -> Closure:
    name, (classes, other_classes), is_metered = variant.name, variant.classes, variant.is_metered

    def call(frame: Frame) -> object:
        left, right = one(frame), other(frame)
        if type(left) not in classes or type(right) not in other_classes:
            raise no_overload(name, type_name(left), type_name(right))
        return compute(frame[BUDGET], left, right) if is_metered else compute(left, right)

    return call


def _dispatching_closure(name: str, variants: tuple[Overload, ...], closures: tuple[Closure, ...]) -> Closure:
    """Find the variant by the classes of the values, and remember who takes these: there are few classes."""
    known: dict[tuple[type, ...], tuple[Overload, ...]] = {}

    def dispatch(frame: Frame) -> object:
        values = [closure(frame) for closure in closures]
        classes = tuple([type(value) for value in values])
        candidates = known.get(classes)
        if candidates is None:
            candidates = known[classes] = tuple(variant for variant in variants if variant.takes(classes))
        is_settled = len(candidates) == 1 and not candidates[0].is_deep
        return _applied(candidates[0] if is_settled else fitting(name, candidates, values), frame, values)

    return dispatch


def _applied(variant: Overload, frame: Frame, values: Sequence[object]) -> object:
    compute: Callable[..., object] = variant.compute  # type: ignore[assignment]  # whoever found it has seen to it
    return compute(frame[BUDGET], *values) if variant.is_metered else compute(*values)


def fitting(name: str, variants: tuple[Overload, ...], values: Sequence[object]) -> Overload:
    """Return the first variant that takes *values*."""
    for variant in variants:
        if variant.accepts(values):
            return variant
    raise no_overload(name, *map(type_name, values))
