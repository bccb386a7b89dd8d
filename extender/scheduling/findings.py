"""What was found of each node for one question: where nothing has changed since nobody need look again."""

from collections.abc import Hashable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from extender.allocation.passage import passage
from extender.allocation.snapshot import Snapshot
from extender.scheduling.taste import Taste
from extender.topology.appraisal import Appraisal
from extender.topology.ratings import NONE, Values

NOTHING: Final = Appraisal(NONE)
# Appraisals that may be left over of earlier states, beside as many as there are nodes.
SPARE: Final = 256


class Findings:
    """What each node's devices are worth, where that is known, by *taste* on one *basis*. One writer.

    due: bool[nodes], which are to be looked at. Which appraisal a node has is told by a code: int32[nodes].
    """

    def __init__(self, taste: Taste, basis: Hashable, snapshot: Snapshot) -> None:
        self.taste, self.basis = taste, basis
        self.due: NDArray[np.bool_]
        self._codes: NDArray[np.int32]
        self._begin(snapshot)

    def update(self, snapshot: Snapshot) -> None:
        """Forget what was found of nodes that are not as they were."""
        way = passage(self.snapshot, snapshot)
        if way is None or len(self._appraisals) > 2 * len(self.due) + SPARE:
            self._begin(snapshot)
            return
        if snapshot is self.snapshot:
            return
        machines, editions = way.carried(self._machines), self._editions
        self.due, self._codes = way.carried(self.due), way.carried(self._codes)
        self._see(snapshot)
        gone = self._machines != machines
        gone[way.changed] = True
        views = [view for view, number in self._editions.items() if editions.get(view) != number]
        gone |= np.isin(snapshot.reach.view, views)
        self.drop(gone)

    def drop(self, nodes: NDArray[np.bool_]) -> None:
        """Forget what was found of *nodes*, bool[nodes]."""
        self.due[nodes], self._codes[nodes] = True, 0

    def put(self, node: int, found: Appraisal) -> None:
        self.due[node] = False
        self._codes[node] = self._appraisals.setdefault(found, len(self._appraisals))

    def of(self, node: int) -> Appraisal:
        return list(self._appraisals)[int(self._codes[node])]

    def values(self) -> Values:
        """Return what the devices are worth, int64[nodes]: NONE where there are none, or nobody has looked."""
        return np.array([found.value for found in self._appraisals], np.int64)[self._codes]

    def _begin(self, snapshot: Snapshot) -> None:
        self._see(snapshot)
        count = len(snapshot.layout.nodes)
        self.due = np.ones(count, np.bool_)
        self._codes, self._appraisals = np.zeros(count, np.int32), {NOTHING: 0}

    def _see(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._machines = self.taste.atlas.numbers(snapshot)
        # What is published in the shared pools of each view, by one of the nodes that have it.
        self._editions: dict[int, int] = {}
        if snapshot.reach.view.any():
            for view, node in zip(*np.unique(snapshot.reach.view, return_index=True), strict=True):
                self._editions[int(view)] = self.taste.editions.of(snapshot, int(node))
