"""Which devices a question gets on one node, so that they can be written down as allocations."""

from dataclasses import replace
from functools import partial
from typing import Final

from extender.allocation.board import Board
from extender.allocation.pools import Unreadable
from extender.allocation.question import Question
from extender.allocation.result import check_writable
from extender.allocation.site import site_of
from extender.allocation.situation import Situation, UsageOf
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import BEST, Answer, Failure, Known, Manner, Solution, solving
from extender.allocation.work import Work, finished

# Beyond so many candidates laying them out is a piece of work of its own.
LARGE: Final = 1024


def choose(snapshot: Snapshot, node: int, question: Question, manner: Manner = BEST) -> Answer:
    """Find devices on *node*, an index into the layout of *snapshot*."""
    return finished(choosing(snapshot, node, question, manner))


def choosing(snapshot: Snapshot, node: int, question: Question, manner: Manner = BEST) -> Work[Answer]:
    """Do the same piece by piece."""
    try:
        site = site_of(snapshot, node, question.features)
    except Unreadable as error:
        return Failure(str(error), is_local=manner.is_lenient)
    if len(site.board.candidates) > LARGE:
        yield
    known = Known(site.usages(), site.judge())
    return (yield from deciding(question, site.board, site.usage_of, manner, known))


def deciding(
    question: Question, board: Board, usage_of: UsageOf, manner: Manner, known: Known | None = None
) -> Work[Answer]:
    """Find devices on a board; fail where those that are found cannot be written down.

    As everywhere, what is preferred has no say in whether the node fits: upstream's solution decides.
    """
    if not board.several:
        return (yield from solving(question, board, usage_of, manner, known))
    first = replace(manner, preference=None, accepts=None, bound=None)
    answer = yield from solving(question, board, usage_of, first, known)
    complaint = _complaint(answer)
    if complaint or manner.preference is None or not isinstance(answer, Solution):
        return Failure(complaint, is_local=manner.is_lenient) if complaint else answer
    better = yield from solving(question, board, usage_of, manner, known)
    complaint = _complaint(better)
    if not manner.accepts:
        return answer if complaint or not isinstance(better, Solution) else better
    if not complaint:
        return better
    # What alone is accepted may be had of other devices, too.
    single = replace(manner, narrowed=partial(_of_single_terms, manner))
    other = yield from solving(question, board, usage_of, single, known)
    if isinstance(other, Solution) and manner.accepts(other.situation, other.picks) and not _complaint(other):
        return other
    return Failure(complaint, is_local=manner.is_lenient)


def _complaint(answer: Answer) -> str:
    """Say why what was found cannot be written down, if it cannot."""
    try:
        if isinstance(answer, Solution):
            check_writable(answer)
    except Unreadable as error:
        return str(error)
    return ""


def _of_single_terms(manner: Manner, situation: Situation) -> Situation:
    """Leave out the devices that are published for nodes of several terms, where there is a choice."""
    left = manner.narrowed(situation) if manner.narrowed else situation
    eligible = {at: replace(found, free=found.free & ~left.board.several) for at, found in left.eligible.items()}
    return replace(left, eligible=eligible)
