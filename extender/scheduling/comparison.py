"""The node that a pod is offered beside the next best: what is told of a choice."""

from collections.abc import Mapping

from extender.model.names import NodeName
from extender.scheduling.decision import Ranked
from extender.scheduling.placement import Placement
from extender.scheduling.ranking import Ranking
from extender.scheduling.survey import Survey
from extender.scheduling.taste import Taste
from extender.topology.appraisal import Part


def compared(
    taste: Taste | None, surveyed: Survey, ranking: Ranking, scores: Mapping[NodeName, int], placement: Placement
) -> tuple[Ranked, ...]:
    """Describe the node of *placement* and the best of the others."""
    names, found = surveyed.snapshot.layout.nodes, list[Ranked]()
    for index, number in enumerate(ranking.nodes[:2].tolist()):
        name, is_ours = names[number], names[number] == placement.node
        if is_ours and placement.appraisal:
            value, parts = placement.appraisal.value, placement.appraisal.parts
        else:
            value, parts = int(ranking.values[index]), _parts(taste, surveyed, number)
        found.append(Ranked(name, scores[name], int(ranking.free[index]), value if taste else 0, parts))
    return tuple(found)


def _parts(taste: Taste | None, surveyed: Survey, node: int) -> tuple[Part, ...]:
    """Say what speaks for a node without a search, where that is known."""
    part = next((part for part in surveyed.parts if part.nodes[node]), None)
    if taste is None or part is None or part.fitter is None:
        return ()
    return taste.outline(part.fitter, part.policies, surveyed.snapshot, node, part.needed)
