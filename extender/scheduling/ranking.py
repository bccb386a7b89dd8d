"""Which of the nodes that fit are offered, in which order, and with which scores."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from extender.allocation.snapshot import Snapshot

# What kube-scheduler calls a full score.
FULL = 10

Numbers = NDArray[np.int64]


class Answer(StrEnum):
    """How many of the nodes that fit the scheduler is offered."""

    ALL = "all"
    SHORTLIST = "shortlist"
    ONE = "one"


@dataclass(frozen=True, slots=True)
class Policy:
    """What to offer: all nodes, so that the scheduler's own scores count fully, the best *shortlist*, or the best."""

    answer: Answer = Answer.SHORTLIST
    shortlist: int = 8

    @property
    def most(self) -> int | None:
        """How many nodes to offer; None for all."""
        return {Answer.ALL: None, Answer.SHORTLIST: self.shortlist, Answer.ONE: 1}[self.answer]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Nodes with their free devices and scores, the best first."""

    nodes: Numbers
    free: Numbers
    scores: Numbers


def rank(snapshot: Snapshot, nodes: Numbers, shunned: Collection[int]) -> Ranking:
    """Rank *nodes* by the fewest free devices; the *shunned* ones, from which the pod came back, are last."""
    free = np.bitwise_count(snapshot.free[nodes]).sum(axis=1, dtype=np.int64)
    is_shunned = np.isin(nodes, np.fromiter(shunned, np.int64, len(shunned)))
    order = np.lexsort((nodes, free, is_shunned))
    scores = np.where(is_shunned, 0, _scores(free))
    return Ranking(nodes[order], free[order], scores[order])


def offered(ranking: Ranking, policy: Policy, shunned: Collection[int]) -> Ranking:
    """Leave what *policy* offers; nodes from which the pod came back only where there are no others."""
    if policy.most is None:
        return ranking
    fresh = int(np.count_nonzero(~np.isin(ranking.nodes, np.fromiter(shunned, np.int64, len(shunned)))))
    count = min(policy.most, fresh or policy.most)
    return Ranking(ranking.nodes[:count], ranking.free[:count], ranking.scores[:count])


def _scores(free: Numbers) -> Numbers:
    """Spread the scores over what is there: full for the fewest free devices, none for the most."""
    least, most = (int(free.min()), int(free.max())) if len(free) else (0, 0)
    if most == least:
        return np.full(len(free), FULL, np.int64)
    return FULL * (most - free) // (most - least)
