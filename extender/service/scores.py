"""Scores remembered between filter and prioritize, which follow each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from extender.model.names import NodeName, Uid
from extender.scheduling.roll import Roll
from extender.scheduling.scored import Scored
from extender.service.afterwards import Afterwards
from extender.topology.memo import Memo
from extender.web.names import Names, only
from extender.web.reply import written
from extender.web.verbs import Scores, Written

# Pods whose scores are remembered.
REMEMBERED = 256


@dataclass(slots=True)
class Remembered:
    """The scores of the pods that were asked about last; *roll* knows the names of their nodes.

    Those of many names are written *afterwards*, while the scheduler reads which nodes have passed.
    """

    roll: Roll
    afterwards: Afterwards = field(default_factory=Afterwards)
    _scores: Memo[Uid, Mapping[NodeName, int]] = field(default_factory=lambda: Memo(REMEMBERED))
    _written: tuple[Uid, Names, Written] | None = None

    def put(self, pod: Uid, scores: Mapping[NodeName, int]) -> None:
        """Keep *scores* until prioritize asks for them; where there are none, those of an earlier plan go."""
        self._written = None
        self._scores.pop(pod, None)
        if scores:
            self._scores[pod] = scores

    def kept(
        self, pod: Uid, names: Sequence[str], flags: NDArray[np.bool_], everything: Sequence[NodeName]
    ) -> Sequence[str]:
        """Leave the names with a flag, bool[names]: prioritize will ask about these."""
        kept, numbers = only(names, flags), self.roll.numbers(names, everything)
        self.roll.remember(kept, numbers[flags])
        if isinstance(kept, Names) and kept.is_plain:
            self.afterwards.put(partial(self._write, pod, kept))
        return kept

    def of(self, pod: Uid, names: Sequence[str]) -> Scores:
        """Return the score of each of *names*; None where none are remembered."""
        if self._written is not None and self._written[0] == pod and self._written[1] == names:
            return self._written[2]
        return self._found(pod, names)

    def _write(self, pod: Uid, names: Names) -> None:
        scores = self._found(pod, names)
        self._written = None if scores is None else (pod, names, Written(written(names, scores)))

    def _found(self, pod: Uid, names: Sequence[str]) -> list[int] | None:
        scores = self._scores.get(pod)
        if isinstance(scores, Scored) and self.roll.knows(scores.everything):
            found: list[int] = scores.scores[self.roll.numbers(names, scores.everything)].tolist()
            return found
        return None if scores is None else [scores.get(NodeName(name), 0) for name in names]
