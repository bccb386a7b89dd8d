"""Replay the openb traces through the product's choice; print and keep how much of all devices is given away.

Pods come one at a time and stay; one that fits nowhere is lost. x is how much was asked for so far, in percent of all
devices; what is told of an x is the mean over the arrivals at it, and of that the mean over the seeds.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from statistics import mean, pstdev
from time import perf_counter
from typing import NamedTuple

import numpy as np

from extender.topology.demand import Ask, Typical
from extender.topology.fragmentation import FGD, Integers, Measure
from extender.topology.sharing import Fleet, Placer, Spot
from loadtests.bench.report import RESULTS
from loadtests.quality.traces import DATA, TRACES, WHOLE, Trace

SEEDS = range(42, 52)
MARKS = (80, 90, 95, 100, 130)
SAMPLED = (80, 100)
KINDS = ("CPU only", "share", "one", "several")
# Allocation at x in percent; what is published of the default trace at all x, of the others at 100 alone.
PUBLISHED: dict[str, dict[str, tuple[float, ...]]] = {
    "default": {
        "Random": (78.66, 85.02, 85.72, 86.30, 87.47),
        "BestFit": (80.02, 89.99, 92.82, 92.86, 93.08),
        "FGD": (80.02, 89.98, 94.90, 95.23, 95.39),
    },
    "gpushare100": {"Random": (78.9,), "BestFit": (84.6,), "FGD": (86.64,)},
    "gpuspec33": {"Random": (83.9,), "BestFit": (80.4,), "FGD": (87.84,)},
    "multigpu50": {"Random": (81.3,), "BestFit": (95.6,), "FGD": (97.09,)},
}
FRAGMENTS = (
    "fragments, % of all devices, published at x = 80 / 100: Random 15.9 / 13.5, BestFit 8.3 / 7.1, FGD 6.0 / 4.7"
)


class AsPublished(Measure):
    """FGD with the score that it gives a node: a whole number of a hundred."""

    def gain(self, change: Integers, ask: Ask) -> Integers:
        shrunk = (change + ask.total * self.unit) / (self.unit * WHOLE)
        return np.asarray(100 / (1 + np.exp(-shrunk)), dtype=np.int64)


class Outcome(NamedTuple):
    """allocated: at each of MARKS; fragments: at each of SAMPLED, both of all devices in percent."""

    allocated: tuple[float, ...]
    fragments: tuple[float, ...]
    failed: Counter[str]
    arrived: int
    seconds: float


@cache
def trace(name: str) -> Trace:
    return Trace(name)


class Rule(NamedTuple):
    """measure: made for a trace; choose: a spot out of a placer."""

    measure: Callable[[Trace], Measure]
    choose: Callable[[Placer, Ask], Spot | None]


def first(placer: Placer, ask: Ask) -> Spot | None:
    """Return the best spot, of equal ones the first by name."""
    return placer.spot(ask, int(placer.gains(ask).argmax()))


def fgd(of: Trace) -> Measure:
    """Return FGD's measure: the most frequent pods, memory aside, until 95 % are met."""
    counts: Counter[Ask] = Counter()
    for ask, count in of.counts.items():
        counts[ask._replace(memory=0)] += count
    return AsPublished(Typical.of(counts, covering=950), of.nodes, FGD)


def ours(of: Trace) -> Measure:
    return Measure(Typical.of(of.counts), of.nodes)


RULES = {"FGD, ported": Rule(fgd, first), "ours": Rule(ours, Placer.best)}


def run(name: str, rule: str, seed: int) -> Outcome:
    of = trace(name)
    fleet, fragments, started = Fleet(of.nodes), fgd(of), perf_counter()
    placer = Placer(fleet, RULES[rule].measure(of))
    asked = given = arrived = 0
    curve: dict[int, list[int]] = {}
    failed: Counter[str] = Counter()
    sampled: dict[int, float] = {}
    for ask in of.arrivals(seed):
        spot = RULES[rule].choose(placer, ask)
        if spot:
            fleet.take(ask, spot)
        else:
            failed[kind(ask)] += 1
        asked, given, arrived = asked + ask.total, given + ask.total * bool(spot), arrived + 1
        mark = (200 * asked + of.capacity) // (2 * of.capacity)
        curve.setdefault(mark, []).append(given)
        if mark in SAMPLED and mark not in sampled:
            sampled[mark] = 100 * float(fragments.fragments(fleet.rows).sum()) / fragments.unit / of.capacity
    allocated = tuple(100 * mean(curve[mark]) / of.capacity for mark in MARKS)
    return Outcome(allocated, tuple(sampled[mark] for mark in SAMPLED), failed, arrived, perf_counter() - started)


def kind(ask: Ask) -> str:
    if not ask.devices:
        return KINDS[0]
    return KINDS[3] if ask.devices > 1 else KINDS[1] if ask.amount < WHOLE else KINDS[2]


def lines() -> Iterator[str]:
    yield f"openb: {', '.join(TRACES)}; seeds {SEEDS[0]}-{SEEDS[-1]}; allocated, % of all devices (deviation)"
    with ProcessPoolExecutor() as pool:
        jobs = {
            (name, rule): [pool.submit(run, name, rule, seed) for seed in SEEDS] for name in TRACES for rule in RULES
        }
        for name in TRACES:
            yield f"\n{name:<16}" + "".join(f"{f'x = {mark}':>15}" for mark in MARKS)
            for rule, figures in PUBLISHED[name].items():
                yield f"  {rule + ', publ.':<14}" + _published(figures)
            for rule in RULES:
                yield from told(rule, [job.result() for job in jobs[name, rule]])
    yield f"\n{FRAGMENTS} (default)"


def _published(figures: tuple[float, ...]) -> str:
    placed = figures if len(figures) > 1 else (None, None, None, *figures, None)
    return "".join(f"{'' if figure is None else f'{figure:.2f}':>8}{'':7}" for figure in placed).rstrip()


def told(rule: str, outcomes: list[Outcome]) -> Iterator[str]:
    columns = list(zip(*(outcome.allocated for outcome in outcomes), strict=True))
    yield f"  {rule:<14}" + "".join(f"{mean(column):8.2f} ({pstdev(column):.2f})" for column in columns)
    at = " / ".join(f"{mean(column):.1f}" for column in zip(*(one.fragments for one in outcomes), strict=True))
    failed = ", ".join(f"{mean(one.failed[kind] for one in outcomes):.0f} {kind}" for kind in KINDS)
    yield f"    fragments at 80 / 100: {at}; failed of {mean(one.arrived for one in outcomes):.0f}: {failed}"
    spent = mean(1000 * one.seconds / one.arrived for one in outcomes)
    yield f"    ms for a pod: {spent:.2f}"


def main() -> None:
    if not DATA.is_dir():
        print(f"skipped: the openb traces are not at {DATA}")
        return
    kept = []
    for line in lines():
        print(line, flush=True)
        kept.append(line)
    (RESULTS / "openb.txt").write_text("\n".join(kept) + "\n")


if __name__ == "__main__":
    main()
