"""What the best nodes are worth exactly, where requests depend on each other: worked out by the search itself."""

from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np

from extender.allocation.choose import choose
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import Answer, Solution
from extender.scheduling.choosing import Chooser
from extender.scheduling.preferring import Preferring
from extender.scheduling.ranking import FULL, Numbers, Ranking
from extender.scheduling.survey import Part, Survey
from extender.scheduling.survey import Unfinished as Unfinished  # noqa: PLC0414 - the planner takes it from here
from extender.scheduling.taste import NONE, Taste
from extender.topology.appraisal import Appraisal

# Nodes that are looked at closely: those of which most can be expected. Where a strict policy has few of them, so many
# are looked at before these few are enough; no shortlist is longer than ENOUGH.
CLOSELY: Final = 24
FAR: Final = 72
ENOUGH: Final = FULL + 1
# New searches for one pod: nobody else is answered meanwhile.
SEARCHES: Final = 96
# What is remembered of thousands of states is told in a few ways only.
_shared: Final = lru_cache(maxsize=1024)(Appraisal)


def refined(chooser: Chooser, surveyed: Survey, ranking: Ranking) -> Ranking:
    """Rank the first nodes of *ranking* by what their devices are worth when chosen; leave out those without any.

    Nodes behind them stay behind them. Which ones are looked at does not depend on what is remembered.
    Raise Unfinished.
    """
    taste, snapshot = chooser.taste, surveyed.snapshot
    if taste is None or is_settled(taste, surveyed):
        return ranking
    values, count, fresh, searches = ranking.values.copy(), 0, ranking.fresh, 0
    taste.looked_at = {}
    # Where a strict policy has little on the first nodes, it may have more on the next.
    while count < len(values) and not _is_enough(values[:count], fresh):
        first, count = count, min(count + CLOSELY, fresh if count < fresh else len(values))
        for part in surveyed.parts:
            here = first + np.flatnonzero(part.nodes[ranking.nodes[first:count]])
            if len(here) and part.fitter is not None:
                values[here], searched = _worth(chooser, taste, part, snapshot, ranking.nodes[here])
                searches += searched
        if searches > SEARCHES:
            raise Unfinished
    seen = np.arange(count)
    # Behind a few that a strict policy has, nobody knows of any.
    rest = np.arange(count, len(values)) if np.count_nonzero(values[:count] != NONE) >= min(ENOUGH, count) else seen[:0]
    order = np.concatenate((np.lexsort((seen, -values[:count], seen >= fresh)), rest))
    order = order[values[order] != NONE]
    fresh = int(np.count_nonzero(order < fresh))
    return Ranking(ranking.nodes[order], ranking.free[order], _descending(values[order]), fresh)


def is_settled(taste: Taste | None, surveyed: Survey) -> bool:
    """Tell whether nodes need not be looked at closely: what they are worth is known."""
    snapshot = surveyed.snapshot
    return taste is None or all(
        part.fitter is None or taste.is_exact(part.fitter, snapshot, part.policies) for part in surveyed.parts
    )


def _is_enough(values: Numbers, fresh: int) -> bool:
    found = int(np.count_nonzero(values != NONE))
    return bool(found) and (found >= ENOUGH or len(values) >= min(FAR, fresh))


def _descending(values: Numbers) -> Numbers:
    """Lower what is only an estimate to what was worked out before it."""
    return np.minimum.accumulate(values) if len(values) else values


def _worth(chooser: Chooser, taste: Taste, part: Part, snapshot: Snapshot, nodes: Numbers) -> tuple[list[int], int]:
    """Work out what each of *nodes* is worth, once for each state of each machine; tell how many were searched."""
    if part.fitter is None or part.question is None:
        return [], 0
    numbers = taste.atlas.numbers(snapshot)[nodes].tolist()
    states, names = part.fitter.states_of(snapshot, nodes)
    basis, sharing = taste.number(part.question, part.policies), taste.sharing(part.fitter, snapshot)
    values, searched, preferring = list[int](), 0, None
    for node, number, name in zip(nodes.tolist(), numbers, names, strict=True):
        beside = taste.beside(part.fitter, snapshot, node, part.needed) if sharing is not None else None
        key = id(states), basis, number, name, beside, taste.editions.of(snapshot, node)
        known = taste.found.get(key)
        if known is None or known[0] is not states:
            searched += 1
            preferring = preferring or taste.preferring(part.question, part.policies)
            manner = replace(preferring.manner(chooser.manner), is_sure=True)
            answer = choose(snapshot, node, part.question, manner)
            known = taste.found[key] = states, _appraised(preferring, answer)
        taste.looked_at[node] = known[1]
        values.append(known[1].value)
    return values, searched


def _appraised(preferring: Preferring, answer: Answer) -> Appraisal:
    if not isinstance(answer, Solution) or not preferring.accepts(answer):
        return _shared(NONE)
    return _shared(*preferring.appraise(answer))
