"""Replay the openb traces through the product's choice; print and keep how much of all devices is given away.

Pods come one at a time and stay; one that fits nowhere is lost. x is how much was asked for so far, in percent of all
devices; what is told of an x is the mean over the arrivals at it, and of that the mean over the seeds.
`variants` compares parts of the formula instead, on the seeds that it was chosen with.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import islice
from statistics import mean, median, pstdev
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from extender.topology.fragmentation import Integers, Measure, Rows
from extender.topology.sharing import NOWHERE, Fleet, Placer, Spot
from extender.topology.typical import Census, PodAsk, Typical
from loadtests.bench.report import RESULTS
from loadtests.quality.traces import DATA, TRACES, WHOLE, Trace

SEEDS = range(42, 52)
CHOSEN_WITH = range(1, 11)
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


def best(placer: Placer, ask: PodAsk) -> Spot | None:
    """Return the best spot: of equal ones the one with the least free, then the first. None where none fits."""
    gains = placer.gains(ask)
    equal = np.flatnonzero(gains == gains.max(initial=NOWHERE))
    return placer.spot(ask, int(equal[placer.fleet.rows.free[equal].sum(axis=1).argmin()])) if len(equal) else None


def move(fleet: Fleet, ask: PodAsk, spot: Spot, sign: int = -1) -> None:
    """Give *ask* what it needs at *spot*, or take it back."""
    row, rows = spot.row, fleet.rows
    free = rows.free[row].copy()
    free[list(spot.devices)] += sign * ask.amount
    fleet.set(row, int(rows.cpu[row]) + sign * ask.cpu, int(rows.memory[row]) + sign * ask.memory, free)


class Formula(NamedTuple):
    """What makes the worth of a node, and how finely it is told apart.

    usable, lasting: as of ``Measure``. scarce: whether a typical pod counts by how little of the whole fleet could ever
    serve it. step: differences of usable amounts below it are ties.
    """

    usable: int
    lasting: int
    scarce: bool
    step: int


FGD = Formula(usable=1, lasting=0, scarce=False, step=40)
OURS = Formula(usable=Measure.usable, lasting=Measure.lasting, scarce=True, step=1)


class Tuned(Measure):
    """A measure by another formula than the product's."""

    def __init__(self, typical: Typical, whole: Rows, formula: Formula) -> None:
        self.formula = formula
        self.usable, self.lasting = formula.usable, formula.lasting
        super().__init__(typical, whole)

    def fragments(self, rows: Rows) -> Integers:
        """Return what each row has free beyond what it is worth, in the same unit: int64[rows]. By FGD, F."""
        return np.asarray(rows.free.sum(axis=1) * self.unit - self.worth(rows), dtype=np.int64)

    def gain(self, change: Integers, ask: PodAsk) -> Integers:
        return super().gain(change, ask) // self.formula.step

    def _weights(self, whole: Rows, uses: Any, models: int) -> tuple[list[int], int]:  # noqa: ANN401 - a private type
        if self.formula.scarce:
            return super()._weights(whole, uses, models)
        return [weight for _, weight in self.typical.served], self.typical.total or 1


class AsPublished(Tuned):
    """FGD with the score that it gives a node: a whole number of a hundred."""

    def gain(self, change: Integers, ask: PodAsk) -> Integers:
        shrunk = (change + ask.total * self.unit) / (self.unit * WHOLE)
        return np.asarray(100 / (1 + np.exp(-shrunk)), dtype=np.int64)


class Rule(NamedTuple):
    """measure: made for a trace; choose: a spot out of a placer; learns: whether the measure follows what is asked."""

    measure: Callable[[Trace], Measure]
    choose: Callable[[Placer, PodAsk], Spot | None] = best
    learns: bool = False


class Outcome(NamedTuple):
    """allocated: at each of MARKS; fragments: at each of SAMPLED; both in percent of all devices."""

    allocated: tuple[float, ...]
    fragments: tuple[float, ...]
    failed: Counter[str]
    arrived: int


def first(placer: Placer, ask: PodAsk) -> Spot | None:
    """Return the best spot, of equal ones the first by name."""
    return placer.spot(ask, int(placer.gains(ask).argmax()))


def frequent(counts: Counter[PodAsk], covering: int) -> Typical:
    """Take the most frequent pods until *covering* of a thousand are met."""
    wanted, met, taken = counts.total() * covering, 0, dict[PodAsk, int]()
    for count, ask in sorted(((count, ask) for ask, count in counts.items()), reverse=True):
        if met * 1000 < wanted:
            taken[ask] = count
            met += count
    return Typical.of(taken)


def fgd(of: Trace) -> AsPublished:
    """Return FGD's measure: the most frequent pods, memory aside, until 95 % are met."""
    counts: Counter[PodAsk] = Counter()
    for ask, count in of.counts.items():
        counts[ask._replace(memory=0)] += count
    return AsPublished(frequent(counts, 950), of.nodes, FGD)


def knowing(formula: Formula, covering: int = 1000) -> Callable[[Trace], Measure]:
    """Return the measure that knows the mix of the whole trace, as FGD does."""
    return lambda of: Tuned(frequent(of.counts, covering), of.nodes, formula)


