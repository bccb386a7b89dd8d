"""How close devices of different kinds are to each other: a GPU to its NIC, CPUs and memory to both."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from extender.topology.aliases import Place
from extender.topology.assignment import assigned
from extender.topology.quality import ONE

# What two devices of different kinds have of each other, of ONE, by the closest thing that they share.
ROOT: Final = ONE
FIRST_NUMA: Final = 700_000
SOME_NUMA: Final = 500_000
NODE: Final = 100_000


class Pairing(NamedTuple):
    """Anchors with a partner each, by their indices, and the mean of how close they are, of ONE."""

    mean: int
    pairs: tuple[tuple[int, int], ...]


def affinity(one: Place, other: Place) -> int:
    """Return how close two devices are. An attribute of complexes counts where the alias ``root`` names it."""
    if not one.root.isdisjoint(other.root):
        return ROOT
    if one.first_numa is not None and one.first_numa == other.first_numa:
        return FIRST_NUMA
    return NODE if one.numa.isdisjoint(other.numa) else SOME_NUMA


def paired(anchors: Sequence[Place], partners: Sequence[Place]) -> Pairing:
    """Pair as many as there are of the fewer ones, so that they are as close as can be."""
    count = min(len(anchors), len(partners))
    if not count:
        return Pairing(0, ())
    weights = [[affinity(anchor, partner) for partner in partners] for anchor in anchors]
    pairs = assigned(weights, count)
    return Pairing(sum(weights[one][other] for one, other in pairs) // count, pairs)


def part(count: int, led: int, leads: int) -> int:
    """Return how many of *count* devices belong on a NUMA node with *led* of all *leads*: one at least."""
    return max(1, count * led // leads)


def cover(anchors: Sequence[Place], zoned: Sequence[Place]) -> int:
    """Return the share of *anchors* whose NUMA node has its part of *zoned*; an unknown one has not.

    It is no more than the share of *zoned* that is on any of these nodes: one CPU of sixteen does not cover a GPU.
    """
    return covered(Counter(place.first_numa for place in anchors), Counter(place.numa for place in zoned))


def covered(anchors: Counter[int | None], zoned: Counter[frozenset[int]]) -> int:
    """Return what `cover` does, by how many are of which NUMA nodes."""
    leads, count, there = anchors.total(), zoned.total(), Counter[int]()
    led = {zone: number for zone, number in anchors.items() if zone is not None}
    for numa, number in zoned.items():
        for zone in numa:
            there[zone] += number
    needed = {zone: part(count, number, leads) for zone, number in led.items()}
    served = sum(ONE * number * min(there[zone], needed[zone]) // needed[zone] for zone, number in led.items())
    inside = sum(number for numa, number in zoned.items() if not led.keys().isdisjoint(numa))
    return min(served // leads, ONE * inside // count) if inside else 0


def zones_of(places: Sequence[Place]) -> int:
    """Count the NUMA nodes that devices are on, one more for each of which none is known."""
    zones = [place.first_numa for place in places]
    return len(set(zones) - {None}) + zones.count(None)
