"""Many nodes of one shape, simulated: node and devices chosen together, or by a rule for each."""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from extender.topology.choice import Ranker
from extender.topology.quality import ONE
from loadtests.quality.policies import Policy
from loadtests.quality.workload import Workload

# What is free on each node, and a size, to a node and a set.
Rule = Callable[[list[int], int], tuple[int, int] | None]


@dataclass
class Tally:
    """What became of requests."""

    asked: dict[int, int] = field(default_factory=dict)
    blocked: dict[int, int] = field(default_factory=dict)
    qualities: list[int] = field(default_factory=list)
    perfect: int = 0

    @property
    def quality(self) -> float:
        return sum(self.qualities) / len(self.qualities) / ONE

    @property
    def perfect_share(self) -> float:
        return self.perfect / len(self.qualities)

    def blocking(self, *sizes: int) -> float:
        counted = sizes or tuple(self.asked)
        return sum(self.blocked.get(size, 0) for size in counted) / sum(self.asked[size] for size in counted)


def jointly(ranker: Ranker) -> Rule:
    """Take the node whose best set is worth most; of equal ones the tightest, then the first."""

    def rule(frees: list[int], size: int) -> tuple[int, int] | None:
        found = {free: ranker.best(free, size) for free in set(frees)}
        offers = {free: (best.value, -free.bit_count(), best.mask) for free, best in found.items() if best}
        if not offers:
            return None
        top = max(offers.values())[:2]
        node = next(node for node, free in enumerate(frees) if free in offers and offers[free][:2] == top)
        return node, offers[frees[node]][2]

    return rule


def by_count(policy: Policy, sign: int) -> Rule:
    """Take the node with the fewest free devices that suffice (*sign* 1), or the most (-1); then a set on it."""
    chance = random.Random(1)  # noqa: S311 - a simulation

    def rule(frees: list[int], size: int) -> tuple[int, int] | None:
        fitting = [node for node, free in enumerate(frees) if free.bit_count() >= size]
        if not fitting:
            return None
        node = min(fitting, key=lambda node: sign * frees[node].bit_count())
        masks = policy(frees[node], size)
        return node, masks[0] if len(masks) == 1 else chance.choice(masks)

    return rule


@dataclass(frozen=True)
class Run:
    """A simulation: the same seed asks for the same devices at the same times, whatever is chosen.

    others: what nodes of other sizes have, as masks.
    """

    workload: Workload
    nodes: int
    load: float
    warm_up: int = 10_000
    arrivals: int = 60_000
    others: tuple[int, ...] = ()

    def tally(self, rule: Rule, ranker: Ranker, seed: int) -> Tally:
        chance = random.Random(seed)  # noqa: S311 - a simulation
        shape = self.workload.shape
        rates = self.workload.rates(self.load, self.nodes + sum(map(int.bit_count, self.others)) / shape.size)
        frees = [shape.full] * self.nodes + list(self.others)
        ends: list[tuple[float, int, int]] = []
        tally, now = Tally(), 0.0
        for number in range(self.warm_up + self.arrivals):
            now += chance.expovariate(sum(rates.values()))
            size = chance.choices(list(rates), list(rates.values()))[0]
            lasting = chance.expovariate(1)
            while ends and ends[0][0] <= now:
                _, node, mask = heapq.heappop(ends)
                frees[node] |= mask
            found = rule(frees, size)
            if found:
                frees[found[0]] &= ~found[1]
                heapq.heappush(ends, (now + lasting, *found))
            if number >= self.warm_up:
                counted(tally, ranker, size, found[1] if found else 0)
        return tally


def counted(tally: Tally, ranker: Ranker, size: int, mask: int) -> None:
    """Count a request for *size* that was given the devices of *mask*, or none."""
    tally.asked[size] = tally.asked.get(size, 0) + 1
    if not mask:
        tally.blocked[size] = tally.blocked.get(size, 0) + 1
    elif size > 1:
        tally.qualities.append(ranker.quality.of(mask))
        parts, best = ranker.quality.parts(mask), ranker.quality.best(size)
        tally.perfect += parts.bandwidth == best.bandwidth
