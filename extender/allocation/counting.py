"""The first solution on one node whose devices stand for themselves: counting decides, so nothing is tried in vain.

A course fixes everything that is not a device: an ask for each slot, and a value for each rule. Within one, Hall's
theorem tells whether there are enough devices, and which of them a slot must leave to the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Final, NamedTuple

from extender.allocation.attempt import Pick
from extender.allocation.masks import places_of
from extender.allocation.question import RESULTS, At, Question
from extender.allocation.situation import Situation
from extender.allocation.values import OPAQUE
from extender.allocation.work import Work

# Sets of slots, over all courses, whose devices may be counted at each step. Who counts for many nodes keeps to it too.
MOST_COUNTS: Final = 2048

# The candidates of each ask, by the value that they have of a rule.
ByValue = Mapping[int, int]


class Demand(NamedTuple):
    """So many devices out of a mask, for one ask."""

    at: At
    mask: int
    size: int


Course = tuple[Demand, ...]


def is_countable(situation: Situation) -> bool:
    """Tell whether counting is exact here: every device is given to one ask alone, and has one value of each rule."""
    if any(found.errors for found in situation.eligible.values()):
        return False
    if any(ask.takes_all or ask.is_admin for ask in situation.asks.values()):
        return False
    if not all(rule.is_match for part in situation.question.claims for rule in part.rules):
        return False
    free = 0
    for found in situation.eligible.values():
        free |= found.free
    candidates = situation.board.candidates
    return not free & situation.shareable and not any(
        candidates[place].device.traits.consumes_counters for place in places_of(free)
    )


def courses_of(situation: Situation) -> list[Course] | None:
    """Return the courses of a countable situation that have enough devices, None where they are too many to count."""
    choices = situation.question.slots.values()
    sets = 1 << min(len(choices), MOST_COUNTS)
    if prod(map(len, choices)) * sets > MOST_COUNTS:
        return None
    by_value = _by_value(situation)
    if by_value is None:
        return None
    counted = 0
    courses: list[Course] = []
    for way in product(*choices):
        if not is_allowed(situation.question, way):
            continue
        values = list(_values(situation, way, by_value))
        counted += prod(len(known) for _, known in values) * sets
        if counted > MOST_COUNTS:
            return None
        courses += filter(_is_enough, _courses(situation, way, values, by_value))
    return courses


def _by_value(situation: Situation) -> dict[tuple[At, int], ByValue] | None:
    """Sort the candidates of each ask by their values; None where one has several values, or nobody knows which."""
    sorted_: dict[tuple[At, int], ByValue] = {}
    for at, rules in situation.covered.items():
        for rule in rules:
            known: dict[int, int] = {}
            for place in places_of(situation.eligible[at].free):
                value = situation.values[at.claim][rule].at(situation.asks[at], place)
                if value is None:
                    continue
                if value & OPAQUE or value.bit_count() > 1:
                    return None
                known[value] = known.get(value, 0) | 1 << place
            sorted_[at, rule] = known
    return sorted_


def is_allowed(question: Question, way: Sequence[At]) -> bool:
    """Tell whether no claim gets more results than it may have, where each of its slots is answered by this ask."""
    sizes = [0] * len(question.claims)
    for at in way:
        sizes[at.claim] += question.asks[at].count
    return max(sizes, default=0) <= RESULTS


def _values(
    situation: Situation, way: Sequence[At], by_value: Mapping[tuple[At, int], ByValue]
) -> Iterator[tuple[tuple[int, int], list[int]]]:
    """Yield for each rule that binds anybody the values of which everybody could have enough."""
    for claim, part in enumerate(situation.question.claims):
        for rule in range(len(part.rules)):
            bound = [
                at for at in way if at.claim == claim and situation.asks[at].count and rule in situation.covered[at]
            ]
            if bound:
                first = by_value[bound[0], rule]
                yield (
                    (claim, rule),
                    [
                        value
                        for value in first
                        if all(by_value[at, rule].get(value, 0).bit_count() >= situation.asks[at].count for at in bound)
                    ],
                )


def _courses(
    situation: Situation,
    way: Sequence[At],
    values: Sequence[tuple[tuple[int, int], list[int]]],
    by_value: Mapping[tuple[At, int], ByValue],
) -> Iterator[Course]:
    rules = [rule for rule, _ in values]
    for chosen in product(*(known for _, known in values)):
        course = []
        for at in way:
            mask = situation.eligible[at].free
            for (claim, rule), value in zip(rules, chosen, strict=True):
                if claim == at.claim and rule in situation.covered[at]:
                    mask &= by_value[at, rule].get(value, 0)
            course.append(Demand(at, mask, situation.asks[at].count))
        yield tuple(course)


def _is_enough(course: Sequence[Demand]) -> bool:
    return all(union.bit_count() >= size for union, size in _unions(course))


def _unions(course: Sequence[Demand]) -> list[tuple[int, int]]:
    """Return for each set of slots the devices that are there for any of them, and how many they need."""
    unions = [(0, 0)]
    for demand in course:
        if demand.size:
            unions += [(union | demand.mask, size + demand.size) for union, size in unions]
    return unions


def first_solution(courses: Sequence[Course]) -> Work[tuple[Pick, ...] | None]:
    """Return the first solution out of *courses*, each of which has one: the least ask, then the least device."""
    if not courses:
        return None
    live, picks, used = list(courses), [], 0
    for slot in range(len(live[0])):
        ask = min(course[slot].at.ask for course in live)
        live = [course for course in live if course[slot].at.ask == ask]
        left = [course[slot].mask for course in live]
        for _ in range(live[0][slot].size):
            left = [
                mask & ~used & ~_reserved(course[slot + 1 :], used) for mask, course in zip(left, live, strict=True)
            ]
            least = min((mask & -mask for mask in left), default=0)
            live = [course for mask, course in zip(left, live, strict=True) if mask & least]
            left = [mask & -least & ~least for mask in left if mask & least]
            picks.append(Pick(live[0][slot].at, least.bit_length() - 1))
            used |= least
            yield
    return tuple(picks)


def _reserved(later: Sequence[Demand], used: int) -> int:
    """Return the devices that some of the *later* slots need all of."""
    reserved = 0
    for union, size in _unions(later):
        if size == (union & ~used).bit_count():
            reserved |= union
    return reserved
