"""The node that a pod is offered beside the next best: what is told of a choice."""

from functools import lru_cache
from typing import Final

from extender.scheduling.choosing import Chooser
from extender.scheduling.decision import Ranked
from extender.scheduling.placement import Placement
from extender.scheduling.ranking import Ranking
from extender.scheduling.survey import Survey
from extender.state.table import Numbers
from extender.topology.appraisal import Part

# Thousands of records are kept, and most of them say the same.
_shared: Final = lru_cache(maxsize=4096)(tuple[Part, ...])


def compared(
    chooser: Chooser, surveyed: Survey, ranking: Ranking, scores: Numbers, placement: Placement
) -> tuple[Ranked, ...]:
    """Describe the node of *placement* and the best of the others: *scores* are those of the ranking's nodes."""
    names, found = surveyed.snapshot.layout.nodes, list[Ranked]()
    drivers = {item.device.driver for _, allocation in placement.claims for item in allocation.devices}
    for index, number in enumerate(ranking.nodes[:2].tolist()):
        name, is_ours = names[number], names[number] == placement.node
        if is_ours and placement.appraisal:
            value, parts = placement.appraisal.value, placement.appraisal.parts
        else:
            value, parts = int(ranking.values[index]), _parts(chooser, surveyed, number)
        worth = value if chooser.taste else 0
        free = surveyed.snapshot.count_free(number, drivers)
        found.append(Ranked(name, int(scores[index]), free, worth, _shared(parts)))
    return tuple(found)


def _parts(chooser: Chooser, surveyed: Survey, node: int) -> tuple[Part, ...]:
    """Say what speaks for a node, as far as it was looked at."""
    taste, snapshot = chooser.taste, surveyed.snapshot
    part = next((part for part in surveyed.parts if part.nodes[node]), None)
    if taste is None or part is None or part.fitter is None:
        return ()
    told = taste.outline(part.fitter, part.policies, snapshot, node, part.needed)
    if told is not None:
        return told
    known = taste.looked_at.get(node)
    return known.parts if known else ()
