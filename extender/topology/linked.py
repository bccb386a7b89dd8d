"""The order of sets by their links, as the search of one node takes it."""

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from typing import NamedTuple

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.preference import Preference, Turn
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.topology.candidates import EXACT
from extender.topology.choice import Chooser
from extender.topology.shape import mask_of, places_of

# A value, and places among the candidates of a board.
Valued = tuple[int, tuple[int, ...]]


class Wired(NamedTuple):
    """Devices of a board that are linked: who chooses, and where each device of the shape is among the candidates."""

    chooser: Chooser
    places: tuple[int, ...]


Wiring = Callable[[Board], Sequence[Wired]]


class Linked:
    """Tries sets of linked devices by their value; those of which nothing is known *otherwise*, and last."""

    def __init__(self, wiring: Wiring, otherwise: Preference) -> None:
        self._wiring = wiring
        self._otherwise = otherwise

    def order(self, situation: Situation) -> Sequence[Turn]:
        return self._otherwise.order(situation)

    def sets(
        self, situation: Situation, at: At, mask: int, size: int, picks: Sequence[Pick]
    ) -> Iterator[tuple[int, ...]]:
        """Yield sets of *size* places out of *mask*, the best first."""
        every = self._wiring(situation.board) if size else ()
        valued = (_valued(wired, situation, mask, size) for wired in every)
        for _, places in merge(*valued, key=lambda entry: -entry[0]):
            yield places
        # Of a small shape all sets were tried.
        tried = [mask_of(wired.places) for wired in every if len(wired.places) <= EXACT]
        if any(mask & ~one == 0 for one in tried):
            return
        for places in self._otherwise.sets(situation, at, mask, size, picks):
            chosen = mask_of(places)
            if not any(chosen & ~one == 0 for one in tried):
                yield places


def _valued(wired: Wired, situation: Situation, mask: int, size: int) -> Iterator[Valued]:
    """Yield sets of one shape. What may be taken counts as free, though others have a share of it."""
    among = mask_of(index for index, place in enumerate(wired.places) if mask >> place & 1)
    unheld = mask_of(index for index, place in enumerate(wired.places) if not situation.usages[place].is_held)
    for choice in wired.chooser.choices(unheld | among, size, among):
        yield choice.value, tuple(sorted(wired.places[index] for index in places_of(choice.mask)))
