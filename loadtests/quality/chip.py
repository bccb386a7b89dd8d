"""One A100 as a Markov decision process, whose states are which partitions are held: the optimum, and any rule.

What does not fit is lost, and what fits is admitted: a rule only says where.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from extender.topology.partitions import Cut, Pattern, Rest

Floats = NDArray[np.float64]
CLOSE = 1e-10
# Profile: processors of 98, memory slices, and where it may begin; in the order in which they are published.
PROFILES = {
    "1g.5gb": (14, 1, (0, 1, 2, 3, 4, 5, 6)),
    "2g.10gb": (28, 2, (0, 2, 4)),
    "3g.20gb": (42, 4, (0, 4)),
    "4g.20gb": (56, 4, (0,)),
    "7g.40gb": (98, 8, (0,)),
}
COMPUTE = {profile: processors // 14 for profile, (processors, _, _) in PROFILES.items()}
MOST = 7
WHOLE = "whole devices"
# The cuts that are held, in order.
State = tuple[int, ...]
# Which partitions are held, and a profile, to cuts; several stand for an even chance.
Rule = Callable[[State, str], Sequence[int]]


def _a100() -> Pattern:
    cuts = [
        Cut(profile, (processors, *(int(start <= index < start + slices) for index in range(8))), (None,))
        for profile, (processors, slices, starts) in PROFILES.items()
        for start in starts
    ]
    return Pattern((98, *[1] * 8), (Cut(WHOLE, (98, *[1] * 8), (None,)), *cuts))


A100 = _a100()
CUTS = {profile: [index for index, cut in enumerate(A100.cuts) if cut.profile == profile] for profile in PROFILES}
_RESTS: dict[State, Rest] = {}


def rest_of(state: State) -> Rest:
    """Return what held partitions leave."""
    if state not in _RESTS:
        drawn = [A100.cuts[cut].draws for cut in state]
        left = tuple(whole - sum(column) for whole, *column in zip(A100.whole, *drawn, strict=True))
        unheld = tuple(int(index not in state) for index in range(len(A100.cuts)))
        _RESTS[state] = A100.rest(left, (None,), unheld)
    return _RESTS[state]


def fitting(state: State, profile: str) -> list[int]:
    rest = rest_of(state)
    return [cut for cut in CUTS[profile] if rest.cuts[cut]]


def beside(state: State, cut: int) -> State:
    return tuple(sorted((*state, cut)))


def without(state: State, cut: int) -> State:
    return tuple(held for held in state if held != cut)


@dataclass(frozen=True)
class Asked:
    """How often, of a hundred requests, each profile is asked for; partitions are held for one unit of time."""

    name: str
    counts: dict[str, int]

    def rates(self, load: float, chips: int = 1) -> dict[str, float]:
        """Return the arrivals of each profile in a unit of time that ask for *load* of all processors."""
        total = sum(COMPUTE[profile] * count for profile, count in self.counts.items())
        return {profile: load * chips * MOST * count / total for profile, count in self.counts.items()}

    def lost(self, blocked: dict[str, float]) -> float:
        """Return the share of the compute asked for that is lost, where *blocked* is that of each profile."""
        total = sum(COMPUTE[profile] * count for profile, count in self.counts.items())
        return sum(COMPUTE[profile] * count * blocked[profile] for profile, count in self.counts.items()) / total


class Chip:
    """All states of an A100, and the ways between them."""

    def __init__(self) -> None:
        self.number: dict[State, int] = {(): 0}
        pending: list[State] = [()]
        while pending:
            state = pending.pop()
            for after in (beside(state, cut) for profile in PROFILES for cut in fitting(state, profile)):
                if after not in self.number:
                    self.number[after] = len(self.number)
                    pending.append(after)

    def blocking(self, rule: Rule, asked: Asked, load: float) -> dict[str, float]:
        """Return how often each profile is blocked in the long run, exactly."""
        rates = asked.rates(load)
        told = {profile: self._moves(rule, profile) for profile in rates}
        changes = self._ends + sum(rate * told[profile][0] for profile, rate in rates.items())
        np.fill_diagonal(changes, changes.diagonal() - changes.sum(axis=1))
        # The last line says that all chances are one together.
        system = np.vstack([changes.T, np.ones(len(changes))])
        likely = np.linalg.lstsq(system, np.append(np.zeros(len(changes)), 1), rcond=None)[0]
        return {profile: float(likely @ told[profile][1]) for profile in rates}

    def best(self, asked: Asked, load: float) -> Rule:
        """Return the rule that loses the least compute, by relative value iteration."""
        rates = asked.rates(load)
        pace = sum(rates.values()) + MOST
        ends = self._ends / pace
        np.fill_diagonal(ends, MOST / pace - ends.sum(axis=1))
        options = {profile: self._options(profile) for profile in rates}
        worth: Floats = np.zeros(len(self.number))
        while True:
            after = ends @ worth
            for profile, rate in rates.items():
                most = np.where(options[profile] < 0, -np.inf, worth[options[profile]]).max(axis=1)
                after += rate / pace * np.where(np.isinf(most), worth - COMPUTE[profile], most)
            change, worth = after - worth, after - after[0]
            if np.ptp(change) < CLOSE:
                return lambda state, profile: sorted(
                    fitting(state, profile), key=lambda cut: -worth[self.number[beside(state, cut)]]
                )[:1]

    def _moves(self, rule: Rule, profile: str) -> tuple[Floats, Floats]:
        """Return the chances of what follows a request in each state, and whether it is blocked."""
        moves, blocked = np.zeros((len(self.number), len(self.number))), np.zeros(len(self.number))
        for state, here in self.number.items():
            cuts = rule(state, profile)
            for cut in cuts:
                moves[here, self.number[beside(state, cut)]] += 1 / len(cuts)
            if not cuts:
                moves[here, here] = blocked[here] = 1
        return moves, blocked

    @cached_property
    def _ends(self) -> Floats:
        """Return the rates at which held partitions end."""
        rates = np.zeros((len(self.number), len(self.number)))
        for state, here in self.number.items():
            for held in state:
                rates[here, self.number[without(state, held)]] += 1
        return rates

    def _options(self, profile: str) -> NDArray[np.int64]:
        """Return where each state can lead to: int64[states, options], -1 where there are no more."""
        table = np.full((len(self.number), len(CUTS[profile])), -1)
        for state, here in self.number.items():
            for column, cut in enumerate(fitting(state, profile)):
                table[here, column] = self.number[beside(state, cut)]
        return table
