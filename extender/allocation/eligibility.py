"""Which devices of a node each ask could be given, before anything is given: what no search can change."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from extender.allocation.board import Board, Candidate
from extender.allocation.capacity import Draw, Unusable, draw, fits
from extender.allocation.cel import Budget, DeviceValue, Outcome, Verdict
from extender.allocation.features import Features
from extender.allocation.pools import reaches
from extender.allocation.question import Ask, Test
from extender.allocation.sight import sight_of
from extender.allocation.usage import Usage
from extender.model.device import NodeSelection
from extender.model.taint import blocking

# Says what a test makes of the candidate at a place.
Judge = Callable[[Test, int], Outcome]
NODE_OPERATIONS = "DRAOptionalNodeOperations"
NOWHERE = NodeSelection()


class Met(Exception):  # noqa: N818 - ends a search where upstream's would end in an error
    """Met on the way, and nobody may pass it over: a test that errs on a device, a pool that is being updated.

    *is_local*: on this node; another one may do. Otherwise the question itself is at fault.
    """

    def __init__(self, message: str, *, is_local: bool = True) -> None:
        super().__init__(message)
        self.is_local = is_local


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
        return self.free | sum(1 << place for place in self.errors)


def judge_of(board: Board) -> Judge:
    """Evaluate tests on the candidates of *board*, each at most once."""
    sights: dict[int, DeviceValue] = {}
    known: dict[tuple[str, int], Outcome] = {}
    budget = Budget()

    def judge(test: Test, place: int) -> Outcome:
        if test.selector is None:
            return Outcome(Verdict.ERROR, test.error)
        outcome = known.get((test.text, place))
        if outcome is None:
            sight = sights.get(place)
            if sight is None:
                candidate = board.candidates[place]
                sight = sights[place] = sight_of(candidate.device, candidate.key.driver)
            outcome = known[test.text, place] = test.selector.program.evaluate(sight, budget)
        return outcome

    return judge


def eligible(ask: Ask, board: Board, usages: Sequence[Usage], judge: Judge, features: Features) -> Eligible:
    """Examine every candidate for *ask*."""
    examined = _every if ask.takes_all else _counted
    return examined(ask, board, usages, judge, features)


def _counted(ask: Ask, board: Board, usages: Sequence[Usage], judge: Judge, features: Features) -> Eligible:
    free = 0
    errors: dict[int, Met] = {}
    draws: dict[int, Draw] = {}
    for place, candidate in enumerate(board.candidates):
        usage = usages[place]
        if usage.dedicated and not ask.is_admin:
            continue
        try:
            drawn = _offered(ask, board, place, judge, features)
            if drawn is None or not _is_usable(ask, board, candidate, features):
                continue
        except Met as met:
            errors[place] = met
            continue
        # Who only looks takes nothing: the device must be large enough, not have enough left.
        taken = {} if ask.is_admin else dict(usage.consumed)
        if fits(drawn, candidate.device.capacity, taken, {}):
            free |= 1 << place
            draws[place] = drawn
    return Eligible(free, errors, (), draws)


def _every(ask: Ask, board: Board, usages: Sequence[Usage], judge: Judge, features: Features) -> Eligible:
    """Examine for an ask that takes all: what it errs on it cannot leave out."""
    for pool in board.pools:
        if not pool.is_usable:
            wrong = f"is invalid: {pool.problem}" if pool.problem else "is being updated"
            raise Met(f"request {ask.name} asks for all devices, but pool {'/'.join(pool.key)} {wrong}")
    free, draws = 0, {}
    for place, candidate in enumerate(board.candidates):
        drawn = _offered(ask, board, place, judge, features)
        if drawn is None or not fits(drawn, candidate.device.capacity, {}, {}):
            continue
        draws[place] = drawn
        if _is_usable(ask, board, candidate, features) and (ask.is_admin or not usages[place].dedicated):
            free |= 1 << place
    return Eligible(free, {}, tuple(draws), draws)


NO_DRAW = Draw(())


def _offered(ask: Ask, board: Board, place: int, judge: Judge, features: Features) -> Draw | None:
    """Say what a candidate would give; None where it is not what is asked for. Raise Met where that cannot be told."""
    candidate = board.candidates[place]
    if candidate.device.traits.binding_conditions and not features.binding:
        return None
    if not _passes(ask, place, judge, candidate):
        return None
    if candidate.published.selection is None and not reaches(candidate.device.traits.selection or NOWHERE, board.node):
        return None
    if not features.consumable_capacity:
        return NO_DRAW
    try:
        return draw(dict(ask.capacity), candidate.device.capacity, fractional=features.fractional_capacity_range)
    except Unusable as error:
        raise Met(f"request {ask.name} on device {'/'.join(candidate.key)}: {error}") from error


def _passes(ask: Ask, place: int, judge: Judge, candidate: Candidate) -> bool:
    for test in ask.tests:
        outcome = judge(test, place)
        if outcome.verdict is Verdict.ERROR:
            place_text = f"{test.owner} on device {'/'.join(candidate.key)}: {outcome.error} in {test.text!r}"
            raise Met(place_text, is_local=test.selector is not None)
        if outcome.verdict is Verdict.NO:
            return False
    return True


def _is_usable(ask: Ask, board: Board, candidate: Candidate, features: Features) -> bool:
    return next(obstacles(ask, board, candidate, features), None) is None


def obstacles(ask: Ask, board: Board, candidate: Candidate, features: Features) -> Iterator[str]:
    """Say what, beyond its use, keeps a matching candidate from being given."""
    traits, published = candidate.device.traits, candidate.published
    if traits.unknown_fields or published.unknown_fields:
        yield f"has a field that is not known here ({(traits.unknown_fields or published.unknown_fields)[0]})"
    if published.skip_node_operations and not features.optional_node_operations:
        yield "skips node operations, but the feature is off"
    if published.skip_node_operations and NODE_OPERATIONS not in board.node.declared_features:
        yield "skips node operations, which the node does not declare to support"
    if traits.consumes_counters and not features.partitionable_devices:
        yield "is a partition, but the feature is off"
    if candidate.taints and features.device_taints:
        for taint in blocking(candidate.taints, ask.tolerations):
            yield f"has taint {taint.key}={taint.value}:{taint.effect}"
