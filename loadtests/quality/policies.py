"""Ways to choose a set on one node: ours, and those it is compared with. Several sets stand for an even chance."""

from collections.abc import Callable, Sequence
from functools import cache

from extender.topology.choice import Ranker
from extender.topology.quality import Quality
from loadtests.quality.workload import Workload

Policy = Callable[[int, int], Sequence[int]]


def policies(workload: Workload) -> dict[str, Policy]:
    ranker = Ranker(workload.shape, workload.mix)
    quality = ranker.quality

    def ours(free: int, size: int) -> Sequence[int]:
        best = ranker.best(free, size)
        return [best.mask] if best else []

    return {
        "random": quality.sets,
        "first fit": lambda free, size: quality.sets(free, size)[:1],
        "greedy": lambda free, size: sorted(quality.sets(free, size), key=quality.of, reverse=True)[:1],
        "best-effort": best_effort(quality),
        "ours": ours,
    }


def best_effort(quality: Quality) -> Policy:
    """Do as go-gpuallocator: split all that is free into sets with the highest total of pairs, and take its best set.

    Pairs count by their bandwidth, which it only estimates; devices that are left over from the sets do not count.
    """

    def total(chosen: int) -> int:
        return quality.parts(chosen).aggregate

    @cache
    def split(free: int, size: int) -> int:
        if free.bit_count() < size:
            return 0
        lowest = free & -free
        taken = [total(one) + split(free & ~one, size) for one in quality.sets(free, size) if one & lowest]
        return max(split(free & ~lowest, size), *taken)

    def choose(free: int, size: int) -> Sequence[int]:
        fitting = quality.sets(free, size)
        part_of_best = [one for one in fitting if total(one) + split(free & ~one, size) == split(free, size)]
        return sorted(part_of_best, key=total, reverse=True)[:1] if size > 1 else fitting[:1]

    return choose
