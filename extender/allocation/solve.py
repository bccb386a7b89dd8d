"""From a question and a board to devices, or to the reason why there are none."""

from collections.abc import Callable
from dataclasses import replace

from extender.allocation.attempt import Pick
from extender.allocation.board import Board
from extender.allocation.counting import courses_of, first_solution, is_countable
from extender.allocation.eligibility import Judge, Met, judge_of
from extender.allocation.foresight import Foresight, can_foresee, is_short
from extender.allocation.holders import has_opaque
from extender.allocation.preference import AsAsked, Preference, ReadyFirst, Tightest, turns_of
from extender.allocation.question import At, Question
from extender.allocation.reason import Fault, Reason, explaining
from extender.allocation.search import Exhausted, Search
from extender.allocation.situation import Situation, UsageOf, examining
from extender.allocation.usage import Usage
from extender.allocation.work import Work
from extender.model.frozen import dataclass

# Candidates that a search tries before it looks ahead, which costs more each time but leaves most of them out.
BLIND_STEPS = 64
# Likewise of sets, where they are tried for the sake of a preference.
BLIND_SETS = 8
STEPS = 4000
# Sets of devices that are tried for the sake of a preference: a solution is known by then.
IMPROVEMENTS = 500
# And where nothing else will do than what is preferred: after that nobody knows whether there is any.
INSISTENCE = 2000


@dataclass(frozen=True, slots=True)
class Solution:
    """Which candidate each ask was given, in the order of the question."""

    situation: Situation
    picks: tuple[Pick, ...]

    @property
    def asks(self) -> tuple[At, ...]:
        """The asks that were given devices: of each list of alternatives one."""
        return tuple(dict.fromkeys(pick.at for pick in self.picks))


@dataclass(frozen=True, slots=True)
class Nothing:
    """The node cannot satisfy the question now."""

    situation: Situation


@dataclass(frozen=True, slots=True)
class Failure:
    """Something was met that must not be passed over; *message* names it, and calls where that is *place*."""

    message: str
    is_local: bool = False
    place: str = ""

    @property
    def fault(self) -> Fault:
        """The same wherever it is met."""
        return Fault(self.message.replace(self.place, "") if self.place else self.message, self.is_local)


@dataclass(frozen=True, slots=True)
class Undecided:
    """The search was given up: there may be a solution or not."""

    steps: int


@dataclass(frozen=True, slots=True)
class Known:
    """What the caller knows of the candidates of a board already: how much of each is taken, and how to judge them."""

    usages: tuple[Usage, ...]
    judge: Judge


@dataclass(frozen=True, slots=True)
class Manner:
    """How to search: what to prefer, if anything, how long, and whether what is met on a node spoils that node alone.

    kube-scheduler prefers nothing, and fails the pod for what it meets on any node. *accepts*: nothing but what is
    preferred will do, or what it accepts: to look for the best may take too long where any would do. *is_sure*: that
    the node fits is known, so what is preferred is looked for at once. *narrowed* leaves devices out that no ask may
    have, whatever is found. *bound* makes rules of what is demanded of sets, as far as rules can say it: where these
    leave nothing, nothing is accepted, and that is found out without trying all sets.
    """

    preference: Preference | None = None
    is_lenient: bool = False
    steps: int = STEPS
    is_sure: bool = False
    narrowed: Callable[[Situation], Situation] | None = None
    accepts: Callable[[Situation, tuple[Pick, ...]], bool] | None = None
    bound: Callable[[Situation], Situation] | None = None


FIRST = Manner()
BEST = Manner(preference=Tightest(), is_lenient=True)

Picks = tuple[Pick, ...] | None
Answer = Solution | Nothing | Failure | Undecided


def why_not(answer: Answer) -> Work[Reason | Fault | None]:
    """Explain *answer* as it is explained on all nodes that are alike; None where it is none of these."""
    match answer:
        case Nothing(situation):
            return (yield from explaining(situation))
        case Failure():
            return answer.fault
    return None


