"""The first layer: what drivers publish. A pair has the weight of the first level that it shares."""

from collections.abc import Callable, Sequence
from itertools import combinations

from extender.topology.aliases import Member, Place, values_of
from extender.topology.configuration import Level
from extender.topology.provenance import Source
from extender.topology.sheet import Sheet

Shares = Callable[[int, int], bool]


def lay_levels(sheet: Sheet, members: Sequence[Member], places: Sequence[Place], levels: Sequence[Level]) -> None:
    """Give each pair the weight of the first of *levels* that it shares."""
    tests = [(_test(level, members, places), level, Source("levels", _words(level), level.rule)) for level in levels]
    for pair in combinations(range(len(members)), 2):
        for shares, level, source in tests:
            if shares(*pair):
                sheet.put(pair, level.weight, source)
                break


def _test(level: Level, members: Sequence[Member], places: Sequence[Place]) -> Shares:
    if level.attribute:
        values = [values_of(member, level.attribute) for member in members]
        return lambda one, other: not values[one].isdisjoint(values[other])
    match level.key:
        case "bus":
            return lambda one, other: (bus := places[one].bus) is not None and bus == places[other].bus
        case "root":
            return lambda one, other: not places[one].root.isdisjoint(places[other].root)
        case "numa" if level.sharing == "first":
            return lambda one, other: (zone := places[one].first_numa) is not None and zone == places[other].first_numa
        case "numa":
            return lambda one, other: not places[one].numa.isdisjoint(places[other].numa)
    return lambda _one, _other: True


def _words(level: Level) -> str:
    if level.attribute:
        return f"the same {level.attribute}"
    if level.key == "numa" and level.sharing == "intersect":
        return "a NUMA node in common"
    words = {"bus": "the same PCI address", "root": "the same PCIe root", "numa": "the same NUMA node"}
    return words[level.key] if level.key else "the same node"