RULES = {
    "FGD, ported": Rule(fgd, first),
    "ours": Rule(knowing(OURS)),
    "ours, learning": Rule(lambda of: Measure(of.unknown, of.nodes), learns=True),
}
VARIANTS = {
    "ours": Rule(knowing(OURS)),
    "first by name": Rule(knowing(OURS), first),
    "steps of 40": Rule(knowing(OURS._replace(step=40))),
    "95 % of pods": Rule(knowing(OURS, 950)),
    "not scarce": Rule(knowing(OURS._replace(scarce=False))),
    "usable alone": Rule(knowing(OURS._replace(lasting=0))),
    "lasting alone": Rule(knowing(OURS._replace(usable=0))),
    "neither": Rule(knowing(FGD._replace(step=1))),
}


@cache
def trace(name: str) -> Trace:
    return Trace(name)


class Replay:
    """One trace in one order by one rule."""

    def __init__(self, of: Trace, rule: Rule) -> None:
        self.of, self.rule = of, rule
        self.fleet = Fleet(of.nodes)
        self.placer = Placer(self.fleet, rule.measure(of))
        self.census = Census(of.unknown)
        self.yardstick = fgd(of)
        self.curve: dict[int, list[int]] = {}
        self.fragments: dict[int, float] = {}
        self.failed: Counter[str] = Counter()

    def outcome(self, seed: int) -> Outcome:
        asked = given = arrived = 0
        for ask in self.of.arrivals(seed):
            given += self.place(ask)
            asked, arrived = asked + ask.total, arrived + 1
            self.note((200 * asked + self.of.capacity) // (2 * self.of.capacity), given)
        allocated = tuple(100 * mean(self.curve[mark]) / self.of.capacity for mark in MARKS)
        return Outcome(allocated, tuple(self.fragments[mark] for mark in SAMPLED), self.failed, arrived)

    def place(self, ask: PodAsk) -> int:
        typical = self.census.meet(ask) if self.rule.learns else None
        if typical:
            self.placer.follow(Measure(typical, self.of.nodes))
        spot = self.rule.choose(self.placer, ask)
        if not spot:
            self.failed[kind(ask)] += 1
            return 0
        move(self.fleet, ask, spot)
        return ask.total

    def note(self, mark: int, given: int) -> None:
        self.curve.setdefault(mark, []).append(given)
        if mark in SAMPLED and mark not in self.fragments:
            total = float(self.yardstick.fragments(self.fleet.rows).sum())
            self.fragments[mark] = 100 * total / self.yardstick.unit / self.of.capacity


def kind(ask: PodAsk) -> str:
    if not ask.devices:
        return KINDS[0]
    return KINDS[3] if ask.devices > 1 else KINDS[1] if ask.amount < WHOLE else KINDS[2]


def outcome(name: str, rule: str, seed: int) -> Outcome:
    return Replay(trace(name), (RULES | VARIANTS)[rule]).outcome(seed)


def lines(rules: dict[str, Rule], seeds: range) -> Iterator[str]:
    yield f"openb: {', '.join(TRACES)}; seeds {seeds[0]}-{seeds[-1]}; allocated, % of all devices (deviation)"
    with ProcessPoolExecutor() as pool:
        jobs = {
            (name, rule): [pool.submit(outcome, name, rule, seed) for seed in seeds]
            for name in TRACES
            for rule in rules
        }
        for name in TRACES:
            yield f"\n{name:<16}" + "".join(f"{f'x = {mark}':>15}" for mark in MARKS)
            for rule, figures in PUBLISHED[name].items():
                yield f"  {rule + ', publ.':<14}" + _published(figures)
            for rule in rules:
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


def speed(copies: int, pods: int = 4000) -> str:
    """Measure decisions on so many copies of the default trace's nodes."""
    of = trace("default")
    rows = Rows(*(np.concatenate([column] * copies) for column in of.nodes))
    fleet = Fleet(rows)
    placer = Placer(fleet, Measure(Typical.of(of.counts), rows))
    spent = []
    for ask in islice(of.arrivals(1), pods):
        started = perf_counter()
        spot = best(placer, ask)
        spent.append(1000 * (perf_counter() - started))
        if spot:
            move(fleet, ask, spot)
    tail = sorted(spent)[len(spent) * 99 // 100]
    return f"  {len(rows.cpu):,} nodes, one decision of {pods:,}, ms: median {median(spent):.2f}, 99 % below {tail:.2f}"


def report(arguments: list[str]) -> Iterator[str]:
    if "variants" in arguments:
        yield from lines(VARIANTS, CHOSEN_WITH)
        return
    yield from lines(RULES, SEEDS)
    yield "\nSpeed (not part of what is compared)"
    yield from (speed(copies) for copies in (1, 4))


def main(arguments: list[str]) -> None:
    if not DATA.is_dir():
        print(f"skipped: the openb traces are not at {DATA}")
        return
    kept = []
    for line in report(arguments):
        print(line, flush=True)
        kept.append(line)
    name = "-".join(["openb", *arguments])
    (RESULTS / f"{name}.txt").write_text("\n".join(kept) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
