"""What people can ask for beside devices: how to place, how strict to be, what to prefer and what to leave alone."""

from dataclasses import replace
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from extender.model.frozen import dataclass
from extender.topology.quality import ONE


class Placing(StrEnum):
    """What is to be left behind. PROTECT: sets that the next pods need; PACK: whole nodes; SPREAD: room on each."""

    PROTECT = "protect"
    PACK = "pack"
    SPREAD = "spread"


class Wish(StrEnum):
    """How much something is wanted. STRICT: or not at all."""

    IGNORED = "ignored"
    PREFERRED = "preferred"
    STRICT = "strict"


class Trait(NamedTuple):
    """Devices with one of *values* of an attribute; its name may come without the driver's domain."""

    attribute: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """prefer: traits, the best first; avoid: taken only where no other devices are left; forbid: never taken."""

    name: str = "protect"
    placing: Placing = Placing.PROTECT
    numa: Wish = Wish.IGNORED
    links: Wish = Wish.PREFERRED
    prefer: tuple[Trait, ...] = ()
    avoid: tuple[Trait, ...] = ()
    forbid: tuple[Trait, ...] = ()

    @property
    def is_strict(self) -> bool:
        """Whether some devices that could be had are not taken."""
        return self.is_firm or bool(self.forbid)

    @property
    def is_firm(self) -> bool:
        """Whether some sets are not taken, though each of their devices alone would be."""
        return Wish.STRICT in (self.numa, self.links)

    @property
    def is_graded(self) -> bool:
        """Whether some devices are wanted more than others, wherever they are."""
        return bool(self.prefer or self.avoid)

    @property
    def relaxed(self) -> "Policy":
        """The same for sets of which only a part is for this policy to judge."""
        links = Wish.PREFERRED if self.links is Wish.STRICT else self.links
        numa = Wish.IGNORED if self.numa is Wish.STRICT else self.numa
        return replace(self, numa=numa, links=links, prefer=(), avoid=(), forbid=())


PROTECT: Final = Policy()


class Outlook(NamedTuple):
    """What it is like to take a set of devices of a node.

    quality: of its links; change: of what the rest is good for; both of ONE. zones: NUMA nodes that it is known to be
    on, one more for each device of which none is known. is_linked: as fully as its kind of machine can have it.
    generation: what the worst device comes after in what is preferred. free: devices of the kind before, out of
    *every* one that the node has.
    """

    size: int
    quality: int
    change: int
    zones: int
    is_linked: bool
    generation: int
    avoided: int
    free: int
    every: int


# What is left counts half as much as what is taken: so much of a thousand.
KEEPING: Final = 500
# Beyond all that a set can be worth otherwise: q, what is left, which is up to two, and alignment.
STEP: Final = 16 * ONE
# Beyond all that policies think of sets: a device that must be made ready before a pod can have it.
UNREADY: Final = 100_000 * STEP
# Splitting NUMA nodes costs less than bad links, which tell more of how devices work together.
ZONE: Final = ONE // 10
# Further NUMA nodes cost nothing more: all of them together stay below a STEP.
MOST_ZONES: Final = 10


class Summands(NamedTuple):
    """What a set's worth is the sum of, each of ONE."""

    links: int = 0
    zones: int = 0
    kept: int = 0
    generation: int = 0
    avoided: int = 0


def worth(policy: Policy, outlook: Outlook) -> int | None:
    """Return what a set is worth to *policy*, of ONE; None where the policy does not have it."""
    if policy.numa is Wish.STRICT and outlook.zones > 1:
        return None
    if policy.links is Wish.STRICT and not outlook.is_linked:
        return None
    return sum(summands(policy, outlook))


def summands(policy: Policy, outlook: Outlook) -> Summands:
    """Say what the worth of a set is made of."""
    has_links = policy.links is not Wish.IGNORED and outlook.size > 1
    generation, avoided = graded(policy, outlook.generation, outlook.avoided)
    return Summands(
        links=outlook.quality if has_links else 0,
        zones=-ZONE * (min(outlook.zones, MOST_ZONES) - 1) if policy.numa is Wish.PREFERRED else 0,
        kept=_kept(policy.placing, outlook),
        generation=generation,
        avoided=avoided,
    )


def graded(policy: Policy, generation: int, avoided: int) -> tuple[int, int]:
    """Say what it counts that the worst device is of a generation, and that some are to be avoided."""
    return -STEP * generation, -STEP * (len(policy.prefer) + 1) * avoided


Number = TypeVar("Number", int, NDArray[np.int64])


def spoiling(lost: Number) -> Number:
    """Return what so many devices count of which others lose all, where a part would do: less than half a STEP.

    The first is as bad as what typical pods lose with sixteen devices: no links and no pairs make up for it.
    """
    return -(STEP // 2 * lost // (lost + 1))


def _kept(placing: Placing, outlook: Outlook) -> int:
    # As a share of the node, not of what is free: an empty node would look full to who takes most of a small one.
    spare = 2 * ONE * (outlook.free - outlook.size) // max(1, outlook.every)
    match placing:
        case Placing.PROTECT:
            return KEEPING * outlook.change // 1000
        case Placing.PACK:
            return -spare
        case Placing.SPREAD:
            return spare
