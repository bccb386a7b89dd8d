"""One table of functions: what the checker knows of each variant, and what computes it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from extender.allocation.cel.types import Type
from extender.allocation.cel.values import classes_of

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

    def accepts(self, values: Iterable[object]) -> bool:
        """Tell whether the arguments have the types of the parameters at run time."""
        return all(not classes or type(value) in classes for value, classes in zip(values, self.classes, strict=True))


def function(name: str, parameters: Iterable[Type], result: Type, compute: Computation | None) -> Overload:
    """Declare ``name(parameters)``."""
    given = tuple(parameters)
    return Overload(
        name, is_member=False, parameters=given, result=result, compute=compute, classes=tuple(map(classes_of, given))
    )


def method(name: str, parameters: Iterable[Type], result: Type, compute: Computation | None) -> Overload:
    """Declare ``receiver.name(...)``; the receiver is the first parameter."""
    given = tuple(parameters)
    return Overload(
        name, is_member=True, parameters=given, result=result, compute=compute, classes=tuple(map(classes_of, given))
    )


def metered(overload: Overload) -> Overload:
    """Let the computation spend from the budget, which it takes as its first argument."""
    return Overload(
        overload.name,
        overload.is_member,
        overload.parameters,
        overload.result,
        overload.compute,
        is_metered=True,
        is_guarded=overload.is_guarded,
        classes=overload.classes,
    )


def unguarded(overload: Overload) -> Overload:
    """Leave all tests of types to the computation, which then serves every variant of the name."""
    return Overload(
        overload.name,
        overload.is_member,
        overload.parameters,
        overload.result,
        overload.compute,
        is_metered=overload.is_metered,
        is_guarded=False,
        classes=overload.classes,
    )


@cache
def table() -> dict[str, tuple[Overload, ...]]:
    """Return every function by name, its variants in the order in which they are tried."""
    from extender.allocation.cel.library import every_overload  # noqa: PLC0415 - the library declares with this module

    found: dict[str, list[Overload]] = {}
    for overload in every_overload():
        found.setdefault(overload.name, []).append(overload)
    return {name: tuple(overloads) for name, overloads in found.items()}
