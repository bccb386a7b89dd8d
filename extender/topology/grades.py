"""Devices in the order in which a policy wants them: first what it prefers most, last what it avoids."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from extender.allocation.masks import mask_of, places_of


class Grades(NamedTuple):
    """*generations*: how late each device comes in what is preferred; *avoided*: a mask. Empty where there is nothing.

    Of two sets that with fewer devices to be avoided is better, and then that whose worst device is preferred more.
    """

    generations: tuple[int, ...] = ()
    avoided: int = 0

    def worst(self, mask: int) -> int:
        """Return the generation of the worst device."""
        return max((self.generations[place] for place in places_of(mask)), default=0) if self.generations else 0

    def worth(self, mask: int) -> tuple[int, int]:
        """Return what the less is the better, of two sets of a size."""
        return (mask & self.avoided).bit_count(), self.worst(mask)

    def is_even(self, mask: int) -> bool:
        """Tell whether all sets of a size out of *mask* are as good."""
        if mask & self.avoided and mask & ~self.avoided:
            return False
        return not self.generations or len({self.generations[place] for place in places_of(mask)}) < 2

    def steps(self, mask: int, least: int = 0) -> Iterator[int]:
        """Yield ever more of *mask*: what is preferred most, up to *least* at once, then the next generation too."""
        if not self.generations:
            yield mask
            return
        for worst in sorted({max(least, self.generations[place]) for place in places_of(mask)}):
            yield mask_of(place for place in places_of(mask) if self.generations[place] <= worst)

    def best(self, among: int, size: int) -> Iterator[tuple[int, int]]:
        """Yield masks out of which the best sets are, best first: all of one, and the rest out of the other.

        Where there are too few that are not avoided, they are all taken.
        """
        liked = among & ~self.avoided
        needed, others = (liked, among & self.avoided) if liked.bit_count() < size else (0, liked)
        for step in self.steps(others, self.worst(needed)):
            if step.bit_count() + needed.bit_count() >= size:
                yield needed, step


EVEN: Final = Grades()
