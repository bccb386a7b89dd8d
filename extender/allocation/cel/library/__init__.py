"""The functions of the environment in which the scheduler compiles selectors ("stored expressions")."""

from collections.abc import Iterator

from extender.allocation.cel.library import (
    authorization,
    conversions,
    formats,
    formatting,
    lists,
    networks,
    operators,
    optionals,
    quantities,
    regex,
    sets,
    strings,
    times,
    urls,
    versions,
)
from extender.allocation.cel.overloads import Overload

MODULES = (
    operators,
    conversions,
    strings,
    formatting,
    lists,
    sets,
    regex,
    urls,
    networks,
    formats,
    quantities,
    versions,
    times,
    optionals,
    authorization,
)


def every_overload() -> Iterator[Overload]:
    """Yield the variants of all functions; within a name, in the order of declaration."""
    for module in MODULES:
        yield from module.overloads()
