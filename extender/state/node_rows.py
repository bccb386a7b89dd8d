"""Which row of the columns stands for which node: rows of nodes that are no more are given to others."""

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

from extender.model.names import NodeName

NOBODY: Final = -1

Rows = NDArray[np.int64]


class NodeRows:
    """Nodes by row. *changes* counts how often a row was given or taken back: until then, rows can be remembered."""

    def __init__(self) -> None:
        self.changes = 0
        self._row_of: dict[NodeName, int] = {}
        self._vacant: list[int] = []

    def __len__(self) -> int:
        """Return how many rows there are, vacant ones among them."""
        return len(self._row_of) + len(self._vacant)

    def __iter__(self) -> Iterator[NodeName]:
        return iter(self._row_of)

    def get(self, node: NodeName) -> int | None:
        return self._row_of.get(node)

    def row_for(self, node: NodeName) -> int:
        """Return the row of *node*, which gets one where it has none."""
        row = self._row_of.get(node)
        if row is not None:
            return row
        row = self._row_of[node] = self._vacant.pop() if self._vacant else len(self._row_of)
        self.changes += 1
        return row

    def take_back(self, node: NodeName) -> None:
        """Take back the row of *node*."""
        self._vacant.append(self._row_of.pop(node))
        self.changes += 1

    def rows_of(self, nodes: Sequence[NodeName]) -> Rows:
        """Return the row of each node, NOBODY where it has none: int64[nodes]."""
        return np.fromiter(map(self._row_of.get, nodes, repeat(NOBODY)), np.int64, len(nodes))
