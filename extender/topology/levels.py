"""The first layer: what drivers publish. A pair has the weight of the first level that it shares."""

from collections.abc import Collection, Hashable, Iterable, Sequence

import numpy as np

from extender.topology.aliases import Member, Place, values_of
from extender.topology.configuration import Level
from extender.topology.sheet import Pairs, Sheet, Source


def lay_levels(sheet: Sheet, members: Sequence[Member], places: Sequence[Place], levels: Sequence[Level]) -> None:
    """Give each pair the weight of the first of *levels* that it shares, all at once: hundreds have ten thousands."""
    left = ~np.eye(len(places), dtype=np.bool_)
    for level in levels:
        shares = left & _shares(level, members, places)
        if shares.any():
            sheet.fill(shares, level.weight, Source("levels", _words(level), level.rule))
            left &= ~shares


def _shares(level: Level, members: Sequence[Member], places: Sequence[Place]) -> Pairs:
    """Tell which pairs share a level."""
    if level.attribute:
        return _in_common([values_of(member, level.attribute) for member in members])
    match level.key:
        case "bus":
            return _in_common(_known(place.bus) for place in places)
        case "root":
            return _in_common(place.root for place in places)
        case "numa" if level.sharing == "first":
            return _in_common(_known(place.first_numa) for place in places)
        case "numa":
            return _in_common(place.numa for place in places)
    return np.ones((len(places), len(places)), np.bool_)


def _known(value: Hashable | None) -> Collection[Hashable]:
    return () if value is None else (value,)


def _in_common(values: Iterable[Collection[Hashable]]) -> Pairs:
    """Tell which pairs have a value in common."""
    holders: dict[Hashable, list[int]] = {}
    count = 0
    for place, some in enumerate(values):
        count = place + 1
        for value in some:
            holders.setdefault(value, []).append(place)
    found = np.zeros((count, count), np.bool_)
    for places in holders.values():
        found[np.ix_(places, places)] = True
    return found


def _words(level: Level) -> str:
    if level.attribute:
        return f"the same {level.attribute}"
    if level.key == "numa" and level.sharing == "intersect":
        return "a NUMA node in common"
    words = {"bus": "the same PCI address", "root": "the same PCIe root", "numa": "the same NUMA node"}
    return words[level.key] if level.key else "the same node"
