"""What drivers are configured by. It is handed through as it is, or not at all.

But for fractions of more digits than a double has: they are rounded, as most who read JSON do, and nobody can tell.
"""

from collections.abc import Iterator
from typing import Final

# Stands where the text of an object had what is no character, and had to be changed to be read. Unicode keeps this one
# for such ends: nobody writes it, and of whoever does nothing is taken over.
MARK: Final = "\ufdd0"
# What is nested deeper could not be written: orjson stops at 254 levels, and an allocation has some around it.
DEEPEST: Final = 200
# Integers from here on, up to there, are read as such. Of others floats are made, without the last digits: what is a
# float out there may have been one of them.
LEAST: Final = -(2**63)
BEYOND: Final = 2**64


def flaw_in(value: object) -> str:
    """Say why *value* cannot be handed through as it was written; empty where it can."""
    level, depth = [value], 0
    while level:
        if any(isinstance(item, str) and MARK in item for item in level):
            return "has text that is no Unicode, and cannot be handed to a driver as it is"
        if any(isinstance(item, int | float) and _is_beyond(item) for item in level):
            return "has a number of more than 64 bits, and cannot be handed to a driver as it is"
        if depth > DEEPEST:
            return f"nests deeper than {DEEPEST} levels, and cannot be written into an allocation"
        level, depth = [inside for item in level for inside in _inside(item)], depth + 1
    return ""


def _is_beyond(number: float) -> bool:
    # What YAML has for no number is nowhere in between.
    return not (LEAST < number < BEYOND or (number == LEAST and isinstance(number, int)))


def _inside(item: object) -> Iterator[object]:
    if isinstance(item, dict):
        yield from item
        yield from item.values()
    elif isinstance(item, list):
        yield from item
