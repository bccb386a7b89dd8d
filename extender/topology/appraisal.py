"""What speaks for a placement and against it, in numbers that add up and in words for people."""

from typing import NamedTuple


class Part(NamedTuple):
    """One of the things that a placement's value is made of: *value* is of ONE, *text* is in plain units."""

    name: str
    value: int
    text: str


class Basis(NamedTuple):
    """By which policies it was chosen, and what was expected to be asked for, in words for each class of devices."""

    policies: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join((f"policy {', '.join(self.policies)}", *self.expected)) if self.policies else ""


NO_BASIS = Basis()


class Appraisal(NamedTuple):
    """A value of ONE, which is the sum of its parts."""

    value: int
    parts: tuple[Part, ...] = ()
    basis: Basis = NO_BASIS
