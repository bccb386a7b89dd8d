"""What speaks for a placement and against it, in numbers that add up and in words for people."""

from typing import NamedTuple


class Part(NamedTuple):
    """One of the things that a placement's value is made of: *value* is of ONE, *text* is in plain units."""

    name: str
    value: int
    text: str


class Appraisal(NamedTuple):
    """A value of ONE, which is the sum of its parts; *basis*: by which policies, and for what was expected."""

    value: int
    parts: tuple[Part, ...] = ()
    basis: tuple[str, ...] = ()
