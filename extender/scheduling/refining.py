"""What the best nodes are worth exactly, where requests depend on each other: worked out by the search itself."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from extender.allocation.choose import choose
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Answer, Solution
from extender.scheduling.placement import Chooser
from extender.scheduling.ranking import Numbers, Ranking
from extender.scheduling.survey import Part, Survey
from extender.scheduling.taste import NONE, Taste
from extender.topology.policy import Policy

# Nodes that are looked at closely: those of which most can be expected.
CLOSELY: Final = 24


def refined(chooser: Chooser, surveyed: Survey, ranking: Ranking) -> Ranking:
    """Rank the first nodes of *ranking* by what their devices are worth when chosen; leave out those without any.

    Nodes behind them stay behind them. Which ones are looked at does not depend on what is remembered.
    """
    taste, snapshot = chooser.taste, surveyed.snapshot
    if taste is None or all(
        part.fitter is None or taste.is_exact(part.fitter, snapshot, part.policies) for part in surveyed.parts
    ):
        return ranking
    values, count = ranking.values.copy(), 0
    # Where a strict policy has nothing on the first nodes, it may have something on the next.
    while count < ranking.fresh and (values[:count] == NONE).all():
        first, count = count, min(count + CLOSELY, ranking.fresh)
        for part in surveyed.parts:
            here = first + np.flatnonzero(part.nodes[ranking.nodes[first:count]])
            if len(here) and part.fitter is not None:
                values[here] = _worth(chooser, taste, part, snapshot, ranking.nodes[here])
    order = np.concatenate((np.lexsort((np.arange(count), -values[:count])), np.arange(count, len(values))))
    order = order[values[order] != NONE]
    fresh = int(np.count_nonzero(order < ranking.fresh))
    return Ranking(ranking.nodes[order], ranking.free[order], _descending(values[order]), fresh)


def _descending(values: Numbers) -> Numbers:
    """Lower what is only an estimate to what was worked out before it."""
    return np.minimum.accumulate(values) if len(values) else values


def _worth(chooser: Chooser, taste: Taste, part: Part, snapshot: Snapshot, nodes: Numbers) -> list[int]:
    """Work out what each of *nodes* is worth, once for each state of each machine."""
    if part.fitter is None or part.question is None:
        return []
    numbers = taste.atlas.numbers(snapshot)[nodes].tolist()
    states, names = part.fitter.states_of(snapshot, nodes)
    manner = taste.manner(chooser.manner, part.policies)
    values = []
    for node, number, name in zip(nodes.tolist(), numbers, names, strict=True):
        beside = taste.beside(part.fitter, snapshot, node, part.needed)
        key = id(states), part.policies, number, name, beside
        known = taste.found.get(key)
        if known is None or known[0] is not states:
            answer = choose(snapshot, node, part.question, manner)
            known = taste.found[key] = states, _value(taste, answer, part.policies)
        values.append(known[1])
    return values


def _value(taste: Taste, answer: Answer, policies: Sequence[Policy]) -> int:
    if not isinstance(answer, Solution) or not taste.accepts(answer, policies):
        return NONE
    return taste.appraise(answer, policies, tells=False).value
