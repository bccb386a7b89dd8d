"""One node as a Markov decision process, whose states are who holds which devices: the exact optimum, and any policy.

Requests that do not fit are lost, so what is admitted depends on no policy that admits what fits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.topology.quality import ONE, Quality
from loadtests.quality.policies import Policy
from loadtests.quality.workload import Workload

Floats = NDArray[np.float64]
# The sets that are held, in order.
State = tuple[int, ...]
CLOSE = 1e-9


@dataclass(frozen=True)
class Options:
    """What can be done with a request of one size: *first* is where the options of each state start."""

    size: int
    first: NDArray[np.intp]
    state: NDArray[np.intp]
    after: NDArray[np.intp]
    mask: NDArray[np.int64]
    quality: Floats
    is_perfect: NDArray[np.bool_]

    def most(self, value: Floats) -> Floats:
        """Return the highest *value* of the options of each state."""
        return np.asarray(np.maximum.reduceat(value, self.first), dtype=np.float64)


@dataclass(frozen=True)
class Outcome:
    """Means over admitted requests for more than one device."""

    quality: float
    perfect: float


class Node:
    """All states of a node, and the ways between them."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.quality = Quality(workload.shape)
        self.states = self._reached()
        number = {state: index for index, state in enumerate(self.states)}
        self.options = [self._options(size, number) for size, _ in workload.asked]
        ends = [(number[state], number[_without(state, held)]) for state in self.states for held in state]
        self.ending, self.ended = np.array(ends).T
        self.held = np.array([len(state) for state in self.states])

    def optimum(self, load: float) -> Floats:
        """Return how much better it is to be in each state, by relative value iteration."""
        worth: Floats = np.zeros(len(self.states))
        while True:
            after = self._ended(worth, load)
            for option, rate in self._rated(load):
                after += rate * option.most(option.quality + worth[option.after])
            change = after - worth
            worth = after - after[0]
            if np.ptp(change) < CLOSE:
                return worth

    def best(self, load: float) -> list[Floats]:
        """Return the chances of each option under the optimum."""
        worth = self.optimum(load)
        chances = []
        for option in self.options:
            value = option.quality + worth[option.after]
            chances.append(_even(option, value >= option.most(value)[option.state] - 1e-7))
        return chances

    def following(self, policy: Policy) -> list[Floats]:
        """Return the chances of each option under *policy*."""
        chances = []
        for option in self.options:
            chosen = {free: set(policy(free, option.size)) for free in {self._free(state) for state in self.states}}
            free = [self._free(self.states[state]) for state in option.state]
            pairs = zip(free, option.mask.tolist(), strict=True)
            chances.append(_even(option, np.array([mask == 0 or mask in chosen[one] for one, mask in pairs])))
        return chances

    def outcome(self, chances: Sequence[Floats], load: float) -> Outcome:
        """Return what comes of *chances* in the long run, exactly."""
        likely = self._stationary(chances, load)
        admitted = quality = perfect = 0.0
        for (option, rate), chance in zip(self._rated(load), chances, strict=True):
            often = rate * likely[option.state] * chance * ((option.mask != 0) & (option.size > 1))
            admitted += often.sum()
            quality += (often * option.quality).sum()
            perfect += (often * option.is_perfect).sum()
        return Outcome(quality / admitted, perfect / admitted)

    def _stationary(self, chances: Sequence[Floats], load: float) -> Floats:
        likely: Floats = np.full(len(self.states), 1 / len(self.states))
        pace = self._pace(load)
        while True:
            after: Floats = likely * (self.workload.shape.size - self.held) / pace
            after += np.bincount(self.ended, likely[self.ending] / pace, len(likely))
            for (option, rate), chance in zip(self._rated(load), chances, strict=True):
                after += np.bincount(option.after, rate * likely[option.state] * chance, len(likely))
            if np.abs(after - likely).sum() < CLOSE:
                return after
            likely = after

    def _ended(self, worth: Floats, load: float) -> Floats:
        """Return the worth after an end, or after nothing, by their chances in a step."""
        staying = worth * (self.workload.shape.size - self.held)
        ended = np.bincount(self.ending, worth[self.ended], len(worth))
        return np.asarray((staying + ended) / self._pace(load), dtype=np.float64)

    def _pace(self, load: float) -> float:
        return sum(self.workload.rates(load).values()) + self.workload.shape.size

    def _rated(self, load: float) -> list[tuple[Options, float]]:
        rates, pace = self.workload.rates(load), self._pace(load)
        return [(option, rates[option.size] / pace) for option in self.options]

    def _reached(self) -> list[State]:
        states: dict[State, None] = {(): None}
        pending: list[State] = [()]
        while pending:
            state = pending.pop()
            for size, _ in self.workload.asked:
                for mask in self.quality.sets(self._free(state), size):
                    after = tuple(sorted((*state, mask)))
                    if after not in states:
                        states[after] = None
                        pending.append(after)
        return list(states)

    def _options(self, size: int, number: dict[State, int]) -> Options:
        rows: list[tuple[int, int, int, float, bool]] = []
        first = []
        best = self.quality.best(size).bandwidth
        for index, state in enumerate(self.states):
            first.append(len(rows))
            masks = self.quality.sets(self._free(state), size)
            for mask in masks:
                is_perfect = self.quality.parts(mask).bandwidth == best
                gain = self.quality.of(mask) / ONE if size > 1 else 0.0
                rows.append((index, number[tuple(sorted((*state, mask)))], mask, gain, is_perfect))
            if not masks:
                rows.append((index, index, 0, 0.0, False))
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        return Options(size, np.array(first), *columns)

    def _free(self, state: State) -> int:
        return self.workload.shape.full & ~sum(state)


def _without(state: State, held: int) -> State:
    return tuple(mask for mask in state if mask != held)


def _even(option: Options, is_chosen: NDArray[np.bool_]) -> Floats:
    counts = np.add.reduceat(is_chosen.astype(float), option.first)
    return np.asarray(is_chosen / counts[option.state], dtype=np.float64)
