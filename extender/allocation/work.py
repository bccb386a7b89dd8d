"""Work that is done piece by piece: a generator that yields between the pieces, and returns what comes of it."""

from collections.abc import Generator
from typing import TypeVar

R = TypeVar("R")
Work = Generator[None, None, R]


def finished(work: "Work[R]") -> R:
    """Do all of it now."""
    return finished_with_pauses(work)[0]


def finished_with_pauses(work: "Work[R]") -> tuple[R, int]:
    """Do all of it now; tell how often it could have paused."""
    pauses = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: R = end.value
            return result, pauses
        pauses += 1


class Toll:
    """Adds up what was done since the last pause, in units of whoever works."""

    def __init__(self, piece: int) -> None:
        self._piece, self._due = piece, 0

    def paid(self, done: int) -> Work[None]:
        """Pause as often as *done* more is worth, which is not at all where it is little."""
        pauses, self._due = divmod(self._due + done, self._piece)
        for _ in range(pauses):
            yield
