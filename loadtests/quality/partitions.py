"""Print and keep how often partitions are blocked: on one A100 beside the exact optimum, on eight by other rules."""

import heapq
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

from extender.topology.partitions import Remains, share_of
from loadtests.bench.report import RESULTS
from loadtests.quality.chip import A100, COMPUTE, PROFILES, Asked, Chip, Rule, State, beside, fitting, rest_of, without

MIXES = (
    Asked("even", dict.fromkeys(PROFILES, 20)),
    Asked("mostly small", {"1g.5gb": 50, "2g.10gb": 25, "3g.20gb": 15, "4g.20gb": 5, "7g.40gb": 5}),
    Asked("no whole ones", {"1g.5gb": 70, "3g.20gb": 20, "4g.20gb": 10}),
)
LOADS = (0.5, 0.8)
SEEDS = (3, 4, 5)
CHIPS = 8
# What is held on each GPU, and a profile, to a GPU and a cut.
Placing = Callable[[Sequence[State], str], tuple[int, int] | None]


def ours() -> Placing:
    """Lose the least of what is left; of equal ones take the fullest GPU, then what is published first."""
    remains = Remains(A100)
    known: dict[tuple[State, str], tuple[int, int, int] | None] = {}

    def offer(state: State, profile: str) -> tuple[int, int, int] | None:
        rest = rest_of(state)
        among = tuple(int(cut.profile == profile) for cut in A100.cuts)
        options = remains.options(rest, among, 1)[1]
        return min(((-change, share_of(rest.left, A100.whole), cut) for change, (cut,) in options), default=None)

    def placing(states: Sequence[State], profile: str) -> tuple[int, int] | None:
        offers = []
        for chip, state in enumerate(states):
            if (state, profile) not in known:
                known[state, profile] = offer(state, profile)
            if found := known[state, profile]:
                offers.append((*found[:2], chip, found[2]))
        return min(offers)[2:] if offers else None

    return placing


def first_fit(states: Sequence[State], profile: str) -> tuple[int, int] | None:
    """Do as kube-scheduler: take the first device that fits."""
    fits = ((chip, cut) for chip, state in enumerate(states) for cut in fitting(state, profile))
    return next(fits, None)


def fullest_first(states: Sequence[State], profile: str) -> tuple[int, int] | None:
    """Take the first device on the GPU with the least left."""
    fits = [(share_of(rest_of(state).left, A100.whole), chip) for chip, state in enumerate(states)]
    return next(((chip, cut) for _, chip in sorted(fits) for cut in fitting(states[chip], profile)), None)


def at_random() -> Placing:
    chance = random.Random(1)  # noqa: S311 - a simulation

    def placing(states: Sequence[State], profile: str) -> tuple[int, int] | None:
        fits = [(chip, cut) for chip, state in enumerate(states) for cut in fitting(state, profile)]
        return chance.choice(fits) if fits else None

    return placing


def placings() -> dict[str, Placing]:
    return {"random": at_random(), "first fit": first_fit, "fullest first": fullest_first, "ours": ours()}


def on_one(placing: Placing) -> Rule:
    """Make a rule for one GPU."""

    def rule(state: State, profile: str) -> Sequence[int]:
        found = placing([state], profile)
        return [found[1]] if found else []

    return rule


@dataclass(frozen=True)
class Run:
    """A simulation: the same seed asks for the same profiles at the same times, whatever is chosen."""

    asked: Asked
    load: float
    chips: int = CHIPS
    warm_up: int = 2_000
    arrivals: int = 30_000

    def blocking(self, placing: Placing, seed: int) -> dict[str, float]:
        """Return how often each profile is blocked."""
        chance, rates = random.Random(seed), self.asked.rates(self.load, self.chips)  # noqa: S311 - a simulation
        states: list[State] = [()] * self.chips
        ends: list[tuple[float, int, int]] = []
        counts, blocked, now = dict.fromkeys(rates, 0), dict.fromkeys(rates, 0), 0.0
        for number in range(self.warm_up + self.arrivals):
            now += chance.expovariate(sum(rates.values()))
            profile = chance.choices(list(rates), list(rates.values()))[0]
            lasting = chance.expovariate(1)
            while ends and ends[0][0] <= now:
                _, chip, cut = heapq.heappop(ends)
                states[chip] = without(states[chip], cut)
            found = placing(states, profile)
            if found:
                states[found[0]] = beside(states[found[0]], found[1])
                heapq.heappush(ends, (now + lasting, *found))
            if number >= self.warm_up:
                counts[profile] += 1
                blocked[profile] += not found
        return {profile: blocked[profile] / counts[profile] for profile in rates}


def row(name: str, asked: Asked, load: float, blocked: dict[str, float]) -> str:
    every = sum(count * blocked[profile] for profile, count in asked.counts.items()) / sum(asked.counts.values())
    told = "  ".join(f"{blocked[profile]:7.4f}" if profile in blocked else "      -" for profile in PROFILES)
    return f"  load {load}  {name:<16} {asked.lost(blocked):7.4f}  {every:7.4f}  {told}"


HEAD = f"  {'':<25}  compute      all  {'  '.join(f'{profile:>7}' for profile in PROFILES)}"


def one(asked: Asked) -> Iterator[str]:
    chip = Chip()
    yield f"\nOne A100, {asked.name}, {len(chip.number)} states, exact. Lost, as a share of what is asked for"
    yield HEAD
    for load in LOADS:
        rules = {name: on_one(placing) for name, placing in placings().items()} | {"random": fitting}
        # On one GPU the fullest is the first.
        del rules["fullest first"]
        for name, rule in (rules | {"optimum": chip.best(asked, load)}).items():
            yield row(name, asked, load, chip.blocking(rule, asked, load))


def eight(asked: Asked) -> Iterator[str]:
    arrivals = Run.arrivals
    yield f"\n{CHIPS} A100s on one node, {asked.name}, {arrivals:,} arrivals, mean of seeds {SEEDS}. Lost"
    yield HEAD
    for load in LOADS:
        run = Run(asked, load)
        for name, placing in placings().items():
            told = [run.blocking(placing, seed) for seed in SEEDS]
            yield row(name, asked, load, {profile: mean(each[profile] for each in told) for profile in asked.counts})


def lines() -> Iterator[str]:
    yield "How often partitions are blocked. Compute counts what is blocked by its processors"
    yield f"({', '.join(f'{profile}: {count}' for profile, count in COMPUTE.items())}); the optimum is that of compute"
    for asked in MIXES:
        yield from one(asked)
    for asked in MIXES:
        yield from eight(asked)


def main() -> None:
    kept = []
    for line in lines():
        print(line, flush=True)
        kept.append(line)
    (RESULTS / "partitions.txt").write_text("\n".join(kept) + "\n")


if __name__ == "__main__":
    main()
