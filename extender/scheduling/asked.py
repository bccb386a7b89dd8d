"""The nodes that a question names: all looked up, or where nearly all are named the best ones alone."""

from collections.abc import Iterable, Sequence

from extender.allocation.grid import Flags
from extender.model.frozen import dataclass
from extender.model.names import NodeName
from extender.scheduling.ranking import Ranking, rank
from extender.scheduling.roll import Roll
from extender.scheduling.survey import Survey
from extender.state.table import Numbers

# Of ten nodes so many are named where the best are most likely among them.
NEARLY_ALL = 9


@dataclass(frozen=True, slots=True)
class Asked:
    """Those of *everything* that *names* have, or all."""

    names: Sequence[str] | None
    everything: Sequence[NodeName]
    roll: Roll

    @property
    def is_nearly_all(self) -> bool:
        return self.names is not None and 10 * len(self.names) >= NEARLY_ALL * len(self.everything)

    def flags(self) -> Flags | None:
        """bool[nodes]; None for all."""
        return None if self.names is None else self.roll.flags(self.names, self.everything)

    def among(self, nodes: Numbers) -> Numbers:
        """Leave those of *nodes* that are named."""
        flags = self.flags()
        return nodes if flags is None else nodes[flags[nodes]]

    def has(self, nodes: Iterable[int]) -> bool:
        """Tell whether each of *nodes* is named, without a look at the others."""
        return self.names is None or all(self.everything[node] in self.names for node in nodes)

    def count(self, nodes: Numbers) -> int:
        """Count those of *nodes* that are named."""
        # So many different names are those of all, but for a moment in which one node goes as another comes.
        is_all = self.names is None or len(self.names) == len(self.everything)
        return len(nodes) if is_all else len(self.among(nodes))


def first_of(surveyed: Survey, nodes: Numbers, asked: Asked, most: int) -> Ranking | None:
    """Rank the first of *nodes*, *most* at most, where these are named for sure; None where many have to be looked up.

    They are the first of all that are named, whoever else is.
    """
    if not (asked.is_nearly_all and len(nodes)):
        return None
    ranking = rank(surveyed.snapshot, nodes, (), surveyed.values, most).first(most)
    return ranking if asked.has(ranking.nodes.tolist()) else None
