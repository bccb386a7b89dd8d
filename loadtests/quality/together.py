"""GPUs, NICs and CPUs of a pod on nodes of eight GPUs: how close they get, and what is left of use.

A request arrives at random, holds its devices for one unit of time on average, or is lost; what is chosen goes through
the product's own search. Nodes in the same state get the same answer, which is worked out once.
"""

import heapq
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from time import perf_counter
from typing import NamedTuple

from extender.allocation.preference import Preference, Tightest
from extender.allocation.question import Question
from extender.allocation.solve import Manner, Solution, solving
from extender.allocation.work import finished
from extender.topology.partitioned import Partitioned
from extender.topology.together import Together
from loadtests.bench.report import RESULTS
from loadtests.quality.hopper import CORES, CPU, GPU, NIC, board, grounds, key, question, usages

LOADS = (0.6, 0.9)
SEEDS = (3, 4, 5)
ALL = 0xFF
# Of a hundred pods: so many with 1, 2, 4 and 8 GPUs and as many NICs, with a NIC alone, with CPUs alone.
NICS, CPUS = "a NIC", "CPUs"
ASKED: dict[int | str, int] = {1: 28, 2: 21, 4: 17, 8: 4, NICS: 10, CPUS: 20}
# Cores of one NUMA node: for each GPU, and of pods without GPUs.
BESIDE, HEAVY = 4, 32


def _question(what: int | str) -> Question:
    if isinstance(what, str):
        return question({"nic": 1} if what == NICS else {"cpu": HEAVY})
    sides = {"cpu": BESIDE * what} if what < 8 else {"cpu-0": BESIDE * 4, "cpu-1": BESIDE * 4}
    return question({"gpu": what, "nic": what}, sides)


class State(NamedTuple):
    """What is free on a node: masks, where GPU and NIC of one root have the same bit, and cores by NUMA node."""

    gpus: int = ALL
    nics: int = ALL
    cores: tuple[int, int] = (CORES, CORES)

    @property
    def used(self) -> int:
        return 16 - self.gpus.bit_count() - self.nics.bit_count() + (2 * CORES - sum(self.cores)) // 8

    @property
    def stranded(self) -> int:
        return (self.gpus & ~self.nics).bit_count()

    def without(self, other: "State") -> "State":
        cores = tuple(ours - theirs for ours, theirs in zip(self.cores, other.cores, strict=True))
        return State(self.gpus & ~other.gpus, self.nics & ~other.nics, (cores[0], cores[1]))

    def beside(self, other: "State") -> "State":
        cores = tuple(ours + theirs for ours, theirs in zip(self.cores, other.cores, strict=True))
        return State(self.gpus | other.gpus, self.nics | other.nics, (cores[0], cores[1]))


class Offer(NamedTuple):
    """What a pod is given on a node, and what that is worth."""

    value: int
    given: State


class Site:
    """Answers for one node, each worked out once."""

    def __init__(self, preference: Preference | None) -> None:
        self.board = board()
        self.manner = Manner(preference, is_lenient=True)
        self.together = preference if isinstance(preference, Together) else None
        self.questions = {what: _question(what) for what in ASKED}
        self.known: dict[tuple[State, int | str], Offer | None] = {}
        self.spent: list[float] = []

    def offer(self, state: State, what: int | str) -> Offer | None:
        if (state, what) not in self.known:
            self.known[state, what] = self._solved(state, what)
        return self.known[state, what]

    def _solved(self, state: State, what: int | str) -> Offer | None:
        held = [key(GPU, f"gpu-{one}") for one in range(8) if not state.gpus >> one & 1]
        held += [key(NIC, f"net-{one}") for one in range(8) if not state.nics >> one & 1]
        taken = usages(held, [CORES - free for free in state.cores])
        started = perf_counter()
        answer = finished(solving(self.questions[what], self.board, taken, self.manner))
        self.spent.append(perf_counter() - started)
        return self._told(answer, what) if isinstance(answer, Solution) else None

    def _told(self, answer: Solution, what: int | str) -> Offer:
        value = self.together.appraise(answer.situation, answer.picks).value if self.together else 0
        masks, cores = {GPU: 0, NIC: 0}, [0, 0]
        for pick in answer.picks:
            name = self.board.candidates[pick.place].key
            number = int(name.device.rpartition("-")[2])
            if name.driver == CPU:
                cores[number] += HEAVY if what == CPUS else BESIDE * min(int(what), 4)
            else:
                masks[name.driver] |= 1 << number
        return Offer(value, State(masks[GPU], masks[NIC], (cores[0], cores[1])))


