"""What a device that is cut into partitions is still good for: the placements of each profile that its counters leave.

A chip is what partitions are cut out of: one counter set, or several that some device draws from together. Chips of
one pattern share all answers, whatever they are called.
"""

from functools import cached_property
from math import lcm, prod
from typing import Final, NamedTuple

from extender.allocation.counters import Groups, are_compatible, joined
from extender.model.frozen import dataclass
from extender.topology.memo import Memo
from extender.topology.quality import ONE

Amounts = tuple[int, ...]
# Answers of each sort that are remembered of one pattern.
ANSWERS: Final = 1 << 14
# Ways to have or not to have the placements of one profile that compete for counters, up to which all are tried.
EXACT: Final = 1 << 12
# Looks at a cut that finding sets of cuts may take: enough for what is sold, and for the rest it ends.
LOOKS: Final = 100_000
# Sets of each size that are carried on. Of seven placements there are at most 35 of a size: those of MIG are all tried.
KEPT: Final = 70


class Cut(NamedTuple):
    """A profile at one place. *copies* of it are published; groups: one for each counter set.

    *draws* is by counter. Nothing in *groups* is of a counter set from which the cut draws nothing.
    """

    profile: str
    draws: Amounts
    groups: tuple[Groups | None, ...]
    copies: int = 1


@dataclass(frozen=True)
class Pattern:
    """A kind of chip: how much it has of each counter, and how it can be cut. *sets* counts its counter sets."""

    whole: Amounts
    cuts: tuple[Cut, ...]
    sets: int = 1

    @cached_property
    def profiles(self) -> tuple[str, ...]:
        return tuple(sorted({cut.profile for cut in self.cuts}))

    @property
    def untouched(self) -> "Rest":
        """The rest of a chip of which nobody has anything."""
        return self.rest(self.whole, (None,) * self.sets, tuple(cut.copies for cut in self.cuts))

    def rest(self, left: Amounts, groups: tuple[Groups | None, ...], unheld: Amounts) -> "Rest":
        """Return a rest, the same for all that differ only in what cannot be had any more."""
        usable = min(left, default=0) >= 0
        fitting = (
            count if usable and self._fits(cut, left, groups) else 0
            for cut, count in zip(self.cuts, unheld, strict=True)
        )
        return Rest(left, groups, tuple(fitting))

    def _fits(self, cut: Cut, left: Amounts, groups: tuple[Groups | None, ...]) -> bool:
        return all(map(int.__le__, cut.draws, left)) and all(
            own is None or are_compatible(active, own) for own, active in zip(cut.groups, groups, strict=True)
        )

    def parts(self, profile: str) -> list[list[int]]:
        """Split the cuts of *profile* into parts that have no counter in common."""
        parts: list[tuple[set[int], list[int]]] = []
        for index, cut in enumerate(self.cuts):
            if cut.profile != profile:
                continue
            drawn, members = {counter for counter, amount in enumerate(cut.draws) if amount}, [index]
            for other in [part for part in parts if part[0] & drawn]:
                parts.remove(other)
                drawn, members = drawn | other[0], other[1] + members
            parts.append((drawn, members))
        return [sorted(members) for _, members in parts]


class Rest(NamedTuple):
    """What is left of a chip: of each counter, who is active in each set, and how many of each cut can be had now."""

    left: Amounts
    groups: tuple[Groups | None, ...]
    cuts: Amounts


class Option(NamedTuple):
    """Cuts that can be taken together, and by how much that changes what is left, of ONE."""

    change: int
    cuts: tuple[int, ...]


