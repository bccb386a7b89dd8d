"""Print and keep how good the devices are: on one node beside the exact optimum, on a fleet beside other rules."""

from collections.abc import Iterator
from statistics import mean
from time import perf_counter

from extender.topology.choice import Ranker
from loadtests.bench.report import RESULTS, median_ms
from loadtests.quality import sizes
from loadtests.quality.fleet import Rule, Run, by_count, jointly
from loadtests.quality.optimum import Node
from loadtests.quality.policies import policies
from loadtests.quality.workload import DGX_1V, EIGHT_PCIE, FOUR_PCIE, Workload

LOADS = (0.6, 0.9)
SEEDS = (3, 4, 5)
NODES = 32


def one_node(workload: Workload) -> Iterator[str]:
    node = Node(workload)
    yield f"\nOne node, {workload.name}, {len(node.states):,} states, exact. Mean q (share perfect) of the optimum's q"
    for load in LOADS:
        best = node.outcome(node.best(load), load)
        for name, policy in policies(workload).items():
            got = node.outcome(node.following(policy), load)
            share = got.quality / best.quality
            target = "  target >= 99 %" if name == "ours" else ""
            yield f"  load {load}  {name:<12} {got.quality:.4f} ({got.perfect:.4f})  {share:8.2%}{target}"
        yield f"  load {load}  {'optimum':<12} {best.quality:.4f} ({best.perfect:.4f})"


def rules(ranker: Ranker, workload: Workload) -> dict[str, Rule]:
    named = policies(workload)
    every = {f"{name}, most allocated": by_count(policy, 1) for name, policy in named.items()}
    least = {f"{name}, least allocated": by_count(named[name], -1) for name in ("first fit", "best-effort")}
    return every | least | {"ours, jointly": jointly(ranker)}


def fleet(load: float) -> Iterator[str]:
    ranker = Ranker(DGX_1V.shape, DGX_1V.mix)
    run = Run(DGX_1V, NODES, load)
    yield f"\n{NODES} x {DGX_1V.name}, load {load}, {run.arrivals:,} arrivals, mean of seeds {SEEDS}"
    yield "  rule                          mean q  perfect  blocked: of 8    all"
    eights = {}
    for name, rule in rules(ranker, DGX_1V).items():
        tallies = [run.tally(rule, ranker, seed) for seed in SEEDS]
        eights[name] = [one.blocking(8) for one in tallies]
        quality, perfect = mean(one.quality for one in tallies), mean(one.perfect_share for one in tallies)
        eight, every = mean(eights[name]), mean(one.blocking() for one in tallies)
        yield f"  {name:<28}  {quality:.4f}   {perfect:.4f}         {eight:.4f}  {every:.4f}"
    pairs = zip(eights["ours, jointly"], eights["ours, most allocated"], strict=True)
    worst = max(ours - most for ours, most in pairs)
    yield f"  ours, jointly, blocks of 8 beyond most allocated, in the worst of the seeds: {worst:+.4f}"
    yield "  targets: ours, jointly: mean q >= .99, blocked of 8 within .02 of most allocated"


def speed() -> Iterator[str]:
    yield "\nSpeed (medians; not part of what is compared)"
    for workload in (DGX_1V, EIGHT_PCIE):
        spent = median_ms(lambda: _all(Ranker(workload.shape, workload.mix), workload), 5)  # noqa: B023 - used here
        yield f"  {workload.name}: every table, ms: {spent:.1f}"
    ranker = Ranker(DGX_1V.shape, DGX_1V.mix)
    _all(ranker, DGX_1V)
    started = perf_counter()
    for free in range(256):
        for size, _ in DGX_1V.asked:
            ranker.best(free, size)
    yield f"  one decision afterwards, us: {1e6 * (perf_counter() - started) / (256 * len(DGX_1V.asked)):.2f}"


def _all(ranker: Ranker, workload: Workload) -> None:
    for free in range(1 << workload.shape.size):
        for size, _ in workload.asked:
            ranker.best(free, size)


def lines() -> Iterator[str]:
    yield "How good the devices are that pods get; q is the share of the best set of an empty node"
    for workload in (DGX_1V, EIGHT_PCIE, FOUR_PCIE):
        yield from one_node(workload)
    for load in (0.9, 0.7):
        yield from fleet(load)
    yield from sizes.lines(SEEDS)
    yield from speed()


def main() -> None:
    kept = []
    for line in lines():
        print(line, flush=True)
        kept.append(line)
    (RESULTS / "quality.txt").write_text("\n".join(kept) + "\n")


if __name__ == "__main__":
    main()
