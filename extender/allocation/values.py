"""What constraints compare: each candidate's values of an attribute as a set of bits, one for each distinct value."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from extender.allocation.board import Board, Candidate
from extender.allocation.cel import Budget, EvaluationError
from extender.allocation.derived import attribute_of
from extender.allocation.eligibility import Met
from extender.allocation.features import Features
from extender.allocation.formula import Derivation
from extender.allocation.question import Ask, Rule
from extender.allocation.selectors import PIECE
from extender.allocation.sight import sight_of
from extender.allocation.work import Toll, Work
from extender.model.device import Attribute

# Set beside the value of a list where lists are not understood: it can only be the first that a rule covers.
OPAQUE = 1
# Values that derived lists may bring: each is a bit, and they take room by the square of their number, here 16 MB.
MOST = 1 << 14


@dataclass(slots=True)
class Values:
    """Bits of one rule over one board, worked out candidate by candidate as they are needed."""

    rule: Rule
    board: Board
    features: Features
    _bits: dict[object, int] = field(default_factory=dict)
    _known: dict[tuple[str, int], int | None] = field(default_factory=dict)
    _budget: Budget = field(default_factory=Budget)
    # Why something could not be derived: that takes as long each time.
    _met: dict[tuple[str, int], str] = field(default_factory=dict)

    @classmethod
    def told(cls, rule: Rule, board: Board, features: Features, keys: Sequence[object]) -> "Values":
        """Return what *keys* say of each candidate, whatever is published; one whose key is None goes with any."""
        values = cls(rule, board, features)
        bits = [None if key is None else values._bit(key) for key in keys]
        every = sum(values._bits.values()) or values._bit(None)
        values._known.update({("", place): bit or every for place, bit in enumerate(bits)})
        return values

    def at(self, ask: Ask, place: int) -> int | None:
        """Return the bits of a candidate, None where it lacks the attribute. Raise Met where a derivation fails."""
        derivation = self._derivation(ask)
        key = (ask.name if derivation else "", place)
        if key in self._met:
            raise Met(self._met[key], place=self.board.candidates[place].key)
        if key not in self._known:
            candidate = self.board.candidates[place]
            if derivation:
                try:
                    attribute = _derived(derivation, candidate, self._budget)
                    self._require_few(derivation, attribute, candidate)
                except Met as met:
                    self._met[key] = str(met)
                    raise
                self._known[key] = self._bits_of(attribute, place)
            else:
                self._known[key] = self._bits_of(_published(self.rule.attribute, candidate), place)
        return self._known[key]

    def deriving(self, ask: Ask, places: Iterable[int]) -> Work[None]:
        """Work out what *ask* derives of candidates, piece by piece. What fails is met by who asks for it."""
        toll = Toll(PIECE)
        for place in places if self._derivation(ask) else ():
            with suppress(Met):
                self.at(ask, place)
            yield from toll.paid(self._budget.spent)

    def _require_few(self, derivation: Derivation, attribute: Attribute, candidate: Candidate) -> None:
        if isinstance(attribute.value, tuple) and len(self._bits) + len(attribute.value) > MOST:
            here = _here(derivation, candidate)
            raise Met(f"{here}: the lists have more than {MOST} values together", place=candidate.key)

    def _derivation(self, ask: Ask) -> Derivation | None:
        return next((item for item in ask.derivations if item.name == self.rule.attribute), None)

    def is_opaque(self, ask: Ask, place: int) -> bool:
        """Tell whether a candidate has a list that is not understood."""
        try:
            return bool((self.at(ask, place) or 0) & OPAQUE)
        except Met:
            return False

    def _bits_of(self, attribute: Attribute | None, place: int) -> int | None:
        attribute = attribute and attribute.compared
        if attribute is None:
            return None
        if not isinstance(attribute.value, tuple):
            return self._bit((attribute.kind, attribute.value))
        if not self.features.list_type_attributes:
            return self._bit(("a list", place)) | OPAQUE
        bits = 0
        for value in attribute.value:
            bits |= self._bit((attribute.kind.removesuffix("s"), value))
        # An empty list has nothing in common with anything.
        return bits or None

    def _bit(self, value: object) -> int:
        # Bit 0 is OPAQUE.
        return self._bits.setdefault(value, 2 << len(self._bits))


def _published(name: str, candidate: Candidate) -> Attribute | None:
    """Look an attribute up by its full name, or by the bare one where its domain is the driver."""
    domain, slash, bare = name.partition("/")
    found = None
    for key, attribute in candidate.device.attributes:
        if key == name:
            return attribute
        if slash and key == bare and domain == candidate.key.driver:
            found = attribute
    return found


def _derived(derivation: Derivation, candidate: Candidate, budget: Budget) -> Attribute:
    here = _here(derivation, candidate)
    if derivation.program is None:
        raise Met(f"{here}: {derivation.error}", place=candidate.key)
    try:
        value = derivation.program.compute(sight_of(candidate.device, candidate.key.driver), budget)
        return attribute_of(value)
    except (EvaluationError, ValueError) as error:
        raise Met(f"{here}: {error}", place=candidate.key) from error
    except Exception as error:
        # A stranger's text, as a selector is: whatever we did not think of is wrong on this device only.
        raise Met(f"{here}: internal error: {type(error).__name__}", place=candidate.key) from error


def _here(derivation: Derivation, candidate: Candidate) -> str:
    return f"derived attribute {derivation.name} on device {'/'.join(candidate.key)}"
