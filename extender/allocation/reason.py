"""Why a node cannot satisfy a question: a word from a fixed vocabulary, and the nearest miss in numbers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from extender.allocation.attempt import Attempt
from extender.allocation.causes import KEPT, Shortage, causes
from extender.allocation.eligibility import Met
from extender.allocation.holders import bits_of, places_of
from extender.allocation.question import Ask, At, Question, bound_slots
from extender.allocation.situation import Situation
from extender.allocation.values import OPAQUE
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
    return cause_of(situation).named(situation.question)


def cause_of(situation: Situation) -> Reason:
    """Explain the same without names of claims."""
    return finished(explaining(situation))


def explaining(situation: Situation) -> Work[Reason]:
    """Do the same piece by piece."""
    if not situation.board.candidates:
        return _without_devices(situation)
    toll = Toll(LOOKED_AT)
    short = yield from _short_slot(situation, toll)
    if short:
        return short
    for claim, part in enumerate(situation.question.claims):
        for rule in range(len(part.rules)):
            disagreement = yield from _disagreement(situation, claim, rule, toll)
            if disagreement:
                return disagreement
    return _not_together(situation)


def _not_together(situation: Situation) -> Reason:
    slots = {(at.claim, at.slot): ask.name for at, ask in situation.asks.items()}
    if len(slots) == 1:
        (claim, _), name = next(iter(slots.items()))
        text = f", request {name} has enough free devices, but cannot be given them together"
        return Reason(Shortage.TOGETHER, text, claim)
    return Reason(Shortage.TOGETHER, "each request has enough free devices, but not all can be given them together")


def _without_devices(situation: Situation) -> Reason:
    updating = [pool for pool in situation.board.pools if pool.is_incomplete]
    if updating:
        return Reason(Shortage.POOL_UPDATING, f"a pool of {updating[0].key.driver} is being updated")
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
    for claim, part in enumerate(question.claims):
        for slot, wanted in enumerate(part.slots):
            places = tuple(At(claim, slot, index) for index in range(len(wanted.asks)))
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
    ask, found = situation.asks[at], situation.eligible[at]
    needed = max(1, len(found.every)) if ask.takes_all else ask.count
    left = _left(attempt, at, ask)
    free = left.bit_count()
    if free < needed or (ask.takes_all and not found.every):
        yield from toll.paid(len(situation.usages) + len(situation.board.pending))
        kind, details = yield from causes(situation, at, left, needed - free, toll)
        text = f", request {ask.name} needs {needed} free {_devices(needed)}, has {free}: {details}"
        return Reason(kind, text, at.claim, missing=needed - free)
    for grouped, where in WITHIN:
        given = 0
        for place in places_of(left):
            if given >= needed:
                break
            given += attempt.admits(ask, place, grouped=grouped)
            yield from toll.paid(1)
        if given < needed:
            text = f", request {ask.name} needs {needed} {_devices(needed)} {where}, has {given}"
            return Reason(Shortage.COUNTERS, text, at.claim, missing=needed - given)
    return None


def _left(attempt: Attempt, at: At, ask: Ask) -> int:
    """Return what of the free candidates has enough left: of those that an ask takes all of that was not asked yet."""
    free = attempt.situation.eligible[at].free
    if not ask.takes_all:
        return free
    return sum(1 << place for place in places_of(free) if attempt.fits(at, ask, place))


class Want(NamedTuple):
    """So many devices under a rule: the request whose want it is, and the candidates by the bit of each value."""

    whose: str
    needed: int
    holders: Mapping[int, int]


def _disagreement(situation: Situation, claim: int, rule: int, toll: Toll) -> Work[Reason | None]:
    """Give a reason where the asks that a rule covers could be satisfied, but not under the rule."""
    compared = situation.values[claim][rule].rule
    slots = list(bound_slots(situation.question, claim, rule))
    wants: list[Want] = []
    for places in slots:
        try:
            wants.append(_want(situation, places, rule))
        except Met:
            return None
        yield from toll.paid(sum(situation.eligible[at].free.bit_count() for at in places))
    # What several can have at once is counted for each of them alone, but a value is different only once.
    if not compared.is_match or not any(_can_be_common(situation, places) for places in slots):
        wants = [_together(wants)]
    for whose, needed, holders in wants:
        best = max((mask.bit_count() for mask in holders.values()), default=0) if compared.is_match else len(holders)
        if best < needed:
            values = "one value" if compared.is_match else "different values"
            has = "best has" if compared.is_match else "has"
            text = f"needs {needed} free {_devices(needed)} with {values} of {compared.attribute}, {has} {best}"
            return Reason(Shortage.CONSTRAINT, f"{whose} {text}", claim, missing=needed - best)
    return None


def _want(situation: Situation, places: Sequence[At], rule: int) -> Want:
    """Say what a slot wants: the least that any of its asks needs, of what all of them could be given."""
    holders: dict[int, int] = {}
    for at in places:
        values, ask = situation.values[at.claim][rule], situation.asks[at]
        for place in places_of(situation.eligible[at].free):
            for bit in bits_of((values.at(ask, place) or 0) & ~OPAQUE):
                holders[bit] = holders.get(bit, 0) | 1 << place
    return Want(f", request {situation.asks[places[0]].name}", min(_needed(situation, at) for at in places), holders)


def _together(wants: Sequence[Want]) -> Want:
    holders: dict[int, int] = {}
    for want in wants:
        for bit, mask in want.holders.items():
            holders[bit] = holders.get(bit, 0) | mask
    return Want("", sum(want.needed for want in wants), holders)


def _can_be_common(situation: Situation, places: Sequence[At]) -> bool:
    """Tell whether a slot may be given a device that another slot is given too."""
    return any(situation.asks[at].is_admin or situation.eligible[at].free & situation.shareable for at in places)


def _needed(situation: Situation, at: At) -> int:
    return len(situation.eligible[at].every) if situation.asks[at].takes_all else situation.asks[at].count


def _devices(count: int) -> str:
    return "device" if count == 1 else "devices"
