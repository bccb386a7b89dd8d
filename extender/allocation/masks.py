"""Sets of devices as integers: a bit for each of them, by its place."""

from collections.abc import Iterable, Iterator, Sequence


def mask_of(places: Iterable[int]) -> int:
    """Return the set of *places*, none of which is given twice."""
    return sum(1 << place for place in places)


def places_of(mask: int) -> tuple[int, ...]:
    """Do the opposite: list the places, the least first."""
    # The same loop as below, and not by way of it: searches spend much of their time here.
    places = []
    while mask:
        lowest = mask & -mask
        places.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(places)


def bits_of(mask: int) -> Iterator[int]:
    """Yield each bit of *mask* as a mask of its own."""
    while mask:
        lowest = mask & -mask
        yield lowest
        mask ^= lowest


def within(places: Sequence[int], mask: int) -> int:
    """Return what *places* have of *mask*, numbered anew: the first of them is bit 0, whatever its place."""
    return mask_of(index for index, place in enumerate(places) if mask >> place & 1)
