"""A partial solution: what has been given so far. Every step can be taken back, the last one first."""

from collections.abc import Mapping
from typing import NamedTuple

from extender.allocation.counters import Balance, Groups
from extender.allocation.eligibility import NOTHING, Met, has_left
from extender.allocation.question import Ask, At
from extender.allocation.situation import Situation
from extender.allocation.values import OPAQUE

# The state of a match rule before any device: every value is possible.
ANYTHING = -1


class Pick(NamedTuple):
    """A candidate given to an ask."""

    at: At
    place: int


class Undo(NamedTuple):
    """What the attempt was like before a step, as far as the step changed it."""

    used: int
    used_by_claim: int
    states: list[int]
    groups: dict[str, Groups] | None
    shares: Mapping[str, int] | None


class Attempt:
    """Devices given to asks, one after the other.

    used: mask of the dedicated devices given; states: for each rule of each claim, the values that all devices of a
    match rule have in common, or those that the devices of a distinct rule have between them.
    """

    def __init__(self, situation: Situation) -> None:
        claims = situation.question.claims
        self.situation = situation
        self.picks: list[Pick] = []
        self.used = 0
        self.used_by = [0] * len(claims)
        self.results = [0] * len(claims)
        self.states = [[ANYTHING if rule.is_match else 0 for rule in claim.rules] for claim in claims]
        self.shares: dict[int, Mapping[str, int]] = {}
        self.balances: dict[int, Balance] = {}

    def in_use(self, at: At, ask: Ask) -> int:
        """Return the mask of what cannot be given to *ask* any more. Admin access shares, but not within a claim."""
        return self.used_by[at.claim] if ask.is_admin else self.used

    def give(self, at: At, ask: Ask, place: int) -> Undo | None:
        """Give a candidate that is eligible and not in use; None where that cannot be, and then nothing has changed."""
        device = self.situation.board.candidates[place].device
        draws = self._draws(ask, place)
        if draws and not self._balance(place).admits(device, grouped=self._grouped):
            return None
        states = self._joined(at, ask, place)
        if states is None or not self.fits(at, ask, place):
            return None
        undo = Undo(
            used=self.used,
            used_by_claim=self.used_by[at.claim],
            states=self.states[at.claim],
            groups=self._balance(place).take(device) if draws else None,
            shares=self.shares.get(place),
        )
        self.states[at.claim] = states
        self._occupy(at, ask, place)
        self.results[at.claim] += 1
        self.picks.append(Pick(at, place))
        return undo

    def take_back(self, undo: Undo) -> None:
        """Take the last candidate back."""
        at, place = self.picks.pop()
        self.results[at.claim] -= 1
        self.used, self.used_by[at.claim] = undo.used, undo.used_by_claim
        self.states[at.claim] = undo.states
        if undo.groups is not None:
            self._balance(place).give_back(self.situation.board.candidates[place].device, undo.groups)
        if undo.shares is not None:
            self.shares[place] = undo.shares
        else:
            self.shares.pop(place, None)

    def admits(self, ask: Ask, place: int, *, grouped: bool = False) -> bool:
        """Tell whether the counters of its pool suffice for a candidate and, if *grouped*, its groups, too."""
        device = self.situation.board.candidates[place].device
        grouped = grouped and self._grouped
        return not self._draws(ask, place) or self._balance(place).admits(device, grouped=grouped)

    @property
    def _grouped(self) -> bool:
        return self.situation.question.features.device_compatibility_groups

    def _draws(self, ask: Ask, place: int) -> bool:
        """Tell whether giving the candidate draws from its pool: a shared one does so once, admin access never."""
        if ask.is_admin or not self.situation.board.candidates[place].device.traits.consumes_counters:
            return False
        is_active = self.situation.is_shared(place) or place in self.shares
        return not (self.situation.is_shareable(place) and is_active)

    def _balance(self, place: int) -> Balance:
        pool = self.situation.board.candidates[place].pool
        if pool not in self.balances:
            self.balances[pool] = self.situation.balance(pool)
        return self.balances[pool]

    def _joined(self, at: At, ask: Ask, place: int) -> list[int] | None:
        """Return the states of the claim's rules with the candidate, None where one of them is violated."""
        covered = self.situation.covered[at]
        states = self.states[at.claim]
        if not covered:
            return states
        states = states.copy()
        for index in covered:
            values = self.situation.values[at.claim][index]
            bits = values.at(ask, place)
            joined = None if bits is None else _joined(states[index], bits, is_match=values.rule.is_match)
            if joined is None:
                if ask.takes_all:
                    key = self.situation.board.candidates[place].key
                    text = f"request {ask.name} asks for all devices, but a constraint forbids {'/'.join(key)}"
                    raise Met(text, place=key)
                return None
            states[index] = joined
        return states

    def fits(self, at: At, ask: Ask, place: int) -> bool:
        """Tell whether enough of a candidate is left."""
        is_shareable = self.situation.is_shareable(place)
        # What one alone can have was found to have enough left before, but where all are taken, however little is left.
        if ask.is_admin or not (is_shareable or (ask.takes_all and self._measured)):
            return True
        drawn, device = self.situation.eligible[at].draws[place], self.situation.board.candidates[place].device
        return has_left(drawn, device, self.situation.usages[place], self.shares.get(place, NOTHING))

    @property
    def _measured(self) -> bool:
        return self.situation.question.features.consumable_capacity

    def _occupy(self, at: At, ask: Ask, place: int) -> None:
        if not self.situation.is_shareable(place):
            self.used |= 1 << place
            self.used_by[at.claim] |= 1 << place
        elif not ask.is_admin:
            before = self.shares.get(place, NOTHING)
            drawn = self.situation.eligible[at].draws[place].amounts
            self.shares[place] = {name: before.get(name, 0) + amount.nanos for name, amount in drawn}


def _joined(state: int, bits: int, *, is_match: bool) -> int | None:
    if is_match:
        # A list that is not understood matches nothing, not even itself, which a shared device may be asked to.
        return None if bits & OPAQUE and state != ANYTHING else state & bits & ~OPAQUE or None
    if bits & state & ~OPAQUE or (bits & OPAQUE and state):
        return None
    return state | bits
