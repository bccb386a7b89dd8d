"""Print and keep how much of what is asked for in shares is lost on one node of eight devices, by several rules."""

import heapq
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np

from extender.topology.fragmentation import Measure, Rows
from extender.topology.portions import WHOLE
from extender.topology.shared import PLENTY
from extender.topology.sharing import Fleet, Placer
from extender.topology.typical import PodAsk, Typical
from loadtests.bench.report import RESULTS
from loadtests.quality.traces import unknown

DEVICES = 8
LOADS = (0.6, 0.9)
SEEDS = (3, 4, 5)
# Milli of a device, and how often, of a hundred requests, they are asked for. All are made up.
MIXES = {
    "portions": {125: 30, 250: 25, 500: 25, 1000: 20},
    "odd amounts": {130: 25, 270: 20, 330: 20, 460: 15, 1000: 20},
    "small and whole": {50: 40, 100: 30, 1000: 30},
}
# What is left of each device, and an amount, to a device.
Placing = Callable[[Sequence[int], int], int | None]


def ours(typical: Typical) -> Placing:
    """Do as ``Shared`` does: what is typical loses the least; then the tightest, then by name."""
    empty = Rows(*(np.array(column) for column in ([PLENTY], [PLENTY], [[WHOLE] * DEVICES], [0])))
    fleet = Fleet(empty)
    placer = Placer(fleet, Measure(typical, empty))

    def placing(left: Sequence[int], amount: int) -> int | None:
        fleet.set(0, PLENTY, PLENTY, np.array(left))
        spot = placer.spot(PodAsk(0, 0, amount, 1), 0)
        return spot.devices[0] if spot else None

    return placing


def first_fit(left: Sequence[int], amount: int) -> int | None:
    return next((index for index, one in enumerate(left) if one >= amount), None)


def tightest(left: Sequence[int], amount: int) -> int | None:
    fits = [index for index, one in enumerate(left) if one >= amount]
    return min(fits, key=lambda index: (left[index], index), default=None)


def at_random() -> Placing:
    chance = random.Random(1)  # noqa: S311 - a simulation

    def placing(left: Sequence[int], amount: int) -> int | None:
        fits = [index for index, one in enumerate(left) if one >= amount]
        return chance.choice(fits) if fits else None

    return placing


def placings(asked: dict[int, int]) -> dict[str, Placing]:
    known = Typical.of({PodAsk(0, 0, amount, 1): count for amount, count in asked.items()})
    return {
        "random": at_random(),
        "first fit": first_fit,
        "tightest": tightest,
        "ours": ours(unknown(1)),
        "ours, mix known": ours(known),
    }


@dataclass(frozen=True)
class Run:
    """A simulation: the same seed asks for the same amounts at the same times, whatever is chosen."""

    asked: dict[int, int]
    load: float
    warm_up: int = 1_000
    arrivals: int = 10_000

    def lost(self, placing: Placing, seed: int) -> tuple[float, float]:
        """Return which part of all that is asked for is lost, and which part of requests for whole devices."""
        chance = random.Random(seed)  # noqa: S311 - a simulation
        rate = self.load * DEVICES * WHOLE * 100 / sum(amount * count for amount, count in self.asked.items())
        left, ends, now = [WHOLE] * DEVICES, list[tuple[float, int, int]](), 0.0
        counted: dict[bool, list[int]] = {True: [], False: []}
        for number in range(self.warm_up + self.arrivals):
            now += chance.expovariate(rate)
            amount = chance.choices(list(self.asked), list(self.asked.values()))[0]
            lasting = chance.expovariate(1)
            while ends and ends[0][0] <= now:
                _, device, freed = heapq.heappop(ends)
                left[device] += freed
            found = placing(left, amount)
            if found is not None:
                left[found] -= amount
                heapq.heappush(ends, (now + lasting, found, amount))
            if number >= self.warm_up:
                counted[found is None].append(amount)
        lost, had = counted[True], counted[False]
        return sum(lost) / sum(lost + had), lost.count(WHOLE) / (lost + had).count(WHOLE)


def lines() -> Iterator[str]:
    yield f"Shares of {DEVICES} devices of {WHOLE} on one node, {Run.arrivals:,} arrivals, mean of seeds {SEEDS}. Lost"
    for name, asked in MIXES.items():
        yield f"\n{name}: {', '.join(f'{count} % ask for {amount}' for amount, count in asked.items())}"
        yield "                              amount  whole ones"
        for load in LOADS:
            for rule, placing in placings(asked).items():
                told = [Run(asked, load).lost(placing, seed) for seed in SEEDS]
                lost, wholes = (mean(column) for column in zip(*told, strict=True))
                yield f"  load {load}  {rule:<16} {lost:7.4f}     {wholes:7.4f}"


def main() -> None:
    kept = []
    for line in lines():
        print(line, flush=True)
        kept.append(line)
    (RESULTS / "shares.txt").write_text("\n".join(kept) + "\n")


if __name__ == "__main__":
    main()