def solving(
    question: Question, board: Board, usage_of: UsageOf, manner: Manner, known: Known | None = None
) -> Work[Answer]:
    """Find devices on one node: those of kube-scheduler, or better ones where *manner* has a preference."""
    try:
        if known is None:
            known = Known(tuple(usage_of(candidate.key) for candidate in board.candidates), judge_of(board))
        situation = yield from examining(question, board, known.usages, usage_of, known.judge)
        if manner.narrowed is not None:
            situation = manner.narrowed(situation)
        bound = manner.bound(situation) if manner.bound else situation
        sound, is_vain = (yield from _sound(bound, manner)) if bound is not situation else (None, False)
        is_sure = manner.is_sure and not question.has_choice and not is_vain
        better = (yield from _preferred(bound, manner)) if is_sure else None
        picks = better or sound or (yield from _found(situation, manner.steps))
        if better is None and picks is not None and not is_vain:
            better = yield from _improved(bound, picks, manner)
    except Met as met:
        return Failure(str(met), is_local=met.is_local and manner.is_lenient, place=met.place)
    except Exhausted:
        return Undecided(manner.steps)
    if picks is not None:
        return Nothing(situation) if better is None else Solution(_settled(situation, better), better)
    invalid = next((pool for pool in board.pools if pool.problem), None)
    if invalid:
        place = "/".join(invalid.key)
        return Failure(f"pool {place} is invalid: {invalid.problem}", is_local=True, place=place)
    return Nothing(situation)


def _found(situation: Situation, steps: int) -> Work[Picks]:
    """Search blindly for a while, which is enough for most; then count where that is exact, or search with foresight.

    Counting takes no steps: it always comes to an end.
    """
    if not can_foresee(situation):
        return (yield from Search(situation, steps).pieces())
    if is_short(situation):
        return None
    try:
        return (yield from Search(situation, min(steps, BLIND_STEPS)).pieces())
    except Exhausted:
        courses = courses_of(situation) if is_countable(situation) else None
        if courses is not None:
            return (yield from first_solution(courses))
        if steps <= BLIND_STEPS:
            raise
        return (yield from Search(situation, steps - BLIND_STEPS, Foresight(situation)).pieces())


def _sound(bound: Situation, manner: Manner) -> Work[tuple[Picks, bool]]:
    """Find devices by rules that were added; tell whether it is in vain to look for any that are accepted."""
    try:
        sound = yield from _found(bound, manner.steps)
    except (Exhausted, Met):
        return None, False
    return sound, sound is None


def _improved(situation: Situation, picks: tuple[Pick, ...], manner: Manner) -> Work[Picks]:
    """Look for what is preferred to *picks*, with the same alternatives: none that comes first is given up for it.

    Where *picks* are not accepted nothing is known that is: return None once all is tried, or raise Exhausted.
    """
    if manner.accepts is not None and not manner.accepts(situation, picks):
        has_choice = situation.question.has_choice
        better = (yield from _preferred(_settled(situation, picks), manner)) if has_choice else None
        return better or (yield from _sought(situation, manner, min(manner.steps, INSISTENCE)))
    return (yield from _preferred(_settled(situation, picks), manner)) or picks


def _settled(situation: Situation, picks: tuple[Pick, ...]) -> Situation:
    """Leave of each list of alternatives the one that was picked."""
    if not situation.question.has_choice:
        return situation
    chosen = {pick.at[:2]: pick.at for pick in picks}
    left = {
        at: found if chosen.get(at[:2], at) == at else replace(found, free=0, every=())
        for at, found in situation.eligible.items()
    }
    return replace(situation, eligible=left)


def _preferred(situation: Situation, manner: Manner) -> Work[Picks]:
    """Look for the solution that is preferred; None where that takes too long."""
    try:
        return (yield from _sought(situation, manner, IMPROVEMENTS))
    except (Exhausted, Met):
        return None


def _sought(situation: Situation, manner: Manner, steps: int) -> Work[Picks]:
    """Search in the order that is preferred, if any is. Raise Met or Exhausted."""
    if manner.preference is None:
        return None
    has_last = situation.board.unready or situation.board.evicting
    preference = ReadyFirst(manner.preference, manner.accepts) if has_last else manner.preference
    if has_opaque(situation):
        preference = AsAsked(preference)
    if len(situation.asks) == 1 or steps <= BLIND_SETS or not can_foresee(situation):
        return (yield from Search(situation, steps, preference=preference).pieces())
    try:
        return (yield from Search(situation, BLIND_SETS, preference=preference).pieces())
    except Exhausted:
        foresight = Foresight(situation, turns_of(situation, preference))
        return (yield from Search(situation, steps - BLIND_SETS, foresight, preference).pieces())
