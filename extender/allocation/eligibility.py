"""Which devices of a node each ask could be given, before anything is given: what no search can change."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from extender.allocation.board import Board, Candidate
from extender.allocation.capacity import Draw, Unusable, draw, fits
from extender.allocation.cel import Budget, DeviceValue, Program, SelectorOutcome, Verdict
from extender.allocation.features import Features
from extender.allocation.formula import Test
from extender.allocation.masks import mask_of
from extender.allocation.pools import Unreadable, reaches
from extender.allocation.question import Ask
from extender.allocation.selectors import Selector
from extender.allocation.sight import sight_of
from extender.allocation.usage import UNUSED, Usage
from extender.model.device import Device, Seal
from extender.model.frozen import dataclass
from extender.model.node import Node
from extender.model.taint import blocking


class ByPlace(Protocol):
    """Something for each candidate."""

    def __getitem__(self, place: int, /) -> SelectorOutcome: ...


# Says what a selector makes of each candidate.
Judge = Callable[[Selector], ByPlace]
NODE_OPERATIONS = "DRAOptionalNodeOperations"
SEALED = {
    Seal.CLOSED: "in a pool that is closed because somebody else has allocated from it",
    Seal.NOT_OURS: "not ours to allocate (ownership.drivers)",
}


class Met(Exception):  # noqa: N818 - ends a search where upstream's would end in an error
    """Met on the way, and nobody may pass it over: a test that errs on a device, a pool that is being updated.

    *is_local*: on this node; another one may do. Otherwise the question itself is at fault. *place*: what the message
    calls the device or the pool, which is another one wherever the same is met.
    """

    def __init__(self, message: str, *, place: Sequence[str] = (), is_local: bool = True) -> None:
        super().__init__(message)
        self.is_local, self.place = is_local, "/".join(place)


@dataclass(frozen=True, slots=True)
class Eligible:
    """For one ask. Masks have a bit for each candidate.

    free: could be given now; errors: what happens where the search reaches a candidate; every: for an ask that takes
    all, the places that it takes; draws: what a share takes of a device's capacity.
    """

    free: int
    errors: dict[int, Met]
    every: tuple[int, ...]
    draws: dict[int, Draw]

    @property
    def reachable(self) -> int:
        """The candidates that a search looks at."""
        return self.free | mask_of(self.errors)


def size_of(ask: Ask, found: Eligible) -> int:
    """Return how many devices *ask* takes."""
    return len(found.every) if ask.takes_all else ask.count


class Sights(dict[int, DeviceValue]):
    """The candidates of a board, and what is pending, as selectors see them, each made when it is first looked at."""

    def __init__(self, board: Board) -> None:
        super().__init__()
        self._candidates = (*board.candidates, *board.pending)

    def __missing__(self, place: int) -> DeviceValue:
        candidate = self._candidates[place]
        sight = self[place] = sight_of(candidate.device, candidate.key.driver)
        return sight


class Outcomes(dict[int, SelectorOutcome]):
    """What a selector says of each candidate, evaluated when it is first asked."""

    def __init__(self, program: Program, sights: Sights, budget: Budget) -> None:
        super().__init__()
        self._program, self._sights, self._budget = program, sights, budget

    def __missing__(self, place: int) -> SelectorOutcome:
        outcome = self[place] = self._program.evaluate(self._sights[place], self._budget)
        return outcome


def judge_of(board: Board) -> Judge:
    """Evaluate tests on the candidates of *board*, each at most once."""
    sights, budget = Sights(board), Budget()
    judged: dict[Selector, Outcomes] = {}

    def judge(selector: Selector) -> Outcomes:
        if selector not in judged:
            judged[selector] = Outcomes(selector.program, sights, budget)
        return judged[selector]

    return judge


def eligible(ask: Ask, board: Board, usages: Sequence[Usage], judge: Judge, features: Features) -> Eligible:
    """Examine every candidate for *ask*."""
    examined = _every if ask.takes_all else _counted
    return examined(ask, board, usages, judge, features)


def _counted(ask: Ask, board: Board, usages: Sequence[Usage], judge: Judge, features: Features) -> Eligible:
    free = 0
    errors: dict[int, Met] = {}
    draws: dict[int, Draw] = {}
    examination = Examination(ask, board, judge, features)
    for place, usage in enumerate(usages):
        if usage.dedicated and not ask.is_admin:
            continue
        try:
            drawn = examination.offered(place)
        except Met as met:
            errors[place] = met
            continue
        if drawn is None or not _is_usable(ask, board, place, features):
            continue
        # Who only looks takes nothing: the device must be large enough, not have enough left.
        taken = usage if features.consumable_capacity and not ask.is_admin else UNUSED
        if has_left(drawn, board.candidates[place].device, taken, NOTHING):
            free |= 1 << place
            draws[place] = drawn
    return Eligible(free, errors, (), draws)


def _every(ask: Ask, board: Board, usages: Sequence[Usage], judge: Judge, features: Features) -> Eligible:
    """Examine for an ask that takes all: what it errs on it cannot leave out."""
    for pool in board.pools:
        if not pool.is_usable:
            wrong = f"is invalid: {pool.problem}" if pool.problem else "is being updated"
            text = f"request {ask.name} asks for all devices, but pool {'/'.join(pool.key)} {wrong}"
            raise Met(text, place=pool.key)
    free, draws = 0, {}
    examination = Examination(ask, board, judge, features)
    for place, candidate in enumerate(board.candidates):
        drawn = examination.offered(place)
        if drawn is None or not fits(drawn, candidate.device.capacity, NOTHING, NOTHING):
            continue
        draws[place] = drawn
        if _is_usable(ask, board, place, features) and (ask.is_admin or not usages[place].dedicated):
            free |= 1 << place
    return Eligible(free, {}, tuple(draws), draws)


NO_DRAW = Draw(())
NOTHING: Mapping[str, int] = {}


def has_left(drawn: Draw, device: Device, usage: Usage, besides: Mapping[str, int]) -> bool:
    """Tell whether enough of *device* is left. Who draws nothing takes all of it, so others must have nothing."""
    taken = dict(usage.consumed) if usage.consumed else NOTHING
    if drawn is NO_DRAW:
        return not taken or not any(taken.get(name) for name, _ in device.capacity)
    return fits(drawn, device.capacity, taken, besides)


def is_here(candidate: Candidate, node: Node) -> bool:
    """Tell whether *candidate* can be reached from *node*, which sees its slice. Raise Met where nobody can tell."""
    if candidate.published.selection is not None:
        return True
    try:
        return reaches(candidate.selection, node)
    except Unreadable as error:
        raise Met(f"device {'/'.join(candidate.key)}: {error}", place=candidate.key) from error


class Examination:
    """One ask before the candidates of a board."""

    def __init__(self, ask: Ask, board: Board, judge: Judge, features: Features) -> None:
        self.ask, self.board, self.features = ask, board, features
        self.tests = [(test, judge(test.selector) if test.selector else None) for test in ask.tests]
        self.asked = dict(ask.capacity)

    def offered(self, place: int) -> Draw | None:
        """Say what a candidate would give; None where it is not what is asked for. Raise Met where nobody can tell."""
        candidate = self.board.candidates[place]
        traits = candidate.device.traits
        if traits.binding_conditions and not self.features.binding:
            return None
        for test, outcomes in self.tests:
            outcome = SelectorOutcome(Verdict.ERROR, test.error) if outcomes is None else outcomes[place]
            if outcome.verdict is not Verdict.MATCH:
                self._check(test, outcome, candidate)
                return None
        if not (self.board.plain >> place & 1 or is_here(candidate, self.board.node)):
            return None
        is_whole = not self.asked and self.board.whole >> place & 1
        return NO_DRAW if is_whole or not self.features.consumable_capacity else self._drawn(candidate)

    def _check(self, test: Test, outcome: SelectorOutcome, candidate: Candidate) -> None:
        if outcome.verdict is Verdict.ERROR:
            met = f"{test.owner} on device {'/'.join(candidate.key)}: {outcome.error} in {test.text!r}"
            raise Met(met, place=candidate.key, is_local=test.selector is not None)

    def _drawn(self, candidate: Candidate) -> Draw | None:
        fractional = self.features.fractional_capacity_range
        try:
            return draw(self.asked, candidate.device.capacity, fractional=fractional)
        except Unusable as error:
            text = f"request {self.ask.name} on device {'/'.join(candidate.key)}: {error}"
            raise Met(text, place=candidate.key) from error


def _is_usable(ask: Ask, board: Board, place: int, features: Features) -> bool:
    is_plain = board.plain >> place & 1
    return bool(is_plain) or next(obstacles(ask, board, board.candidates[place], features), None) is None


def obstacles(ask: Ask, board: Board, candidate: Candidate, features: Features) -> Iterator[str]:
    """Say what, beyond its use, keeps a matching candidate from being given."""
    traits, published = candidate.device.traits, candidate.published
    if published.seal:
        yield SEALED[published.seal]
    if traits.unknown_fields or published.unknown_fields:
        yield f"has a field that is not known here ({(traits.unknown_fields or published.unknown_fields)[0]})"
    if published.skip_node_operations and not features.optional_node_operations:
        yield "skips node operations, but the feature is off"
    if published.skip_node_operations and NODE_OPERATIONS not in board.node.declared_features:
        yield "skips node operations, which the node does not declare to support"
    if traits.binding_conditions and not features.binding:
        yield "has to be made ready first, but the feature is off"
    if traits.consumes_counters and not features.partitionable_devices:
        yield "is partitioned, but the feature is off"
    if candidate.taints and features.device_taints:
        for taint in blocking(candidate.taints, ask.tolerations):
            yield f"has taint {taint.key}={taint.value}:{taint.effect}"
