"""Which candidates have which values of what rules compare, and which candidates differ in nothing that matters."""

from functools import reduce
from operator import or_

from extender.allocation.masks import bits_of, places_of
from extender.allocation.question import At
from extender.allocation.situation import Situation
from extender.model.frozen import dataclass

# How a candidate compares with others: None for one that no ask under the rule could be given.
Compared = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Holders:
    """Candidates by value: a mask for the bit of each value, and everyone who has any. bits: by candidate."""

    by_value: dict[int, int]
    everyone: int
    bits: dict[int, int]

    def having(self, values: int) -> int:
        """Return the candidates with any of *values*."""
        return reduce(or_, (self.by_value.get(bit, 0) for bit in bits_of(values)), 0)


class AllHolders:
    """The holders of every rule of a situation of which ``can_foresee`` holds.

    Asks that take an attribute as it is published share what is known of it; one that derives it has its own.
    """

    def __init__(self, situation: Situation) -> None:
        self._shared: dict[tuple[int, int], Holders] = {}
        self._derived: dict[tuple[At, int], Holders] = {}
        wanted: dict[tuple[int, int], list[At]] = {}
        for at, rules in situation.covered.items():
            derived = {item.name for item in situation.asks[at].derivations}
            for rule in rules:
                if situation.values[at.claim][rule].rule.attribute in derived:
                    self._derived[at, rule] = _holders(situation, at, rule, situation.eligible[at].free)
                else:
                    wanted.setdefault((at.claim, rule), []).append(at)
        for key, places in wanted.items():
            free = reduce(or_, {situation.eligible[at].free for at in places})
            self._shared[key] = _holders(situation, places[0], key[1], free)

    def of(self, at: At, rule: int) -> Holders:
        return self._derived.get((at, rule)) or self._shared[at.claim, rule]

    def derives(self, at: At, rule: int) -> bool:
        return (at, rule) in self._derived

    def compared(self, place: int) -> Compared:
        """Return everything that rules see of a candidate."""
        return tuple(found.bits.get(place) for known in (self._shared, self._derived) for found in known.values())


def _holders(situation: Situation, at: At, rule: int, mask: int) -> Holders:
    values, ask = situation.values[at.claim][rule], situation.asks[at]
    by_value: dict[int, int] = {}
    bits: dict[int, int] = {}
    everyone = 0
    for place in places_of(mask):
        bits[place] = found = values.at(ask, place) or 0
        everyone |= bool(found) << place
        for bit in bits_of(found):
            by_value[bit] = by_value.get(bit, 0) | 1 << place
    return Holders(by_value, everyone, bits)


def kinds_of(situation: Situation, holders: AllHolders) -> list[int]:
    """Give each candidate the number of its kind: those of a kind differ in nothing that the question can see.

    One at which an ask errs is of its own kind: the error names it.
    """
    numbers: dict[object, int] = {}
    erring = {place for found in situation.eligible.values() for place in found.errors}
    kinds = [0] * len(situation.board.candidates)
    for index, group in enumerate(_alike(situation)):
        for place in places_of(group):
            compared = holders.compared(place) if place not in erring else place
            signature = index, compared, _drawn(situation, place), _shared(situation, place)
            kinds[place] = numbers.setdefault(signature, len(numbers))
    return kinds


def _alike(situation: Situation) -> list[int]:
    """Split the candidates into masks of those that could be given to the same asks."""
    groups = [(1 << len(situation.board.candidates)) - 1]
    for free in {found.free for found in situation.eligible.values()}:
        groups = [part for group in groups for part in (group & free, group & ~free) if part]
    return groups


def _drawn(situation: Situation, place: int) -> object:
    candidate = situation.board.candidates[place]
    partition = candidate.device.traits.consumes_counters
    return partition and (candidate.pool, partition)


def _shared(situation: Situation, place: int) -> object:
    return situation.is_shareable(place) and (
        situation.is_shared(place),
        situation.usages[place].consumed,
        situation.board.candidates[place].device.capacity,
    )


def has_opaque(situation: Situation) -> bool:
    """Tell whether rules may meet a list that is not understood. Where a value cannot be derived there is none."""
    if situation.question.features.list_type_attributes:
        return False
    return any(
        situation.values[at.claim][rule].is_opaque(situation.asks[at], place)
        for at, rules in situation.covered.items()
        for rule in rules
        for place in places_of(situation.eligible[at].free)
    )
