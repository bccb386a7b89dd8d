"""Which sets of devices are best on a node of a shape: good ones that leave good ones."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from extender.topology.candidates import EXACT
from extender.topology.grades import EVEN
from extender.topology.make import Make
from extender.topology.memo import Memo
from extender.topology.policy import KEEPING, PROTECT, Outlook, Policy, Summands, Wish, summands, worth
from extender.topology.quality import Quality
from extender.topology.residual import Mix, Packing, Residual
from extender.topology.shape import Shape

# Answers that are remembered of one shape, and sets of each answer.
ANSWERS = 1 << 14
KEPT = 70
# Where those in sight are not linked: sets that are found along links, and strides without any until that is given up.
GROWN = 8
STRIDES = 80


class Choice(NamedTuple):
    """A set with the parts of its value, of ONE: how good it is, and by how much what is left changes."""

    value: int
    mask: int
    quality: int
    change: int


class Ranker:
    """Ranks sets on all nodes of one make, as *policy* has it, where *mix* will be asked for.

    *packing* is of its shape, where others use it too.
    """

    def __init__(self, make: Make | Shape, mix: Mix, policy: Policy = PROTECT, packing: Packing | None = None) -> None:
        self.make = make if isinstance(make, Make) else Make(make)
        self.policy = policy
        self.residual = Residual(packing or Quality(self.make.shape), mix)
        self.quality = self.residual.quality
        self._is_plain = replace(policy, name="", forbid=()) == replace(PROTECT, name="")
        self._known: Memo[tuple[int, int, int], tuple[Choice, ...]] = Memo(ANSWERS)
        self._open: Memo[tuple[int, int, int], bool] = Memo(ANSWERS)

    def best(self, free: int, size: int, among: int = -1) -> Choice | None:
        """Return the best set of *size* out of *free*, None where there is none; *among*: those that may be."""
        ranked = self._ranked(free, size, among)
        return ranked[0] if ranked else None

    def choices(self, free: int, size: int, among: int = -1) -> Iterator[Choice]:
        """Yield the sets best first; equal ones in the order of their devices."""
        ranked = self._ranked(free, size, among)
        yield from ranked
        if len(ranked) == KEPT:
            yield from islice(self._sorted(free, size, free & among), KEPT, None)

    def is_open(self, free: int, size: int, among: int = -1) -> bool:
        """Tell whether nobody knows if there is a set: it was given up before one was found."""
        return not self._ranked(free, size, among) and self._open.get((free, size, free & among), False)

    def of(self, free: int, mask: int) -> Choice:
        """Return what it is like to take *mask* out of *free*, whether the policy has it or not."""
        return Choice(sum(self.summands(free, mask)), mask, self.quality.of(mask), self._change(free, mask))

    def quality_of(self, mask: int) -> int:
        """Return how good the links of a set are, of ONE; one device has none to be judged by."""
        return self.quality.of(mask) if mask & mask - 1 else 0

    def _ranked(self, free: int, size: int, among: int) -> tuple[Choice, ...]:
        key = (free, size, free & among)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = tuple(self._sorted(*key)[:KEPT])
        return known

    def _sorted(self, free: int, size: int, among: int) -> list[Choice]:
        before, allowed = self.residual.value(free), among & ~self.make.forbidden
        sets = self._candidates(allowed, size) if size else ()
        choices = [choice for mask in sets if (choice := self._choice(free, mask, before))]
        if sets and not choices and self.policy.links is Wish.STRICT and self.make.shape.size > EXACT:
            choices, is_open = self._along_links(free, size, allowed)
            self._open[free, size, among] = is_open
        return sorted(choices, key=lambda choice: -choice.value)

    def _along_links(self, free: int, size: int, allowed: int) -> tuple[list[Choice], bool]:
        """Value sets that are found along links, where those that are most likely linked are not.

        Tell whether that was given up before one was found.
        """
        before, found, strides = self.residual.value(free), list[Choice](), 0
        for part in self.make.parts(allowed) if self.policy.numa is Wish.STRICT else (allowed,):
            for mask in self.make.linked_sets(part, size):
                choice = self._choice(free, mask, before) if mask else None
                found += [choice] if choice else []
                strides += not mask
                if len(found) >= GROWN or strides >= STRIDES:
                    return found, not found
        return found, False

    def _candidates(self, among: int, size: int) -> Collection[int]:
        """List the sets that are valued. In a large shape links tell which; what the policy looks at comes beside."""
        make = self.make
        if make.shape.size <= EXACT or (make.grades == EVEN and not make.zones):
            return self.quality.sets(among, size)
        found = dict.fromkeys(self.quality.sets(among, size))
        for part in (among, *make.parts(among)):
            for needed, step in make.grades.best(part, size):
                sets = self.quality.sets(step, size - needed.bit_count())
                found |= dict.fromkeys(needed | mask for mask in sets)
        return found

    def _choice(self, free: int, mask: int, before: int) -> Choice | None:
        """Value a set; None where the policy does not have it."""
        quality, change = self.quality.of(mask), min(0, self.residual.value(free & ~mask) - before)
        if self._is_plain:
            # What worth comes to where nothing but links and what is left counts: nearly always, for thousands of sets.
            links = quality if mask & mask - 1 else 0
            return Choice(links + KEEPING * change // 1000, mask, quality, change)
        value = worth(self.policy, self._outlook(free, mask, quality, change))
        return None if value is None else Choice(value, mask, quality, change)

    def _change(self, free: int, mask: int) -> int:
        # What is left of many devices is worked out about: it is never more than there was.
        return min(0, self.residual.value(free & ~mask) - self.residual.value(free))

    def summands(self, free: int, mask: int) -> Summands:
        """Say what the value of a set is the sum of."""
        quality, change = self.quality.of(mask), self._change(free, mask)
        return summands(self.policy, self._outlook(free, mask, quality, change))

    def _outlook(self, free: int, mask: int, quality: int, change: int) -> Outlook:
        make = self.make
        avoided, generation = make.grades.worth(mask)
        return Outlook(
            size=mask.bit_count(),
            quality=quality,
            change=change,
            zones=make.zones_of(mask),
            is_linked=make.is_linked(mask),
            generation=generation,
            avoided=avoided,
            free=free.bit_count(),
            every=make.shape.size,
        )
