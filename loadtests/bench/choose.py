"""What a decision costs when nodes are ranked by their links: fleets of DGX-1V, three fifths of the GPUs taken."""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from random import Random
from statistics import median, quantiles
from time import perf_counter

from extender.model.change import Changed, Gone
from extender.model.claim import ResourceClaim
from extender.scheduling.choosing import Chooser
from extender.scheduling.planner import Offer, Planner
from extender.scheduling.taste import Taste
from extender.state.belief import Belief
from extender.topology.document import Document
from loadtests.bench.report import Report
from tests.scheduling.cast import pod
from tests.scheduling.machines import NUMA, fleet, wanted

ROUNDS = 400
# Pods that run at once; for each new one the oldest ends.
RUNNING = 20
NUMBERS = count()


def belief(nodes: int) -> Belief:
    """Return DGX-1V of which some GPUs are taken by chance, the same at every run."""
    random = Random(nodes)  # noqa: S311 - a benchmark
    names = [f"n{number:05d}" for number in range(nodes)]
    taken = {name: tuple(index for index in range(8) if random.random() < 0.6) for name in names}
    return fleet(dict.fromkeys(names, "dgx-1v"), taken)


def decided(known: Belief, planner: Planner, devices: int, match: str) -> Iterator[float]:
    """Plan pods one after the other, each bound before the next; yield what planning took, in ms."""
    bound = deque[ResourceClaim]()
    while True:
        claim = wanted(f"c{next(NUMBERS)}", devices, match)
        known.apply(Changed(claim))
        subject = pod(f"p{next(NUMBERS)}", claim.key.name)
        started = perf_counter()
        plan = planner.plan(subject, None, 0.0)
        yield 1000 * (perf_counter() - started)
        if not isinstance(plan, Offer):
            raise TypeError(plan)
        ((_, allocation),) = plan.placement.claims
        known.apply(Changed(replace(claim, allocation=allocation, resource_version="2")))
        bound.append(claim)
        if len(bound) > RUNNING:
            known.apply(Gone(ResourceClaim, bound.popleft().key))


def main() -> None:
    report = Report("choose")
    for nodes in (1000, 5000):
        known = belief(nodes)
        for what, devices, match in (("1 GPU", 1, ""), ("2 GPUs", 2, ""), ("4 of one NUMA node", 4, NUMA)):
            planner = Planner(known, Chooser(known, lambda: "share", taste=Taste(Document(), known.learning.mix_for)))
            rounds = decided(known, planner, devices, match)
            first = next(rounds)
            spent = sorted(next(rounds) for _ in range(ROUNDS))
            tail = quantiles(spent, n=100)[98]
            beside = f"p99 {tail:.2f}, the first {first:.1f}"
            target = "1, p99 5" if nodes == 1000 else ""
            report.add(f"{what}, {nodes} nodes: warm, ms", f"{median(spent):.2f}", target, beside)
    report.keep()


if __name__ == "__main__":
    main()
