"""Which of the nodes that fit are offered, in which order, and with which scores."""

from collections.abc import Collection
from enum import StrEnum

import numpy as np

from extender.allocation.snapshot import Snapshot
from extender.model.frozen import dataclass
from extender.state.table import Numbers

# What kube-scheduler calls a full score.
FULL = 10
# What fits into the numbers that nodes are ordered by.
ROOM = 1 << 62


class Answer(StrEnum):
    """How many of the nodes that fit the scheduler is offered."""

    AUTO = "auto"
    ALL = "all"
    SHORTLIST = "shortlist"
    ONE = "one"


@dataclass(frozen=True, slots=True)
class AnswerPolicy:
    """What to offer: all nodes, so that the scheduler's own scores count fully, the best *shortlist*, or the best.

    By AUTO it is the best one of the shortlist, unless the scheduler may prefer another: see is_weighed.
    """

    answer: Answer = Answer.AUTO
    shortlist: int = 8

    @property
    def most(self) -> int | None:
        """How many nodes to offer; None for all."""
        return {Answer.ALL: None, Answer.ONE: 1}.get(self.answer, self.shortlist)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Nodes with their free devices and what their devices are worth, the best first; *fresh* ones come first."""

    nodes: Numbers
    free: Numbers
    values: Numbers
    fresh: int

    def scores(self, policy: AnswerPolicy) -> Numbers:
        """Rank the values from FULL downwards; nodes from which the pod came back have none.

        In a shortlist each node has a score of its own, so that no tie is left to chance; among all nodes those that
        are worth the same have the same, so that the scheduler's own scores decide.
        """
        count = len(self.nodes)
        if policy.most is not None and count <= FULL + 1:
            return FULL - np.arange(count)
        steps = np.cumsum(np.diff(self.values[: self.fresh], prepend=self.values[:1]) != 0)
        scores = np.zeros(count, np.int64)
        scores[: self.fresh] = np.maximum(FULL - steps, 0)
        return scores

    def first(self, count: int) -> "Ranking":
        return Ranking(self.nodes[:count], self.free[:count], self.values[:count], min(self.fresh, count))


def rank(
    snapshot: Snapshot, nodes: Numbers, shunned: Collection[int], values: Numbers | None, most: int | None = None
) -> Ranking:
    """Rank *nodes*, in ascending order, by what their devices are worth, int64[nodes of the snapshot].

    Of equal ones those with the fewest free devices come first; without *values* the fewest are best. The *shunned*
    nodes, from which the pod came back, are last. With *most* only so many of the best need to be ranked.
    """
    free = np.bitwise_count(snapshot.free[nodes]).sum(axis=1, dtype=np.int64)
    worth = -free if values is None else values[nodes]
    keys = _keys(worth, free)
    # Of the first ones no more than those that are shunned are not wanted.
    if most is not None and most + len(shunned) < len(keys):
        kept = np.flatnonzero(keys <= np.partition(keys, most + len(shunned))[most + len(shunned)])
        nodes, free, worth, keys = nodes[kept], free[kept], worth[kept], keys[kept]
    order, fresh = np.argsort(keys, kind="stable"), len(keys)
    if shunned:
        is_shunned = np.isin(nodes[order], np.fromiter(shunned, np.int64, len(shunned)))
        order, fresh = order[np.argsort(is_shunned, kind="stable")], int(np.count_nonzero(~is_shunned))
    return Ranking(nodes[order], free[order], worth[order], fresh)


def _keys(worth: Numbers, free: Numbers) -> Numbers:
    """Return numbers that order nodes as what they are worth does, highest first, and then what is free there."""
    scale = int(free.max(initial=0)) + 1
    if int(np.abs(worth).max(initial=0)) < ROOM // scale:
        return free - worth * scale
    places = np.empty(len(worth), np.int64)
    order = np.lexsort((free, -worth))
    is_next = (np.diff(worth[order], prepend=worth[order[:1]]) != 0) | (
        np.diff(free[order], prepend=free[order[:1]]) != 0
    )
    places[order] = np.cumsum(is_next)
    return places


def offered(ranking: Ranking, policy: AnswerPolicy) -> Ranking:
    """Leave what *policy* offers; nodes from which the pod came back only where there are no others."""
    if policy.most is None:
        return ranking
    return ranking.first(min(policy.most, ranking.fresh or policy.most))


def leading(scores: Numbers, held: int) -> Numbers:
    """Set the node at *held*, on which devices are kept, off from its equals: there they may be the next pod's."""
    others = scores.copy()
    others[held] = 0
    lead = max(1, int(scores[held]))
    # All others are lowered together, or a worse node would catch up with a better one.
    led = np.maximum(others - max(0, int(others.max()) - lead + 1), 0)
    led[held] = lead
    return led
