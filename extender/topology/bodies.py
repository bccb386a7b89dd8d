"""Devices of a machine that could be given in parts, and what draws from the same counters beside them."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from extender.allocation.counters import drawn_by
from extender.allocation.masks import mask_of
from extender.topology.machine import Group


class Bodies(NamedTuple):
    """*wholes*: the masks of each device that is whole while nobody has anything of the others, and of these.

    *parts*: the mask of whatever else draws from counters; *shared*: of what many can have.
    """

    wholes: tuple[tuple[int, int], ...]
    parts: int
    shared: int

    def cut(self, free: int) -> int:
        """Return the mask of those of which somebody has a part."""
        return sum(whole for whole, others in self.wholes if others & ~free)


def bodies_of(machine: Iterable[Group]) -> Bodies:
    """Take for whole what draws at least as much of each counter as anything else of its counter set."""
    sets, beside, parts = defaultdict[object, dict[int, dict[str, int]]](dict), dict[int, int](), 0
    shared = 0
    for group in machine:
        for index, member in zip(group.indices, group.members, strict=True):
            shared |= member.device.traits.allow_multiple_allocations << index
            for (name, counter), amount in drawn_by(member.device.traits).items():
                sets[member.key.pool_key, name].setdefault(index, {})[counter] = amount
    for drawn in sets.values():
        most = Counter[str]()
        for amounts in drawn.values():
            # Of each counter the more of both.
            most |= Counter(amounts)
        for index, amounts in drawn.items():
            beside[index] = beside.get(index, 0) | mask_of(drawn) & ~(1 << index)
            parts |= any(amounts.get(counter, 0) < amount for counter, amount in most.items()) << index
    wholes = ((1 << index, others) for index, others in beside.items() if others and not (parts | shared) >> index & 1)
    return Bodies(tuple(wholes), parts, shared)