class Remains:
    """What is left of chips of one pattern, each worked out once.

    P is how many partitions of a profile can still be had together, V what all that is left is worth.
    """

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self._parts = {profile: pattern.parts(profile) for profile in pattern.profiles}
        self._placements: Memo[tuple[Rest, str], int] = Memo(ANSWERS)
        self._value: Memo[Rest, int] = Memo(ANSWERS)
        self._options: Memo[tuple[Rest, Amounts, int], tuple[tuple[Option, ...], ...]] = Memo(ANSWERS)
        most = {profile: self.placements(pattern.untouched, profile) for profile in pattern.profiles}
        weights = {profile: weight for profile, weight in _weights(pattern).items() if most[profile]}
        whole = lcm(*(most[profile] for profile in weights))
        self._factors = [(profile, weight * whole // most[profile]) for profile, weight in weights.items()]
        self._whole = whole * sum(weights.values())

    def placements(self, rest: Rest, profile: str) -> int:
        """Return P: the most partitions of *profile* that can be had together."""
        key = (rest, profile)
        known = self._placements.get(key)
        if known is None:
            known = self._placements[key] = sum(self._most(rest, part) for part in self._parts[profile])
        return known

    def value(self, rest: Rest) -> int:
        """Return V, between nothing and ONE: all that is left, as a share of the untouched chip."""
        known = self._value.get(rest)
        if known is None:
            total = sum(factor * self.placements(rest, profile) for profile, factor in self._factors)
            known = self._value[rest] = ONE * total // self._whole if total else 0
        return known

    def after(self, rest: Rest, cut: int) -> Rest | None:
        """Return what a cut leaves; None where it cannot be had."""
        if not rest.cuts[cut]:
            return None
        taken = self.pattern.cuts[cut]
        groups = tuple(
            active if own is None else joined(active, own)
            for own, active in zip(taken.groups, rest.groups, strict=True)
        )
        unheld = tuple(count - (index == cut) for index, count in enumerate(rest.cuts))
        return self.pattern.rest(_minus(rest.left, taken.draws), groups, unheld)

    def options(self, rest: Rest, among: Amounts, most: int) -> tuple[tuple[Option, ...], ...]:
        """Return, for each size up to *most*, the best sets of cuts; *among*: how many of each cut may be taken.

        Large sizes are left out where there are very many cuts.
        """
        key = (rest, among, most)
        known = self._options.get(key)
        if known is None:
            known = self._options[key] = self._grown(rest, among, most)
        return known

    def _grown(self, rest: Rest, among: Amounts, most: int) -> tuple[tuple[Option, ...], ...]:
        """Grow sets cut by cut. All of them are found where no size has more than KEPT, and looks suffice."""
        before, wide = self.value(rest), max(1, sum(map(bool, among)) * len(among))
        most = min(most, max(1, LOOKS // wide))
        width = min(KEPT, max(1, LOOKS // (wide * max(1, most))))
        found: list[tuple[Option, ...]] = [(Option(0, ()),)]
        level: dict[tuple[int, ...], Rest] = {(): rest}
        for _ in range(most):
            wider = {
                tuple(sorted((*cuts, cut))): after
                for cuts, left in level.items()
                for cut, may in enumerate(among)
                if may > cuts.count(cut) and (after := self.after(left, cut))
            }
            ranked = sorted(Option(self.value(left) - before, cuts) for cuts, left in wider.items())
            kept = sorted(ranked, key=lambda option: -option.change)[:width]
            level = {option.cuts: wider[option.cuts] for option in kept}
            found.append(tuple(kept))
        return tuple(found)

    def _most(self, rest: Rest, part: list[int]) -> int:
        """Return how many cuts of a part can be had together."""
        wanted = [(self.pattern.cuts[index].draws, rest.cuts[index]) for index in part if rest.cuts[index]]
        if len(wanted) > 1 and prod(count + 1 for _, count in wanted) > EXACT:
            return _one_after_another(wanted, rest.left)
        return _packed(tuple(wanted), rest.left)


Wanted = tuple[tuple[Amounts, int], ...]


def _packed(wanted: Wanted, left: Amounts) -> int:
    """Try every number of the first, and the others beside it."""
    counted = sum(count for _, count in wanted)
    if not wanted or _room(_sum(wanted, len(left)), left, 1):
        return counted
    (draws, count), others = wanted[0], wanted[1:]
    room = _room(draws, left, count)
    if not others:
        return room
    rest = sum(count for _, count in others)
    best = 0
    for number in range(room, -1, -1):
        if number + rest <= best:
            break
        best = max(best, number + _packed(others, _minus(left, draws, number)))
    return best


def _one_after_another(wanted: list[tuple[Amounts, int]], left: Amounts) -> int:
    """Take what comes first: never more than can be had."""
    total = 0
    for draws, count in wanted:
        number = _room(draws, left, count)
        left, total = _minus(left, draws, number), total + number
    return total


def _room(draws: Amounts, left: Amounts, count: int) -> int:
    """Return how many times *draws* can be taken, up to *count*."""
    return min([count, *(rest // amount for amount, rest in zip(draws, left, strict=True) if amount > 0)])


def _sum(wanted: Wanted, size: int) -> Amounts:
    return tuple(sum(count * draws[counter] for draws, count in wanted) for counter in range(size))


def _minus(left: Amounts, draws: Amounts, times: int = 1) -> Amounts:
    return tuple(rest - times * amount for rest, amount in zip(left, draws, strict=True))


def _weights(pattern: Pattern) -> dict[str, int]:
    """Return how much each profile counts: by the square of its size, whoever asks for which.

    What a lost placement costs is what could have run there, and large ones go with the first small one that is taken:
    by counts alone they would be given up. To know how often each is asked for, too, was tried: of what is asked for it
    saved two thousandths at the most, and sometimes lost three (`git log -p loadtests/results/partitions.txt`).
    """
    sizes: dict[str, int] = {}
    for cut in pattern.cuts:
        sizes[cut.profile] = max(sizes.get(cut.profile, 1), share_of(cut.draws, pattern.whole))
    return {profile: size**2 for profile, size in sizes.items()}


def share_of(amounts: Amounts, whole: Amounts) -> int:
    """Return how much of a chip some amounts are, in thousandths: the mean over its counters."""
    shares = [1000 * amount // total for amount, total in zip(amounts, whole, strict=True) if total > 0]
    return sum(shares) // len(shares) if shares else 0
