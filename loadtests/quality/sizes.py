"""Nodes of two sizes: which are broken into, and what is left for those that only the larger ones can have."""

from collections.abc import Callable, Iterator
from statistics import mean

from extender.topology.choice import Choice, Ranker
from extender.topology.policy import KEEPING
from loadtests.quality.fleet import Rule, Run
from loadtests.quality.workload import EIGHT_ALIKE, FOUR_ALIKE

LARGE = SMALL = 16
LOADS = (0.8, 0.6)
RANKERS = [Ranker(EIGHT_ALIKE.shape, EIGHT_ALIKE.mix)] * LARGE + [Ranker(FOUR_ALIKE.shape, EIGHT_ALIKE.mix)] * SMALL
# What a set is worth, by who ranks the sets of its node.
Worth = Callable[[Ranker, Choice], int]


def by(worth: Worth) -> Rule:
    """Take the node whose best set is worth most; of equal ones the tightest, then the first."""

    def rule(frees: list[int], size: int) -> tuple[int, int] | None:
        offers = [
            (worth(ranker, best), -free.bit_count(), -node, best.mask)
            for node, (ranker, free) in enumerate(zip(RANKERS, frees, strict=True))
            if (best := ranker.best(free, size))
        ]
        _, _, node, mask = max(offers, default=(0, 0, 1, 0))
        return (-node, mask) if offers else None

    return rule


def _by_share(ranker: Ranker, choice: Choice) -> int:
    """Value what is left as a share of what the node has when it is empty."""
    return choice.quality + KEEPING * choice.change // ranker.residual.value(ranker.quality.shape.full)


RULES = {
    "most allocated": by(lambda _chooser, _choice: 0),
    "by shares of each node": by(_by_share),
    "ours, jointly": by(lambda _chooser, choice: choice.value),
}


def lines(seeds: tuple[int, ...]) -> Iterator[str]:
    """Tell who is blocked where nodes have two sizes."""
    for load in LOADS:
        run = Run(EIGHT_ALIKE, LARGE, load, others=(FOUR_ALIKE.shape.full,) * SMALL)
        yield f"\n{LARGE} x {EIGHT_ALIKE.name} and {SMALL} x {FOUR_ALIKE.name}, load {load}, mean of seeds {seeds}"
        yield "  rule                    blocked: of 8  of 4    all"
        for name, rule in RULES.items():
            tallies = [run.tally(rule, RANKERS[0], seed) for seed in seeds]
            eight, four, every = (mean(one.blocking(*sizes) for one in tallies) for sizes in ((8,), (4,), ()))
            yield f"  {name:<22}         {eight:.4f}  {four:.4f}  {every:.4f}"
