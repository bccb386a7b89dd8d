"""What a search can know ahead: that too little is left, that devices are interchangeable, that it was here before.

Only what cannot succeed is left out, so that the first solution stays the first one.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from extender.allocation.attempt import Attempt
from extender.allocation.eligibility import Eligible, Met
from extender.allocation.question import At
from extender.allocation.situation import Situation


class Demand(NamedTuple):
    """So many devices out of a mask, for one ask."""

    at: At
    mask: int
    size: int


def can_foresee(situation: Situation) -> bool:
    """Tell whether nothing can be met on the way: a search that leaves branches out must not leave out an error."""
    return all(
        not found.errors
        and not (situation.asks[at].takes_all and situation.covered[at])
        and _can_derive(situation, at, found)
        for at, found in situation.eligible.items()
    )


def _can_derive(situation: Situation, at: At, found: Eligible) -> bool:
    """Tell whether everything that *at* derives of its candidates can be computed."""
    if not situation.asks[at].derivations:
        return True
    try:
        for rule in situation.covered[at]:
            for place in places_of(found.free):
                situation.values[at.claim][rule].at(situation.asks[at], place)
    except Met:
        return False
    return True


def is_short(situation: Situation, claim: int) -> bool:
    """Tell whether a slot of *claim* has fewer free candidates than it needs, each of its asks taken alone."""
    return any(
        all(_lacks(situation, At(claim, slot, index)) for index in range(len(wanted.asks)))
        for slot, wanted in enumerate(situation.slots(claim))
    )


def _lacks(situation: Situation, at: At) -> bool:
    ask, found = situation.asks[at], situation.eligible[at]
    needed = max(1, len(found.every)) if ask.takes_all else ask.count
    return found.free.bit_count() < needed


class Foresight:
    """Facts about one situation in which nothing can be met, worked out once."""

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.dead: set[object] = set()
        self._holders = {
            (at, rule): _holders(situation, at, rule) for at, rules in situation.covered.items() for rule in rules
        }
        self._kinds = self._numbered()
        # What looking ahead costs, in candidates tried: it counts for each ask, and for each value of each rule.
        self.weight = (len(situation.asks) + sum(map(len, self._holders.values()))) // 8
        self._has_admin = any(ask.is_admin for ask in situation.asks.values())

    def kind(self, attempt: Attempt, place: int) -> object:
        """Name what *place* has in common with others: where one of a kind fails, all of them do."""
        shares = attempt.shares.get(place)
        if shares is None and not self._has_admin:
            return self._kinds[place]
        return self._kinds[place], attempt.used >> place & 1, None if shares is None else tuple(shares.items())

    def state(self, attempt: Attempt, claim: int, slot: int) -> object:
        """Name the attempt as far as the slots from here on can tell."""
        counts: dict[int, int] = {}
        for place in places_of(attempt.used & self._wanted_from(claim, slot)):
            counts[self._kinds[place]] = counts.get(self._kinds[place], 0) + 1
        return (
            (claim, slot, attempt.results[claim]),
            tuple(sorted(counts.items())),
            attempt.used_by[claim] if self._has_admin else 0,
            tuple(attempt.states[claim]),
            tuple((place, *taken.items()) for place, taken in sorted(attempt.shares.items())),
            tuple((pool, *ledger.left.values(), *ledger.groups.items()) for pool, ledger in attempt.ledgers.items()),
        )

    def is_hopeless(self, attempt: Attempt, at: At, needed: int, start: int) -> bool:
        """Tell whether counting alone shows that the rest cannot succeed."""
        demands = [self._demand(attempt, at, needed, -(1 << start)), *self._later(attempt, at)]
        if any(demand.mask.bit_count() < demand.size for demand in demands):
            return True
        return self._compete(demands) or any(
            self._cannot_agree(attempt, claim, rule, demands)
            for claim in range(at.claim, len(self.situation.values))
            for rule in range(len(self.situation.values[claim]))
        )

    def _demand(self, attempt: Attempt, at: At, count: int, window: int = -1) -> Demand:
        ask = self.situation.asks[at]
        mask = self.situation.eligible[at].free & ~attempt.in_use(at, ask) & window
        for rule in self.situation.covered[at]:
            mask &= self._allowed(attempt, at, rule)
        return Demand(at, mask, count)

    def _allowed(self, attempt: Attempt, at: At, rule: int) -> int:
        """Return the candidates that a rule leaves, each taken alone."""
        state, holders = attempt.states[at.claim][rule], self._holders[at, rule]
        if self.situation.values[at.claim][rule].rule.is_match:
            return reduce(or_, (mask for bit, mask in holders.items() if state & bit), 0)
        taken = reduce(or_, (mask for bit, mask in holders.items() if state & bit), 0)
        return reduce(or_, holders.values(), 0) & ~taken

    def _later(self, attempt: Attempt, at: At) -> Iterator[Demand]:
        """Yield what the slots after this one need; of a list only that one of its alternatives can be had."""
        for claim in range(at.claim, len(self.situation.values)):
            for slot, wanted in enumerate(self.situation.slots(claim)):
                if claim == at.claim and slot <= at.slot:
                    continue
                demands = [
                    self._demand(attempt, place, self._count(place))
                    for place in (At(claim, slot, index) for index in range(len(wanted.asks)))
                ]
                if len(demands) == 1:
                    yield demands[0]
                elif all(demand.mask.bit_count() < demand.size for demand in demands):
                    yield Demand(At(claim, slot, 0), 0, 1)

    def _count(self, at: At) -> int:
        ask = self.situation.asks[at]
        return max(1, len(self.situation.eligible[at].every)) if ask.takes_all else ask.count

    def _compete(self, demands: Sequence[Demand]) -> bool:
        """Tell whether demands on devices that only one can have are more than these devices, by Hall's condition."""
        exclusive = [
            demand
            for demand in demands
            if not self.situation.asks[demand.at].is_admin and not demand.mask & self.situation.shareable
        ]
        masks = {demand.mask for demand in exclusive}
        masks.add(reduce(or_, masks, 0))
        return any(
            sum(demand.size for demand in exclusive if not demand.mask & ~mask) > mask.bit_count() for mask in masks
        )

    def _cannot_agree(self, attempt: Attempt, claim: int, rule: int, demands: Sequence[Demand]) -> bool:
        """Tell whether no value is left that is enough for everybody whom a rule covers."""
        bound = [item for item in demands if item.at.claim == claim and rule in self.situation.covered[item.at]]
        if not bound:
            return False
        values = reduce(or_, (bit for item in bound for bit in self._holders[item.at, rule]), 0)
        if not self.situation.values[claim][rule].rule.is_match:
            reached = sum(1 for bit in bits_of(values) if any(self._with(item, rule, bit).mask for item in bound))
            return reached < sum(demand.size for demand in bound)
        return not any(
            self._is_enough([self._with(item, rule, bit) for item in bound])
            for bit in bits_of(values & attempt.states[claim][rule])
        )

    def _with(self, demand: Demand, rule: int, bit: int) -> Demand:
        """Narrow a demand to the candidates with one value."""
        return demand._replace(mask=demand.mask & self._holders[demand.at, rule].get(bit, 0))

    def _is_enough(self, demands: Sequence[Demand]) -> bool:
        return all(demand.mask.bit_count() >= demand.size for demand in demands) and not self._compete(demands)

    def _wanted_from(self, claim: int, slot: int) -> int:
        """Return the candidates that a slot from here on could be given."""
        later = (found.free for at, found in self.situation.eligible.items() if (at.claim, at.slot) >= (claim, slot))
        return reduce(or_, later, 0)

    def _numbered(self) -> list[int]:
        """Give each candidate the number of its kind: those of a kind differ in nothing that this question can see."""
        numbers: dict[object, int] = {}
        return [
            numbers.setdefault(self._signature(place), len(numbers))
            for place in range(len(self.situation.board.candidates))
        ]

    def _signature(self, place: int) -> object:
        situation, candidate = self.situation, self.situation.board.candidates[place]
        free = tuple(found.free >> place & 1 for found in situation.eligible.values())
        held = tuple(
            tuple(bit for bit, mask in holders.items() if mask >> place & 1) for holders in self._holders.values()
        )
        partition = candidate.device.traits.consumes_counters
        shared = situation.is_shareable(place) and (
            situation.is_shared(place),
            situation.usages[place].consumed,
            candidate.device.capacity,
        )
        return free, held, partition and (candidate.pool, partition), shared


def _holders(situation: Situation, at: At, rule: int) -> dict[int, int]:
    """Return, for each value of a rule's attribute, the mask of the candidates of an ask that have it."""
    values, ask = situation.values[at.claim][rule], situation.asks[at]
    holders: dict[int, int] = {}
    for place in places_of(situation.eligible[at].free):
        for bit in bits_of(values.at(ask, place) or 0):
            holders[bit] = holders.get(bit, 0) | 1 << place
    return holders


def bits_of(mask: int) -> Iterator[int]:
    """Yield the bits of *mask*, each as a mask of its own."""
    while mask:
        yield mask & -mask
        mask &= mask - 1


def places_of(mask: int) -> Iterator[int]:
    """Yield the positions of the bits of *mask*."""
    for bit in bits_of(mask):
        yield bit.bit_length() - 1
