"""Why a node cannot satisfy a question: a word from a fixed vocabulary, and the nearest miss in numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from extender.allocation.attempt import Attempt
from extender.allocation.causes import KEPT, Shortage, causes
from extender.allocation.disagreement import can_be_common, devices, disagreement, listed
from extender.allocation.masks import mask_of, places_of
from extender.allocation.question import At, Question
from extender.allocation.situation import Situation
from extender.allocation.work import Toll, Work, finished
from extender.model.frozen import dataclass

# Candidates that are looked at for an explanation in one piece of work: half a millisecond, about.
LOOKED_AT: Final = 64
# What partitions have to be within, whether groups count, and how that is told.
WITHIN: Final = (
    (False, "within what is left of their pool's counters"),
    (True, "of groups that go with what is active in their pool"),
)


@dataclass(frozen=True, slots=True)
class Reason:
    """The first thing that is short, and by how much.

    *claim* is the place in the question of the claim that it is about, if it is about one; *name* what that is called.
    Who asks the same by other names is given the same reason with these. *missing* says how near a miss it was.
    """

    shortage: Shortage
    text: str
    claim: int | None = None
    name: str = ""
    missing: int = 0

    @property
    def message(self) -> str:
        return self.text if self.claim is None else f"claim {self.name}{self.text}"

    def __str__(self) -> str:
        return self.message

    def named(self, question: Question) -> "Reason":
        """Call the claim what *question* calls it."""
        return self if self.claim is None else replace(self, name=question.claims[self.claim].claim.key.name)


class Fault(NamedTuple):
    """What fails a node, without the device or the pool on which it was met; no text where it is one of too many.

    *is_local*: that node alone.
    """

    text: str
    is_local: bool


def reason_of(situation: Situation) -> Reason:
    """Explain why *situation* has no solution."""
    return finished(explaining(situation)).named(situation.question)


def explaining(situation: Situation) -> Work[Reason]:
    """Do the same piece by piece, without names of claims."""
    if not situation.board.candidates:
        return _without_devices(situation)
    toll = Toll(LOOKED_AT)
    short = yield from _short_slot(situation, toll)
    if short:
        return short
    for claim, part in enumerate(situation.question.claims):
        for rule in range(len(part.rules)):
            miss = yield from disagreement(situation, claim, rule, toll)
            if miss:
                return Reason(Shortage.CONSTRAINT, miss.text, claim, missing=miss.missing)
    return _not_together(situation)


def _not_together(situation: Situation) -> Reason:
    """Say which requests exclude each other: those that ask for the same, where there is too little of it, or all."""
    exact: dict[At, list[At]] = {}
    for at, *others in situation.question.slots.values():
        if not others:
            exact.setdefault(situation.question.alike[at], []).append(at)
    for alike in exact.values():
        missing = sum(map(situation.size, alike)) - situation.eligible[alike[0]].free.bit_count()
        if missing > 0 and not can_be_common(situation, alike[0]):
            return _rivals(situation, alike, missing)
    claim, is_one = next(iter(situation.asks)).claim, len({at.claim for at in situation.asks}) == 1
    if len(situation.question.slots) == 1:
        text = f", request {situation.slots(claim)[0].name} has enough free devices, but cannot be given them together"
        return Reason(Shortage.TOGETHER, text, claim)
    text = "each request has enough free devices, but not all can be given them together"
    return Reason(Shortage.TOGETHER, f": {text}" if is_one else text, claim if is_one else None)


def _rivals(situation: Situation, alike: Sequence[At], missing: int) -> Reason:
    """Say how many devices are missing for requests that ask for the same, each of which has enough."""
    needed, claim = sum(map(situation.size, alike)), alike[0].claim
    text = f"need {needed} free {devices(needed)} together, has {needed - missing}"
    if len({at.claim for at in alike}) > 1:
        return Reason(Shortage.TOGETHER, f"{len(alike)} requests of the pod's claims {text}", missing=missing)
    names = listed([situation.asks[at].name for at in alike])
    return Reason(Shortage.TOGETHER, f", requests {names} {text}", claim, missing=missing)


def _without_devices(situation: Situation) -> Reason:
    updating = next((pool for pool in situation.board.pools if pool.is_incomplete), None)
    if updating:
        there, wanted = updating.slices
        text = f"a pool of {updating.key.driver} is being updated: {there} of {wanted} slices are there"
        return Reason(Shortage.POOL_UPDATING, text)
    return Reason(Shortage.NO_DEVICES, "no devices are published for the node")


def _short_slot(situation: Situation, toll: Toll) -> Work[Reason | None]:
    """Explain the first slot none of whose asks could be satisfied even alone, of those of least prospect.

    What one slot waits for is no help to the pod as long as another waits in vain.
    """
    attempt, told = Attempt(situation), None
    for places in _distinct_slots(situation.question):
        short = yield from _nearest(attempt, places, toll)
        told = max((reason for reason in (told, short) if reason), key=_hopelessness, default=None)
        if told and told.shortage is Shortage.NO_MATCH:
            return told
    return told


def _distinct_slots(question: Question) -> Iterable[tuple[At, ...]]:
    """Return the asks of each slot; of slots that ask for the same only those of the first."""
    found: dict[object, tuple[At, ...]] = {}
    for places in question.slots.values():
        found.setdefault(tuple((question.alike[at], question.asks[at].count) for at in places), places)
    return found.values()


def _nearest(attempt: Attempt, places: Sequence[At], toll: Toll) -> Work[Reason | None]:
    """Explain a slot by that of its asks which waiting helps soonest; None where one could be satisfied alone."""
    found: list[Reason] = []
    for at in places:
        short = yield from _shortage(attempt, at, toll)
        if short is None:
            return None
        found.append(short)
    return min(found, key=lambda reason: (_hopelessness(reason), reason.missing), default=None)


def _hopelessness(reason: Reason) -> int:
    """Tell apart what can come free, what is kept from everybody, and what there will never be."""
    return 2 if reason.shortage is Shortage.NO_MATCH else int(reason.shortage in KEPT)


def _shortage(attempt: Attempt, at: At, toll: Toll) -> Work[Reason | None]:
    """Explain why an ask could not be satisfied alone; nothing is given in *attempt*, before or after."""
    situation = attempt.situation
    ask, needed, left = situation.asks[at], situation.needed(at), _left(attempt, at)
    if left.bit_count() < needed:
        yield from toll.paid(len(situation.usages) + len(situation.board.pending))
        kind, has, details = yield from causes(attempt, at, left, needed, toll)
        text = f", request {ask.name} needs {needed} free {devices(needed)}, has {has}: {details}"
        return Reason(kind, text, at.claim, missing=needed - has)
    for grouped, where in WITHIN:
        given = 0
        for place in places_of(left):
            if given >= needed:
                break
            given += attempt.admits(ask, place, grouped=grouped)
            yield from toll.paid(1)
        if given < needed:
            text = f", request {ask.name} needs {needed} {devices(needed)} {where}, has {given}"
            return Reason(Shortage.COUNTERS, text, at.claim, missing=needed - given)
    return None


def _left(attempt: Attempt, at: At) -> int:
    """Return what of the free candidates has enough left: of those that an ask takes all of that was not asked yet."""
    ask, free = attempt.situation.asks[at], attempt.situation.eligible[at].free
    if not ask.takes_all:
        return free
    return mask_of(place for place in places_of(free) if attempt.fits(at, ask, place))
