"""Sets of devices of which many are alike, as the CPUs of a NUMA node are: by how many of which, not by each device."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, combinations
from typing import NamedTuple


class Lot(NamedTuple):
    """Devices that are alike: the first *wanted* of them are worth *gain* each, those after them *spare*, no more."""

    places: tuple[int, ...]
    wanted: int
    gain: int
    spare: int


def filled(lots: Sequence[Lot], count: int) -> tuple[int, ...]:
    """Take *count* devices where each is worth most, of equal lots from the largest first, so that they are few."""
    steps = sorted(
        (-worth, -len(lot.places), index, most)
        for index, lot in enumerate(lots)
        for worth, most in ((lot.gain, lot.wanted), (lot.spare, len(lot.places)))
    )
    taken = [0] * len(lots)
    for _, _, index, most in steps:
        # The first step of a lot is never after the second.
        taken[index] += min(most, len(lots[index].places) - taken[index], count - sum(taken))
    return tuple(sorted(place for lot, number in zip(lots, taken, strict=True) for place in lot.places[:number]))


def fewest(lots: Sequence[Lot], count: int) -> Iterator[tuple[int, ...]]:
    """Yield what is best out of each of the fewest lots that suffice, and out of each of one more."""
    largest = sorted(lots, key=lambda lot: -len(lot.places))
    needed = 1 + sum(total < count for total in accumulate(len(lot.places) for lot in largest))
    for some in chain(combinations(largest, needed), combinations(largest, needed + 1)):
        if sum(len(lot.places) for lot in some) >= count:
            yield filled(some, count)
