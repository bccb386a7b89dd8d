"""Why requests that could each be satisfied cannot be under a rule: what they need beside what one value has."""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import or_
from typing import NamedTuple

from extender.allocation.eligibility import Met
from extender.allocation.masks import bits_of, places_of
from extender.allocation.question import At, Question
from extender.allocation.situation import Situation
from extender.allocation.values import OPAQUE
from extender.allocation.work import Toll, Work

# The asks of a slot.
Places = tuple[At, ...]


class Miss(NamedTuple):
    """What a claim needs and does not have, said after its name, and how many devices are missing."""

    text: str
    missing: int


class Want(NamedTuple):
    """What slots want that ask alike: so many devices, of the candidates by the bit of each value."""

    slots: tuple[str, ...]
    needed: int
    holders: Mapping[int, int]


class Lack(NamedTuple):
    """What is missing with one value: together, and of what each want could be given by itself."""

    missing: int
    apart: tuple[int, ...]


def bound_together(question: Question, claim: int, rule: int) -> list[list[Places]]:
    """Gather the asks of each slot of a claim that cannot escape a rule, whichever of its asks is chosen.

    By what they ask for: the slots of one list suit the same devices, with the same values.
    """
    attribute = question.claims[claim].rules[rule].attribute
    found: dict[object, list[Places]] = {}
    for (owner, _), places in question.slots.items():
        if owner != claim or any(rule not in question.covered[at] for at in places):
            continue
        derives = any(item.name == attribute for at in places for item in question.asks[at].derivations)
        found.setdefault(places if derives else tuple(question.alike[at] for at in places), []).append(places)
    return list(found.values())


def disagreement(situation: Situation, claim: int, rule: int, toll: Toll) -> Work[Miss | None]:
    """Say what is missing where the asks that a rule covers could be satisfied, but not under the rule."""
    compared = situation.values[claim][rule].rule
    slots = bound_together(situation.question, claim, rule)
    # What several can have at once is counted for each of them alone, but a value is different only once.
    is_common = compared.is_match and any(can_be_common(situation, at) for alike in slots for at in chain(*alike))
    if is_common:
        slots = [[places] for alike in slots for places in alike]
    wants: list[Want] = []
    for alike in slots:
        try:
            wants.append(_want(situation, alike, rule))
        except Met:
            return None
        yield from toll.paid(sum(situation.eligible[at].free.bit_count() for at in alike[0]))
    if compared.is_match:
        return _too_different(wants, compared.attribute, is_common=is_common)
    return _too_alike(wants, compared.attribute)


def _want(situation: Situation, alike: Sequence[Places], rule: int) -> Want:
    """Say what slots want: the least that any of their asks needs, of what all of them could be given."""
    holders: dict[int, int] = {}
    for at in alike[0]:
        values, ask = situation.values[at.claim][rule], situation.asks[at]
        for place in places_of(situation.eligible[at].free):
            for bit in bits_of((values.at(ask, place) or 0) & ~OPAQUE):
                holders[bit] = holders.get(bit, 0) | 1 << place
    names = tuple(situation.slots(at.claim)[at.slot].name for at, *_ in alike)
    return Want(names, sum(min(map(situation.size, places)) for places in alike), holders)


def can_be_common(situation: Situation, at: At) -> bool:
    """Tell whether an ask may be given a device that another one is given too."""
    return situation.asks[at].is_admin or bool(situation.eligible[at].free & situation.shareable)


def _too_alike(wants: Sequence[Want], attribute: str) -> Miss | None:
    needed, has = sum(want.needed for want in wants), len({bit for want in wants for bit in want.holders})
    text = f" needs {needed} free {devices(needed)} with different values of {attribute}, has {has}"
    return Miss(text, needed - has) if has < needed else None


def _too_different(wants: Sequence[Want], attribute: str, *, is_common: bool) -> Miss | None:
    """Say what is missing with the value with which the least is: of all, of one want, or of each."""
    needed, values = sum(want.needed for want in wants), {bit for want in wants for bit in want.holders}
    nothing = Lack(needed, tuple(want.needed for want in wants))
    least = min((_lack(wants, bit, is_common=is_common) for bit in values), default=nothing)
    if not least.missing:
        return None
    one = f"with one value of {attribute}, best has"
    if not is_common and (len(wants) == 1 or least.missing > sum(least.apart)):
        return Miss(f" needs {needed} free {devices(needed)} {one} {needed - least.missing}", least.missing)
    for want in wants if is_common else ():
        most = max((mask.bit_count() for mask in want.holders.values()), default=0)
        if most < want.needed:
            text = f", {_called(want)} needs {want.needed} free {devices(want.needed)} {one} {most}"
            return Miss(text, want.needed - most)
    each = [f"{want.needed} for {_called(want)}" for want in wants]
    each[0] = f"{wants[0].needed} free {devices(wants[0].needed)} for {_called(wants[0])}"
    has = [str(want.needed - lack) for want, lack in zip(wants, least.apart, strict=True)]
    return Miss(f" needs {listed(each)} {one} {listed(has)}", least.missing)


def _lack(wants: Sequence[Want], bit: int, *, is_common: bool) -> Lack:
    masks = [want.holders.get(bit, 0) for want in wants]
    apart = tuple(max(0, want.needed - mask.bit_count()) for want, mask in zip(wants, masks, strict=True))
    together = 0 if is_common else sum(want.needed for want in wants) - reduce(or_, masks, 0).bit_count()
    return Lack(max(sum(apart), together), apart)


def _called(want: Want) -> str:
    return f"request{'s' if len(want.slots) > 1 else ''} {listed(want.slots)}"


def listed(items: Sequence[str]) -> str:
    """Write *items* one after the other, with an "and" before the last."""
    return " and ".join(filter(None, (", ".join(items[:-1]), items[-1])))


def devices(count: int) -> str:
    return "device" if count == 1 else "devices"
