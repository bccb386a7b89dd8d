"""Scores remembered between filter and prioritize, which follow each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.model.names import NodeName, Uid
from extender.scheduling.roll import Roll
from extender.scheduling.scored import Scored
from extender.topology.memo import Memo
from extender.web.names import only

# Pods whose scores are remembered.
REMEMBERED = 256


@dataclass(slots=True)
class Remembered:
    """The scores of the pods that were asked about last; *roll* knows the names of their nodes."""

    roll: Roll
    _scores: Memo[Uid, Mapping[NodeName, int]] = field(default_factory=lambda: Memo(REMEMBERED))

    def put(self, pod: Uid, scores: Mapping[NodeName, int]) -> None:
        """Keep *scores* until prioritize asks for them; where there are none, those of an earlier plan go."""
        self._scores.pop(pod, None)
        if scores:
            self._scores[pod] = scores

    def kept(self, names: Sequence[str], flags: NDArray[np.bool_], everything: Sequence[NodeName]) -> Sequence[str]:
        """Leave the names with a flag, bool[names]: prioritize will ask about these."""
        kept, numbers = only(names, flags), self.roll.numbers(names, everything)
        self.roll.remember(kept, numbers[flags])
        return kept

    def of(self, pod: Uid, names: Sequence[str]) -> list[int] | None:
        """Return the score of each of *names*; None where none are remembered."""
        scores = self._scores.get(pod)
        if isinstance(scores, Scored) and self.roll.knows(scores.everything):
            found: list[int] = scores.scores[self.roll.numbers(names, scores.everything)].tolist()
            return found
        return None if scores is None else [scores.get(NodeName(name), 0) for name in names]
