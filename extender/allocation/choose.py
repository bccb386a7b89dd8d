"""Which devices a question gets on one node of a snapshot."""

from extender.allocation.cel import Budget
from extender.allocation.pools import Unreadable
from extender.allocation.question import Question
from extender.allocation.site import site_of
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import BEST, Answer, Failure, Known, Manner, solve


def choose(snapshot: Snapshot, node: int, question: Question, manner: Manner = BEST) -> Answer:
    """Find devices on *node*, an index into the layout of *snapshot*."""
    try:
        site = site_of(snapshot, node, question.features)
    except Unreadable as error:
        return Failure(str(error), is_local=manner.is_lenient)
    return solve(question, site.board, site.usage_of, manner, Known(site.usages(), site.judge(Budget())))
