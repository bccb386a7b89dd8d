"""What a search can know ahead: that too little is left, that devices are interchangeable, that it was here before.

Only what cannot succeed, and meets nothing on the way, is left out, so that the first solution stays the first one.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import or_
from typing import Final

from extender.allocation.attempt import ANYTHING, Attempt
from extender.allocation.counting import Demand
from extender.allocation.eligibility import Eligible, Met
from extender.allocation.holders import AllHolders, kinds_of
from extender.allocation.masks import bits_of, mask_of, places_of
from extender.allocation.preference import Turn, in_order
from extender.allocation.question import RESULTS, At, ClaimQuestion
from extender.allocation.situation import Situation

# Operations on masks that one look may take. What it does not come to, it leaves to the search.
LOOK: Final = 8000
# How many of them are about as much work as a candidate that is tried.
PER_STEP: Final = 8


def can_foresee(situation: Situation) -> bool:
    """Tell whether nothing can be met on the way but at candidates that are known to err.

    A search that leaves branches out must not leave out an error. Nor must it come to one, as where it does not notice
    that a claim has too many results, whatever its devices.
    """
    if any(found.errors for found in situation.eligible.values()) and any(map(_may_crowd, situation.question.claims)):
        return False
    return all(
        not (situation.asks[at].takes_all and situation.covered[at]) and _can_derive(situation, at, found)
        for at, found in situation.eligible.items()
    )


def _may_crowd(part: ClaimQuestion) -> bool:
    return sum(max(RESULTS + 1 if ask.takes_all else ask.count for ask in slot.asks) for slot in part.slots) > RESULTS


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


def is_short(situation: Situation) -> bool:
    """Tell whether a slot has fewer free candidates than it needs, each of its asks taken alone.

    What comes after one that may err is not looked at: the error comes before.
    """
    for places in situation.question.slots.values():
        if any(situation.eligible[at].errors for at in places):
            return False
        if all(situation.eligible[at].free.bit_count() < situation.needed(at) for at in places):
            return True
    return False


class Foresight:
    """Facts about one situation of which ``can_foresee`` holds, worked out once. cost: of the last look, in steps.

    *turns* are the slots in the order in which they choose, where sets are ordered by what is preferred, which passes
    over what errs: as they are asked, if nothing else is said.
    """

    def __init__(self, situation: Situation, turns: Sequence[Turn] = ()) -> None:
        self.situation = situation
        # The last candidate at which an ask errs: until that is passed, nothing of its branch is left out.
        self._errs = {} if turns else {at: max(found.errors, default=-1) for at, found in situation.eligible.items()}
        self._turns = turns or in_order(situation)
        self._turn_of = {turn: index for index, turn in enumerate(self._turns)}
        self.dead: set[object] = set()
        self._holders = AllHolders(situation)
        self._kinds = kinds_of(situation, self._holders)
        self._has_admin = any(ask.is_admin for ask in situation.asks.values())
        self._wanted: dict[tuple[int, int], int] = {}
        self._needed = {at: situation.needed(at) for at in situation.asks}
        self._covered = {at: mask_of(rules) for at, rules in situation.covered.items()}
        # Asks under the same rules, of which none derives what a rule compares, are left the same candidates.
        self._groups = {at: self._group(at) for at in situation.asks}
        self._work = 0

    def _group(self, at: At) -> object:
        rules = self.situation.covered[at]
        return at if any(self._holders.derives(at, rule) for rule in rules) else (at.claim, self._covered[at])

    @property
    def cost(self) -> int:
        return self._work // PER_STEP

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
            tuple(
                (pool, *sorted(balance.taken.items()), *balance.groups.items())
                for pool, balance in attempt.balances.items()
            ),
        )

    def _wanted_from(self, claim: int, slot: int) -> int:
        """Return the candidates that a slot from here on could be given, or errs at."""
        if (claim, slot) not in self._wanted:
            eligible = self.situation.eligible.items()
            later = (found.reachable for at, found in eligible if (at.claim, at.slot) >= (claim, slot))
            self._wanted[claim, slot] = reduce(or_, later, 0)
        return self._wanted[claim, slot]

    def is_hopeless(self, attempt: Attempt, at: At, needed: int, start: int) -> bool:
        """Tell whether counting alone shows that the rest cannot succeed, and so never comes to a slot that may err."""
        left: dict[object, int] = {}
        if self._errs.get(at, -1) >= start:
            self._work = 0
            return False
        self._work = len(self.situation.asks)
        demands = [self._demand(attempt, left, at, needed, -(1 << start)), *self._later(attempt, left, at)]
        if any(demand.mask.bit_count() < demand.size for demand in demands):
            return True
        return self._compete(demands) or any(
            self._cannot_agree(attempt, claim, rule, demands)
            for claim in sorted({demand.at.claim for demand in demands})
            for rule in range(len(self.situation.values[claim]))
            if self._work < LOOK
        )

    def is_vain(self, attempt: Attempt, at: At) -> bool:
        """Tell whether counting alone shows that nothing is left for those after *at*, which has what it needs."""
        is_last = self._turn_of[Turn(at.claim, at.slot)] + 1 == len(self._turns)
        return not is_last and self.is_hopeless(attempt, at, 0, 0)

    def _demand(self, attempt: Attempt, left: dict[object, int], at: At, count: int, window: int = -1) -> Demand:
        group = self._groups[at]
        if group not in left:
            left[group] = self._left(attempt, at)
        ask = self.situation.asks[at]
        return Demand(at, self.situation.eligible[at].free & ~attempt.in_use(at, ask) & window & left[group], count)

    def _left(self, attempt: Attempt, at: At) -> int:
        """Return the candidates that the rules of an ask leave, each rule taken alone."""
        left = -1
        for rule in self.situation.covered[at]:
            state, holders = attempt.states[at.claim][rule], self._holders.of(at, rule)
            if not self.situation.values[at.claim][rule].rule.is_match:
                left &= holders.everyone & ~holders.having(state)
            else:
                left &= holders.everyone if state == ANYTHING else holders.having(state)
            self._work += 1
        return left

    def _later(self, attempt: Attempt, left: dict[object, int], at: At) -> Iterator[Demand]:
        """Yield what the slots after this one need, up to one that may err.

        Of a list it is no more than that one of its alternatives can be had.
        """
        for claim, slot in self._turns[self._turn_of[Turn(at.claim, at.slot)] + 1 :]:
            places = self.situation.question.slots[claim, slot]
            if any(self._errs.get(place, -1) >= 0 for place in places):
                return
            demands = [self._demand(attempt, left, place, self._needed[place]) for place in places]
            if len(demands) == 1:
                yield demands[0]
            elif all(demand.mask.bit_count() < demand.size for demand in demands):
                yield Demand(At(claim, slot, 0), 0, 1)

    def _compete(self, demands: Sequence[Demand]) -> bool:
        """Tell whether demands on devices that only one can have are more than these devices, by Hall's condition."""
        exclusive = [
            demand
            for demand in demands
            if not self.situation.asks[demand.at].is_admin and not demand.mask & self.situation.shareable
        ]
        masks = {demand.mask for demand in exclusive}
        masks.add(reduce(or_, masks, 0))
        self._work += len(masks) * len(exclusive)
        return any(
            sum(demand.size for demand in exclusive if not demand.mask & ~mask) > mask.bit_count() for mask in masks
        )

    def _cannot_agree(self, attempt: Attempt, claim: int, rule: int, demands: Sequence[Demand]) -> bool:
        """Tell whether no value is left that is enough for everybody whom a rule covers."""
        # Who needs nothing agrees with everybody.
        bound = [
            item for item in demands if item.size and item.at.claim == claim and self._covered[item.at] >> rule & 1
        ]
        if not bound:
            return False
        state = attempt.states[claim][rule]
        if not self.situation.values[claim][rule].rule.is_match:
            needed = sum(demand.size for demand in bound)
            return len(list(islice(self._reached(bound, rule), needed))) < needed
        values = bits_of(state) if state != ANYTHING else self._values(bound, rule)
        # A look that takes too long ends as if a value had been found.
        return not any(
            self._work >= LOOK or self._is_enough([self._with(item, rule, bit) for item in bound]) for bit in values
        )

    def _values(self, bound: Iterable[Demand], rule: int) -> Iterable[int]:
        """Return the values that all demands of a rule know."""
        known = [self._holders.of(item.at, rule).by_value for item in bound]
        return (bit for bit in known[0] if all(bit in others for others in known))

    def _reached(self, bound: Sequence[Demand], rule: int) -> Iterator[int]:
        """Yield the values that any demand can be given; too many of them where that takes too long to tell."""
        for bit in {bit for item in bound for bit in self._holders.of(item.at, rule).by_value}:
            if self._work >= LOOK or any(self._with(item, rule, bit).mask for item in bound):
                yield bit

    def _with(self, demand: Demand, rule: int, bit: int) -> Demand:
        """Narrow a demand to the candidates with one value."""
        self._work += 1
        return demand._replace(mask=demand.mask & self._holders.of(demand.at, rule).by_value.get(bit, 0))

    def _is_enough(self, demands: Sequence[Demand]) -> bool:
        return all(demand.mask.bit_count() >= demand.size for demand in demands) and not self._compete(demands)
