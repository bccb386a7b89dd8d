"""Why the candidates of a node are not free, counted: in vain is it to wait for those that could never be given."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Final

from extender.allocation.attempt import Attempt
from extender.allocation.board import Candidate
from extender.allocation.capacity import gives
from extender.allocation.eligibility import Met, is_here, obstacles
from extender.allocation.masks import places_of
from extender.allocation.question import Ask, At
from extender.allocation.situation import Situation
from extender.allocation.work import Toll, Work


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
    POOL_CLOSED = "PoolClosed"
    NOT_OURS = "NotOurs"


Cause = tuple[Shortage, str]
# Of such devices there is nothing to wait for; nor of those that are kept from everybody, as long as they are.
NEVER: Final[Cause] = (Shortage.NO_MATCH, "without the capacity")
# Of partitions that nobody holds.
SPENT: Final[Cause] = (Shortage.COUNTERS, "beyond what is left of their pool's counters")
CLASHING: Final[Cause] = (Shortage.COUNTERS, "of groups that do not go with what is active in their pool")
# What begins a cause, of several devices.
SEVERAL: Final = {"has": "have", "is": "are", "skips": "skip"}
KEPT: Final = frozenset((Shortage.POOL_CLOSED, Shortage.NOT_OURS))


def causes(attempt: Attempt, at: At, free: int, needed: int, toll: Toll) -> Work[tuple[Shortage, int, str]]:
    """Count why candidates are not *free*, or not to be had: the kind, how many can be had, and what keeps the others.

    The kind is the most frequent that can end by itself. Where they would not suffice if all were free, it is in vain
    to wait for that.
    """
    situation, found = attempt.situation, Counter[Cause]()
    ask, every = situation.asks[at], frozenset(situation.eligible[at].every)
    refused = yield from _refused(attempt, ask, free, toll)
    has, enough = free.bit_count() - len(refused), dict[int, bool]()
    for place, candidate in enumerate(situation.board.candidates):
        # Of what an ask takes all of, the others are none.
        is_other = bool(every) and place not in every
        is_free = free >> place & 1 and place not in refused
        if is_free or is_other or not _is_meant(situation, ask, place, candidate):
            continue
        yield from toll.paid(1)
        found[refused.get(place) or _cause(situation, ask, place, enough)] += 1
    updating = _updating(situation, ask)
    if updating:
        found[Shortage.POOL_UPDATING, "in a pool that is being updated"] = updating
    listed = sorted(found.items(), key=lambda item: (-item[1], item[0][1]))
    details = [_counted(cause, count) for (_, cause), count in listed]
    if found.total() - found[NEVER] < needed - has:
        # Of a pool that is being updated more may come.
        kind = Shortage.POOL_UPDATING if updating else Shortage.NO_MATCH
        return kind, has, ", ".join([*details, "no other matches"])
    kind = _kind([(cause[0], count) for cause, count in listed if cause != NEVER], needed - has)
    return kind, has, ", ".join(details)


def _counted(cause: str, count: int) -> str:
    """Say of how many devices there is a cause: of several they have what one has."""
    first, rest = cause.split(" ", 1)
    return f"{count} {SEVERAL.get(first, first) if count > 1 else first} {rest}"


def _refused(attempt: Attempt, ask: Ask, left: int, toll: Toll) -> Work[dict[int, Cause]]:
    """Say of which free candidates too little is left in their pool: these are held by nobody, and nobody has them."""
    found: dict[int, Cause] = {}
    for place in places_of(left):
        if not attempt.admits(ask, place, grouped=True):
            found[place] = CLASHING if attempt.admits(ask, place) else SPENT
        yield from toll.paid(1)
    return found


def _kind(listed: Sequence[tuple[Shortage, int]], missing: int) -> Shortage:
    """Return the most frequent kind of those that suffice: the first of what is not kept from everybody, or is."""
    others = [(kind, count) for kind, count in listed if kind not in KEPT]
    if others and sum(count for _, count in others) >= missing:
        return others[0][0]
    return next(kind for kind, _ in listed if kind in KEPT)


def _cause(situation: Situation, ask: Ask, place: int, enough: dict[int, bool]) -> Cause:
    """Say why a device is not given, and what lasts longest first: one in use is one that need only come free."""
    candidate = situation.board.candidates[place]
    obstacle = next(obstacles(ask, situation.board, candidate, situation.question.features), None)
    if obstacle and candidate.published.seal:
        return Shortage(candidate.published.seal.value), obstacle
    if not _is_enough(situation, ask, candidate, enough):
        return NEVER
    if obstacle:
        return Shortage.OBSTACLE, obstacle
    # Of what has become one's alone since it was shared nothing is given until all shares are given back.
    is_whole = situation.usages[place].dedicated and not ask.is_admin
    is_shared = situation.is_shareable(place) and not is_whole
    return (Shortage.CAPACITY, "without enough capacity left") if is_shared else (Shortage.IN_USE, "in use")


def _is_enough(situation: Situation, ask: Ask, candidate: Candidate, enough: dict[int, bool]) -> bool:
    """Tell whether a device ever has the capacity for *ask*: *enough* remembers that of devices that are alike."""
    features, capacities = situation.question.features, candidate.device.capacity
    if id(capacities) not in enough:
        found = gives(dict(ask.capacity), capacities, fractional=features.fractional_capacity_range)
        enough[id(capacities)] = found is True or not features.consumable_capacity
    return enough[id(capacities)]


def _updating(situation: Situation, ask: Ask) -> int:
    """Count what *ask* could have once the pools of it are complete."""
    pending = enumerate(situation.board.pending, len(situation.board.candidates))
    return sum(_is_meant(situation, ask, place, candidate) for place, candidate in pending)


def _is_meant(situation: Situation, ask: Ask, place: int, candidate: Candidate) -> bool:
    """Tell whether *ask* is about a device of this node. Whether it is here that nobody can tell of is asked later."""
    with suppress(Met):
        return situation.passes(ask, place) and is_here(candidate, situation.board.node)
    return False
