"""Which devices a question gets on one node of a snapshot."""

from extender.allocation.cel import Budget
from extender.allocation.pools import Unreadable
from extender.allocation.question import Question
from extender.allocation.site import site_of
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import BEST, Answer, Failure, Known, Manner, solving
from extender.allocation.work import Work, finished


def choose(snapshot: Snapshot, node: int, question: Question, manner: Manner = BEST) -> Answer:
    """Find devices on *node*, an index into the layout of *snapshot*."""
    return finished(choosing(snapshot, node, question, manner))


def choosing(snapshot: Snapshot, node: int, question: Question, manner: Manner = BEST) -> Work[Answer]:
    """Do the same piece by piece."""
    try:
        site = site_of(snapshot, node, question.features)
    except Unreadable as error:
        return Failure(str(error), is_local=manner.is_lenient)
    known = Known(site.usages(), site.judge(Budget()))
    return (yield from solving(question, site.board, site.usage_of, manner, known))
