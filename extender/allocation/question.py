"""What a pod asks for: its unallocated claims and the classes they name, checked once for all nodes."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from extender.allocation.configuration import excess, least
from extender.allocation.features import Features
from extender.allocation.formula import Derivation, Formula, Test, formula_of
from extender.model.claim import Constraint, DeviceClass, DeviceRequest, RequestSlot, ResourceClaim, flaws_in
from extender.model.claim import Selector as SelectorText
from extender.model.frozen import dataclass
from extender.model.names import ClassName
from extender.model.quantity import Quantity
from extender.model.taint import Toleration

EXACT, EVERY = "ExactCount", "All"
# How many devices one claim can be given.
RESULTS: Final = 32
# Different texts of CEL in one question, and the characters of all of them: one claim may have eight times as many, and
# each takes a code for each device, and 180 bytes for each character.
TEXTS: Final = 1 << 10
CHARACTERS: Final = 1 << 20


class Refusal(ValueError):  # noqa: N818 - an answer to the pod, not a failure of ours
    """The question itself is wrong: no node can answer it. The message names claim, request and field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One exact request, or one alternative of a list; *name* is as in results: with the request's in front."""

    name: str
    class_name: ClassName
    tests: tuple[Test, ...]
    takes_all: bool
    count: int
    is_admin: bool
    tolerations: tuple[Toleration, ...]
    capacity: tuple[tuple[str, Quantity], ...]
    derivations: tuple[Derivation, ...]

    def formulas(self) -> Iterator[Formula]:
        """Yield all that is to be compiled for it."""
        yield from (test.formula for test in self.tests)
        yield from (derivation.formula for derivation in self.derivations)


