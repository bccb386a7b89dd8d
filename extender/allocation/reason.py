"""Why a node cannot satisfy a question: a word from a fixed vocabulary, and the nearest miss in numbers."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from extender.allocation.attempt import Attempt
from extender.allocation.eligibility import Met, obstacles
from extender.allocation.question import Ask, At
from extender.allocation.situation import Situation


class Shortage(StrEnum):
    """What was short. People are told these words, and may count by them: they stay as they are."""

    NO_DEVICES = "NoDevices"
    NO_MATCH = "NoMatch"
    IN_USE = "InUse"
    OBSTACLE = "Obstacle"
    CAPACITY = "Capacity"
    COUNTERS = "Counters"
    CONSTRAINT = "Constraint"
    TOGETHER = "Together"
    POOL_UPDATING = "PoolUpdating"


@dataclass(frozen=True, slots=True)
class Reason:
    """The first thing that is short, and by how much."""

    shortage: Shortage
    message: str

    def __str__(self) -> str:
        return self.message


def reason_of(situation: Situation) -> Reason:
    """Explain why *situation* has no solution."""
    return next(_reasons(situation))


def _reasons(situation: Situation) -> Iterator[Reason]:
    if not situation.board.candidates:
        yield _without_devices(situation)
    yield from _short_slots(situation)
    for claim, part in enumerate(situation.question.claims):
        for rule in range(len(part.rules)):
            yield from _disagreement(situation, claim, rule)
    yield Reason(Shortage.TOGETHER, "each request could be satisfied alone, but not all of them together")


def _without_devices(situation: Situation) -> Reason:
    updating = [pool for pool in situation.board.pools if pool.is_incomplete]
    if updating:
        return Reason(Shortage.POOL_UPDATING, f"a pool of {updating[0].key.driver} is being updated")
    return Reason(Shortage.NO_DEVICES, "no devices are published for the node")


def _short_slots(situation: Situation) -> Iterator[Reason]:
    """Yield a reason for each slot none of whose asks could be satisfied even alone; of a list, for the last one."""
    for claim, part in enumerate(situation.question.claims):
        for slot, wanted in enumerate(part.slots):
            shortages = [_shortage(situation, At(claim, slot, index)) for index in range(len(wanted.asks))]
            if all(shortages) and shortages[-1]:
                yield shortages[-1]


def _shortage(situation: Situation, at: At) -> Reason | None:
    ask, found = situation.asks[at], situation.eligible[at]
    needed = max(1, len(found.every)) if ask.takes_all else ask.count
    free = found.free.bit_count()
    if free < needed or (ask.takes_all and not found.every):
        kind, details = _causes(situation, at, ask)
        has = f"has {free}" + (f": {details}" if details else "")
        return Reason(kind, f"{_name(situation, at)} needs {needed} free {_devices(needed)}, {has}")
    given = sum(1 for place in range(free and found.free.bit_length()) if _can_give(situation, at, ask, place))
    if given < needed:
        text = f"{_name(situation, at)} needs {needed} {_devices(needed)} within what is left of their pool's counters"
        return Reason(Shortage.COUNTERS, f"{text}, has {given}")
    return None


def _can_give(situation: Situation, at: At, ask: Ask, place: int) -> bool:
    if not situation.eligible[at].free >> place & 1:
        return False
    if not situation.board.candidates[place].device.traits.consumes_counters:
        return True
    try:
        return Attempt(situation).give(at, ask, place) is not None
    except Met:
        return False


def _causes(situation: Situation, at: At, ask: Ask) -> tuple[Shortage, str]:
    """Count why candidates are not free for *ask*; the kind is that of the most frequent cause."""
    causes: Counter[tuple[Shortage, str]] = Counter()
    for place, candidate in enumerate(situation.board.candidates):
        if situation.eligible[at].free >> place & 1 or not situation.passes(ask, place):
            continue
        obstacle = next(obstacles(ask, situation.board, candidate, situation.question.features), None)
        if situation.usages[place].dedicated and not ask.is_admin:
            causes[Shortage.IN_USE, "in use"] += 1
        elif obstacle:
            causes[Shortage.OBSTACLE, obstacle] += 1
        else:
            causes[Shortage.CAPACITY, "without the capacity"] += 1
    listed = sorted(causes.items(), key=lambda item: (-item[1], item[0][1]))
    if not listed:
        return Shortage.NO_MATCH, "no other matches"
    return listed[0][0][0], ", ".join(f"{count} {cause}" for (_, cause), count in listed)


def _disagreement(situation: Situation, claim: int, rule: int) -> Iterator[Reason]:
    """Yield a reason where the asks that a rule covers could be satisfied, but not under the rule."""
    values = situation.values[claim][rule]
    covered = [at for at in situation.asks if at.claim == claim and rule in situation.covered[at] and at.ask == 0]
    needed = sum(len(situation.eligible[at].every) or situation.asks[at].count for at in covered)
    places = {place for at in covered for place in _places(situation.eligible[at].free)}
    holders: Counter[int] = Counter()
    for place in places:
        try:
            bits = values.at(situation.asks[covered[0]], place) or 0
        except Met:
            return
        holders.update(1 << bit for bit in _places(bits))
    name = values.rule.attribute
    if values.rule.is_match and max(holders.values(), default=0) < needed:
        best = max(holders.values(), default=0)
        text = f"needs {needed} free {_devices(needed)} with one value of {name}, best has {best}"
        yield Reason(Shortage.CONSTRAINT, f"{_claim(situation, claim)} {text}")
    if not values.rule.is_match and len(holders) < needed:
        text = f"needs {needed} free {_devices(needed)} with different values of {name}, has {len(holders)}"
        yield Reason(Shortage.CONSTRAINT, f"{_claim(situation, claim)} {text}")


def _places(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def _claim(situation: Situation, claim: int) -> str:
    return f"claim {situation.question.claims[claim].claim.key.name}"


def _name(situation: Situation, at: At) -> str:
    return f"{_claim(situation, at.claim)}, request {situation.asks[at].name}"


def _devices(count: int) -> str:
    return "device" if count == 1 else "devices"