@dataclass
class Tally:
    """What became of pods. Of GPUs: how many were given, and of these so many with what they asked for close by."""

    pods: int = 0
    lost: int = 0
    gpus: int = 0
    on_root: int = 0
    could_be_on_root: int = 0
    on_numa: int = 0
    beside_cpus: int = 0
    pairs: int = 0
    pairs_on_one_numa: int = 0
    stranded: int = 0
    needlessly: int = 0
    without: int = 0

    def count(self, states: Sequence[State], state: State, what: int | str, given: State) -> None:
        """Count what a pod was *given* where *state* was free, beside what all nodes had."""
        if what == NICS:
            self.stranded += (more := state.without(given).stranded - state.stranded)
            self.needlessly += more if any(one.nics & ~one.gpus for one in states) else 0
        if isinstance(what, str):
            return
        self.gpus += what
        self.on_root += (given.gpus & given.nics).bit_count()
        self.could_be_on_root += min(what, (state.gpus & state.nics).bit_count())
        for zone, cores in enumerate(given.cores):
            gpus, nics = ((mask >> 4 * zone & 15).bit_count() for mask in (given.gpus, given.nics))
            self.on_numa += min(gpus, nics)
            self.beside_cpus += gpus if cores else 0
        if 1 < what < 8:
            self.pairs += 1
            self.pairs_on_one_numa += not given.gpus & 15 or not given.gpus >> 4


Rule = Callable[[Sequence[State], int | str], tuple[int, Offer] | None]


def jointly(site: Site) -> Rule:
    """Take the node where devices are worth most; of equal ones the fullest, then the first."""

    def rule(states: Sequence[State], what: int | str) -> tuple[int, Offer] | None:
        offers = [(node, site.offer(state, what)) for node, state in enumerate(states)]
        found = [(node, offer) for node, offer in offers if offer]
        return max(found, key=lambda one: (one[1].value, states[one[0]].used, -one[0]), default=None)

    return rule


def fullest(site: Site) -> Rule:
    """Take the fullest node that fits."""

    def rule(states: Sequence[State], what: int | str) -> tuple[int, Offer] | None:
        for node in sorted(range(len(states)), key=lambda node: (-states[node].used, node)):
            offer = site.offer(states[node], what)
            if offer:
                return node, offer
        return None

    return rule


@dataclass(frozen=True)
class Run:
    """A simulation: the same seed asks for the same at the same times, whatever is chosen."""

    nodes: int
    load: float
    warm_up: int
    arrivals: int

    def tally(self, rule: Rule, seeds: Sequence[int] = SEEDS) -> Tally:
        tally = Tally()
        for seed in seeds:
            self._add(tally, rule, random.Random(seed))  # noqa: S311 - a simulation
        return tally

    def _add(self, tally: Tally, rule: Rule, chance: random.Random) -> None:
        gpus = sum(what * count for what, count in ASKED.items() if isinstance(what, int)) / 100
        states = [State()] * self.nodes
        ends: list[tuple[float, int, State]] = []
        now = 0.0
        for number in range(self.warm_up + self.arrivals):
            now += chance.expovariate(self.load * 8 * self.nodes / gpus)
            what = chance.choices(list(ASKED), list(ASKED.values()))[0]
            lasting = chance.expovariate(1)
            while ends and ends[0][0] <= now:
                _, node, given = heapq.heappop(ends)
                states[node] = states[node].beside(given)
            found = rule(states, what)
            if number >= self.warm_up:
                tally.pods += 1
                tally.lost += found is None
                tally.without += sum(state.stranded for state in states)
                if found:
                    tally.count(states, states[found[0]], what, found[1].given)
            if found:
                states[found[0]] = states[found[0]].without(found[1].given)
                heapq.heappush(ends, (now + lasting, found[0], found[1].given))


