"""Sets of devices of which many are alike, as the CPUs of a NUMA node are: by how many of which, not by each device."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, combinations, permutations
from typing import Final, NamedTuple

# Exchanges that are tried at the most, from each start: some rounds among eight lots, none among more than 22.
LOOKED: Final = 512
# How many devices are of which lot.
Counts = tuple[int, ...]


class Lot(NamedTuple):
    """Devices that are alike: the first *wanted* of them are worth *gain* each, those after them *spare*, no more."""

    places: tuple[int, ...]
    wanted: int
    gain: int
    spare: int


def filled(lots: Sequence[Lot], count: int) -> tuple[int, ...]:
    """Take *count* devices where each is worth most, of equal lots from the largest first, so that they are few."""
    return _places(lots, _counts(lots, count))


def exchanged(aims: Sequence[Sequence[Lot]], count: int, worth: Callable[[Counts], int], most: int) -> tuple[int, ...]:
    """Take *count* devices that are worth most together, which is not what they are worth one by one; at *most* that.

    From what is best by each of *aims*, which value the same lots otherwise, one device after the other is exchanged.
    """
    lots, *_ = aims
    starts = dict.fromkeys(_counts(some, count) for some in aims)
    best = max(starts, key=worth)
    if worth(best) < most:
        best = max((_climbed(lots, counts, worth) for counts in starts), key=worth)
    return _places(lots, best)


def _climbed(lots: Sequence[Lot], counts: Counts, worth: Callable[[Counts], int]) -> Counts:
    """Exchange a device for one of another lot for as long as that is worth more, and there are not too many to try."""
    for _ in range(LOOKED // len(lots) ** 2):
        better = max(_exchanges(lots, counts), key=worth, default=counts)
        if worth(better) <= worth(counts):
            break
        counts = better
    return counts


def _exchanges(lots: Sequence[Lot], counts: Counts) -> Iterator[Counts]:
    for one, other in permutations(range(len(lots)), 2):
        if counts[one] and counts[other] < len(lots[other].places):
            yield tuple(number + (index == other) - (index == one) for index, number in enumerate(counts))


def _counts(lots: Sequence[Lot], count: int) -> Counts:
    steps = sorted(
        (-worth, -len(lot.places), index, most)
        for index, lot in enumerate(lots)
        for worth, most in ((lot.gain, lot.wanted), (lot.spare, len(lot.places)))
    )
    taken = [0] * len(lots)
    for _, _, index, most in steps:
        # The first step of a lot is never after the second.
        taken[index] += min(most, len(lots[index].places) - taken[index], count - sum(taken))
    return tuple(taken)


def _places(lots: Sequence[Lot], counts: Counts) -> tuple[int, ...]:
    return tuple(sorted(place for lot, number in zip(lots, counts, strict=True) for place in lot.places[:number]))


def fewest(lots: Sequence[Lot], count: int) -> Iterator[tuple[int, ...]]:
    """Yield what is best out of each of the fewest lots that suffice, and out of each of one more."""
    largest = sorted(lots, key=lambda lot: -len(lot.places))
    needed = 1 + sum(total < count for total in accumulate(len(lot.places) for lot in largest))
    for some in chain(combinations(largest, needed), combinations(largest, needed + 1)):
        if sum(len(lot.places) for lot in some) >= count:
            yield filled(some, count)
