"""The order of sets by their links, as the search of one node takes it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.masks import mask_of, places_of, within
from extender.allocation.preference import NO_SET, Preference, Turn
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.topology.candidates import EXACT
from extender.topology.choice import Ranker
from extender.topology.partitioned import Partitioned
from extender.topology.policy import Wish

# A value, and places among the candidates of a board.
Valued = tuple[int, tuple[int, ...]]


class Wired(NamedTuple):
    """Devices of a board that are linked: who chooses, and where each device of the shape is among the candidates."""

    ranker: Ranker
    places: tuple[int, ...]


# Tells how the devices of a board are linked, and who chooses for an ask.
Wiring = Callable[[Board, At], Sequence[Wired]]


def taken(situation: Situation, picks: Iterable[tuple[At, int]]) -> int:
    """Return the mask of what was picked, and is no longer free: with adminAccess nothing is taken."""
    return mask_of({place for at, place in picks if not situation.asks[at].is_admin})


class Linked:
    """Tries sets of linked devices by their value; those of which nothing is known *otherwise*, and last.

    For claims that are *strict* there is nothing beside sets of one shape. *partitioned* tells what is free as a whole:
    by that it is judged what a set leaves. Of equal sets that comes first with the fewest devices that could be given
    in parts.
    """

    def __init__(
        self, wiring: Wiring, otherwise: Preference, strict: Collection[int], partitioned: Partitioned
    ) -> None:
        self._wiring = wiring
        self._otherwise = otherwise
        self._strict = strict
        self._partitioned = partitioned

    def order(self, situation: Situation) -> Sequence[Turn]:
        return self._otherwise.order(situation)

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        """Yield sets of *size* places out of *mask*, the best first."""
        every = self._wiring(situation.board, at) if size else ()
        free = self._partitioned.wholes(situation) & ~taken(situation, picks) if every else 0
        cut = mask & self._partitioned.divisible(situation.board)
        valued = (_whole_first(_valued(wired, free, mask, size), cut if cut != mask else 0) for wired in every)
        seen = set[tuple[int, ...]]()
        for _, places in merge(*valued, key=lambda entry: -entry[0]):
            seen.add(places)
            yield places
        if size and at.claim in self._strict:
            for wired in (wired for wired in every if len(wired.places) > EXACT):
                # In a large shape only some sets were valued.
                if wired.ranker.policy.links is Wish.STRICT:
                    yield from (places for places in _along_links(wired, mask, size) if places not in seen)
                else:
                    yield from self._otherwise.sets(situation, at, mask & mask_of(wired.places), size, picks)
            return
        # Of a small shape all sets were tried.
        tried = [mask_of(wired.places) for wired in every if len(wired.places) <= EXACT]
        if any(mask & ~one == 0 for one in tried):
            return
        for places in self._otherwise.sets(situation, at, mask, size, picks):
            chosen = mask_of(places)
            if not any(chosen & ~one == 0 for one in tried):
                yield places


def _along_links(wired: Wired, mask: int, size: int) -> Iterator[tuple[int, ...]]:
    """Yield all sets of one shape that are linked: to ask that of each set would be too much."""
    for found in wired.ranker.make.linked_sets(within(wired.places, mask), size):
        yield _outward(wired, found) if found else NO_SET


def _valued(wired: Wired, free: int, mask: int, size: int) -> Iterator[Valued]:
    """Yield sets of one shape. What may be taken counts as free, though others have a share of it."""
    among, whole = within(wired.places, mask), within(wired.places, free)
    for choice in wired.ranker.choices(whole | among, size, among):
        yield choice.value, _outward(wired, choice.mask)


def _whole_first(valued: Iterator[Valued], cut: int) -> Iterator[Valued]:
    """Of sets that are worth the same yield those first with the fewest devices of *cut*."""
    for _, equal in groupby(valued, key=itemgetter(0)) if cut else ():
        yield from sorted(equal, key=lambda entry: (mask_of(entry[1]) & cut).bit_count())
    yield from valued


def _outward(wired: Wired, mask: int) -> tuple[int, ...]:
    return tuple(sorted(wired.places[index] for index in places_of(mask)))