@dataclass
class Comparison:
    """Ways to choose, side by side; what each has worked out serves for all runs."""

    sites: dict[str, Site] = field(
        default_factory=lambda: {
            "first": Site(None),
            "tightest": Site(Tightest()),
            "ours": Site(Together(grounds(), Tightest(), Partitioned())),
        }
    )

    def lines(self, run: Run) -> Iterator[str]:
        yield f"\n{run.nodes} node{'s' * (run.nodes > 1)}, load {run.load}, {run.arrivals:,} arrivals for each seed"
        yield COLUMNS
        rules = {f"{name}, fullest node": fullest(site) for name, site in self.sites.items()}
        if run.nodes > 1:
            rules["ours, jointly"] = jointly(self.sites["ours"])
        for name, rule in rules.items():
            yield _row(name, run.tally(rule), run.nodes)


def _row(name: str, tally: Tally, nodes: int) -> str:
    shares = (
        tally.on_root / tally.could_be_on_root,
        tally.on_numa / tally.gpus,
        tally.beside_cpus / tally.gpus,
        tally.pairs_on_one_numa / tally.pairs,
    )
    root, numa, cpus, whole = (f"{share:.2%}" for share in shares)
    without, lost = f"{tally.without / tally.pods / nodes:.3f}", f"{tally.lost / tally.pods:.2%}"
    close = f"{root:>9}  {numa:>9}  {cpus:>11}  {whole:>8}"
    return f"  {name:<22}  {close}  {tally.stranded:>8}  {tally.needlessly:>10}  {without:>7}  {lost:>6}"


COLUMNS = "  rule                    same root  same NUMA  CPUs beside  one NUMA  stranded  needlessly  without    lost"
HEAD = """\
GPUs, NICs and CPUs of pods on nodes of eight H100, each with a NIC on its root, on two NUMA nodes; seeds 3 to 5
Of a hundred pods: {asked}
same root: of the GPUs that could have had theirs from what was free on the node; same NUMA, CPUs beside: of all GPUs
one NUMA: of pods with 2 or 4 GPUs; stranded: GPUs whose NIC went to a pod that wants no more, and needlessly, where on
some node another NIC was free; without: free GPUs whose NIC is taken, for whatever reason, on a node at any time
Targets: ours: same root and same NUMA >= 95 %, needlessly 0"""


def lines() -> Iterator[str]:
    yield HEAD.format(asked=", ".join(f"{count} ask for {_words(what)}" for what, count in ASKED.items()))
    comparison = Comparison()
    for load in LOADS:
        yield from comparison.lines(Run(1, load, 1000, 20_000))
    for load in LOADS:
        yield from comparison.lines(Run(32, load, 1000, 5000))
    yield "\nOne answer that is not remembered, ms (not part of what is compared)"
    for name, site in comparison.sites.items():
        spent = [1000 * one for one in site.spent]
        last = quantiles(spent, n=100)[98]
        yield f"  {name:<10} {len(spent):>6} answers: median {median(spent):.2f}, p99 {last:.2f}"


def _words(what: int | str) -> str:
    return what if isinstance(what, str) else f"{what} GPU{'s' * (what > 1)} and as many NICs"


def main() -> None:
    kept = []
    for line in lines():
        print(line, flush=True)
        kept.append(line)
    (RESULTS / "together.txt").write_text("\n".join(kept) + "\n")


if __name__ == "__main__":
    main()
