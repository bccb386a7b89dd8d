"""One table of functions: what the checker knows of each variant, and what computes it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.types import Type
from extender.allocation.cel.values import classes_of
from extender.model.frozen import dataclass

# Takes the budget first where the variant is metered, then the values of the parameters.
Computation = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Overload:
    """One variant of a function. *compute* is None where no value of its parameters can exist here.

    An unguarded variant looks at the types of its arguments itself.
    """

    name: str
    is_member: bool
    parameters: tuple[Type, ...]
    result: Type
    compute: Computation | None
    is_metered: bool = False
    is_guarded: bool = True
    classes: tuple[tuple[type, ...], ...] = ()

    @property
    def is_deep(self) -> bool:
        """Tell whether some parameter is a list of which the items count, too."""
        return any(map(_has_known_items, self.parameters))

    def takes(self, classes: Sequence[type]) -> bool:
        """Tell whether there may be values of these classes that the variant takes."""
        pairs = zip(classes, self.classes, strict=True)
        return self.compute is not None and all(not known or given in known for given, known in pairs)

    def accepts(self, values: Sequence[object]) -> bool:
        """Tell whether the arguments have the types of the parameters at run time."""
        return self.compute is not None and all(map(is_of, values, self.parameters))


def _has_known_items(given: Type) -> bool:
    return given.kind == "list" and bool(classes_of(given.parameters[0]))


def is_of(value: object, expected: Type) -> bool:
    """Tell whether a value is of a type at run time. Of a list, upstream looks at the first item only."""
    classes = classes_of(expected)
    if classes and type(value) not in classes:
        return False
    items = value if isinstance(value, tuple) and expected.kind == "list" else ()
    return not items or is_of(items[0], expected.parameters[0])


def function(name: str, parameters: Iterable[Type], result: Type, compute: Computation | None) -> Overload:
    """Declare ``name(parameters)``."""
    return _declared(name, tuple(parameters), result, compute, is_member=False)


def method(name: str, parameters: Iterable[Type], result: Type, compute: Computation | None) -> Overload:
    """Declare ``receiver.name(...)``; the receiver is the first parameter."""
    return _declared(name, tuple(parameters), result, compute, is_member=True)


def _declared(
    name: str, parameters: tuple[Type, ...], result: Type, compute: Computation | None, *, is_member: bool
) -> Overload:
    return Overload(name, is_member, parameters, result, compute, classes=tuple(map(classes_of, parameters)))


def metered(overload: Overload) -> Overload:
    """Let the computation spend from the budget, which it takes as its first argument."""
    return replace(overload, is_metered=True)


def unguarded(overload: Overload) -> Overload:
    """Leave all tests of types to the computation, which then serves every variant of the name."""
    return replace(overload, is_guarded=False)


def succeeds(compute: Computation) -> Computation:
    """Tell whether *compute* has a value: what ``isQuantity`` is to ``quantity``."""

    def test(*arguments: object) -> bool:
        try:
            compute(*arguments)
        except Failed:
            return False
        return True

    return test


@cache
def table() -> dict[str, tuple[Overload, ...]]:
    """Return every function by name, its variants in the order in which they are tried."""
    from extender.allocation.cel.library import every_overload  # noqa: PLC0415 - the library declares with this module

    found: dict[str, list[Overload]] = {}
    for overload in every_overload():
        found.setdefault(overload.name, []).append(overload)
    return {name: tuple(overloads) for name, overloads in found.items()}