@dataclass(frozen=True, slots=True)
class Slot:
    """A request of a claim: alternatives in order of preference, or the one ask of an exact request."""

    name: str
    asks: tuple[Ask, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A constraint. It covers asks by the names in *requests*, all of them where it names none."""

    attribute: str
    is_match: bool
    requests: frozenset[str]

    def covers(self, slot: Slot, ask: Ask) -> bool:
        return not self.requests or slot.name in self.requests or ask.name in self.requests


@dataclass(frozen=True, slots=True)
class ClaimQuestion:
    """One claim's part of the question. The noun is for results: its configuration decides nothing."""

    claim: ResourceClaim
    slots: tuple[Slot, ...]
    rules: tuple[Rule, ...]


class At(NamedTuple):
    """One ask of the question: indices of its claim, its slot and itself."""

    claim: int
    slot: int
    ask: int


@dataclass(frozen=True, slots=True)
class Question:
    """All of a pod's unallocated claims; *classes* are those that they name.

    asks has every ask by its place; slots the places of the asks of each slot, by claim and slot; covered the indices
    of the rules that bind an ask; alike the first ask that the same devices suit. *may_crowd*: a claim may need more
    results than it can have, whatever is chosen. *has_choice*: between alternatives.
    """

    claims: tuple[ClaimQuestion, ...]
    classes: Mapping[ClassName, DeviceClass]
    features: Features
    asks: Mapping[At, Ask]
    slots: Mapping[tuple[int, int], tuple[At, ...]]
    covered: Mapping[At, tuple[int, ...]]
    alike: Mapping[At, At]
    may_crowd: bool
    has_choice: bool


def ask(claims: Sequence[ResourceClaim], classes: Mapping[ClassName, DeviceClass], features: Features) -> Question:
    """Put *claims* as a question; raise Refusal where they make no sense, whatever the node.

    Texts in it are compiled when somebody needs them, which takes long where they are made to.
    """
    compiled = tuple(_claim(claim, classes, features) for claim in claims)
    named = {ask.class_name for claim in compiled for slot in claim.slots for ask in slot.asks}
    slots = _slots(compiled)
    asks = {at: compiled[at.claim].slots[at.slot].asks[at.ask] for places in slots.values() for at in places}
    _refuse_vast({formula.text for ask in asks.values() for formula in ask.formulas()})
    return Question(
        claims=compiled,
        classes={name: classes[name] for name in sorted(named)},
        features=features,
        asks=asks,
        slots=slots,
        covered={at: _rules(compiled[at.claim], at, ask) for at, ask in asks.items()},
        alike=_alike(asks),
        may_crowd=any(map(_may_crowd, compiled)),
        has_choice=any(at.ask for at in asks),
    )


def asked_by(question: Question, claims: Sequence[ResourceClaim], classes: Mapping[ClassName, DeviceClass]) -> Question:
    """Return *question* as *claims* ask it, which ask the same.

    Its tests keep the names of who asked first: whoever tells what errs compiles it anew.
    """
    # Field by field: ``replace`` takes longer, and every pod asks.
    return Question(
        claims=tuple(
            ClaimQuestion(claim, part.slots, part.rules) for part, claim in zip(question.claims, claims, strict=True)
        ),
        classes={name: classes[name] for name in question.classes},
        features=question.features,
        asks=question.asks,
        slots=question.slots,
        covered=question.covered,
        alike=question.alike,
        may_crowd=question.may_crowd,
        has_choice=question.has_choice,
    )


def compiled_anew(question: Question) -> Question:
    """Return the same with the names of its own claims in everything."""
    return ask([part.claim for part in question.claims], question.classes, question.features)


def formulas(question: Question) -> set[Formula]:
    """Return what the question is asked by; some of it may be a class's, which others ask, too."""
    return {formula for ask in question.asks.values() for formula in ask.formulas()}


def _slots(claims: Sequence[ClaimQuestion]) -> dict[tuple[int, int], tuple[At, ...]]:
    return {
        (claim, slot): tuple(At(claim, slot, index) for index in range(len(wanted.asks)))
        for claim, part in enumerate(claims)
        for slot, wanted in enumerate(part.slots)
    }


def _alike(asks: Mapping[At, Ask]) -> dict[At, At]:
    first: dict[object, At] = {}
    found = {}
    for at, ask in asks.items():
        amounts = tuple((name, amount, amount.spelling) for name, amount in ask.capacity)
        tests = tuple(test.formula for test in ask.tests)
        found[at] = first.setdefault((tests, ask.takes_all, ask.is_admin, ask.tolerations, amounts), at)
    return found


def _rules(part: ClaimQuestion, at: At, ask: Ask) -> tuple[int, ...]:
    return tuple(index for index, rule in enumerate(part.rules) if rule.covers(part.slots[at.slot], ask))


def _may_crowd(part: ClaimQuestion) -> bool:
    if any(ask.takes_all for slot in part.slots for ask in slot.asks):
        return True
    return sum(min(ask.count for ask in slot.asks) for slot in part.slots) > RESULTS


def _claim(claim: ResourceClaim, classes: Mapping[ClassName, DeviceClass], features: Features) -> ClaimQuestion:
    where = f"claim {claim.key.name}"
    if claim.problem is not None:
        raise Refusal(f"{where}: {claim.problem.path}: {claim.problem.message}")
    if claim.is_classic:
        raise Refusal(f"{where}: it names a controller, which DRA has not had since Kubernetes 1.32")
    _refuse_unknown(where, claim.spec.unknown_fields)
    _refuse_flawed(f"{where}: devices.", flaws_in(claim.spec.config))
    slots = tuple(_slot(where, slot, classes, features) for slot in claim.spec.requests)
    rules = tuple(_rule(where, index, rule) for index, rule in enumerate(claim.spec.constraints))
    if flaw := excess(least(claim.spec, classes)):
        raise Refusal(f"{where}: {flaw}")
    return ClaimQuestion(claim, slots, rules)


def _slot(where: str, slot: RequestSlot, classes: Mapping[ClassName, DeviceClass], features: Features) -> Slot:
    here = f"{where}, request {slot.name}"
    _refuse_unknown(here, slot.unknown_fields)
    if slot.first_available:
        if not features.prioritized_list:
            raise Refusal(f"{here}: firstAvailable is set, but the feature DRAPrioritizedList is off")
        asks = tuple(
            _ask(where, f"{slot.name}/{request.name}", request, classes, features) for request in slot.first_available
        )
        return Slot(slot.name, asks)
    if slot.exactly is None:
        raise Refusal(f"{here}: exactly: neither this nor firstAvailable is set")
    return Slot(slot.name, (_ask(where, slot.name, slot.exactly, classes, features),))


def _ask(
    where: str, name: str, request: DeviceRequest, classes: Mapping[ClassName, DeviceClass], features: Features
) -> Ask:
    here = f"{where}, request {name}"
    _refuse_unknown(here, request.unknown_fields)
    _refuse_gated(here, request, features)
    if request.mode not in (EXACT, EVERY):
        raise Refusal(f"{here}: allocationMode: {request.mode!r} is neither {EXACT} nor {EVERY}")
    if not request.class_name:
        raise Refusal(f"{here}: deviceClassName: is required")
    device_class = classes.get(request.class_name)
    if device_class is None:
        raise Refusal(f"{here}: deviceClassName: there is no class {request.class_name}")
    _refuse_unknown(f"class {device_class.name}", device_class.unknown_fields)
    _refuse_flawed(f"class {device_class.name}: ", flaws_in(device_class.config))
    tests = (
        *_tests(f"class {device_class.name}", device_class.selectors),
        *_tests(here, request.selectors),
    )
    return Ask(
        name=name,
        class_name=device_class.name,
        tests=tests,
        takes_all=request.mode == EVERY,
        count=max(0, request.count),
        is_admin=bool(request.admin_access),
        tolerations=request.tolerations,
        capacity=request.capacity or (),
        derivations=tuple(
            Derivation(item.name, formula_of(item.expression, is_selector=False)) for item in request.derived_attributes
        ),
    )


def _refuse_unknown(here: str, names: tuple[str, ...]) -> None:
    if names:
        raise Refusal(f"{here}: {names[0]}: this field is not known here, and must not be passed over")


def _refuse_vast(texts: Collection[str]) -> None:
    characters = sum(map(len, texts))
    if len(texts) > TEXTS or characters > CHARACTERS:
        size = f"{len(texts)} different expressions with {characters} characters"
        raise Refusal(f"{size} are more than one pod can ask for here: {TEXTS} with {CHARACTERS}")


def _refuse_flawed(here: str, flaws: tuple[str, ...]) -> None:
    if flaws:
        raise Refusal(f"{here}{flaws[0]}")


def _refuse_gated(here: str, request: DeviceRequest, features: Features) -> None:
    gated = (
        ("adminAccess", request.admin_access is not None, features.admin_access, "DRAAdminAccess"),
        ("capacity", request.capacity is not None, features.consumable_capacity, "DRAConsumableCapacity"),
        ("derivedAttributes", request.derived_attributes, features.derived_attributes, "DRADerivedAttributes"),
    )
    for field, is_set, is_on, gate in gated:
        if is_set and not is_on:
            raise Refusal(f"{here}: {field}: is set, but the feature {gate} is off")


def _tests(owner: str, selectors: Sequence[SelectorText]) -> Iterator[Test]:
    for index, selector in enumerate(selectors):
        place = f"{owner}, selector {index}"
        if selector.expression is None:
            raise Refusal(f"{place}: cel: is required; other kinds of selectors are not known here")
        yield Test(place, formula_of(selector.expression, is_selector=True))


def _rule(where: str, index: int, constraint: Constraint) -> Rule:
    here = f"{where}, constraint {index}"
    _refuse_unknown(here, constraint.unknown_fields)
    names = frozenset(constraint.requests)
    if constraint.match_attribute is not None:
        return Rule(attribute=constraint.match_attribute, is_match=True, requests=names)
    if constraint.distinct_attribute is not None:
        return Rule(attribute=constraint.distinct_attribute, is_match=False, requests=names)
    raise Refusal(f"{here}: neither matchAttribute nor distinctAttribute is set")
