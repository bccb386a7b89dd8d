"""Work that is done piece by piece: a generator that yields between the pieces, and returns what comes of it."""

from collections.abc import Generator
from typing import TypeVar

R = TypeVar("R")
Work = Generator[None, None, R]


def finished(work: "Work[R]") -> R:
    """Do all of it now."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: R = end.value
            return result
