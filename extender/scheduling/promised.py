"""What is promised of nodes to pods that are on their way there: of these nothing that is bound tells."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from extender.allocation.layout import Layout
from extender.model.names import NodeName
from extender.model.quantity import Amounts

Counts = NDArray[np.int64]


class Promised:
    """Counts who is on the way to each node, by what they need: most need as much as others. One writer."""

    def __init__(self) -> None:
        self._by_amounts: dict[Amounts, Counter[NodeName]] = {}
        # The same as int64[nodes], of the layout that was asked about last.
        self._columns: dict[Amounts, Counts] = {}
        self._layout: Layout | None = None

    def add(self, node: NodeName, amounts: Amounts, count: int = 1) -> None:
        """Count *count* more pods, or fewer, that are on their way to *node* and need *amounts*."""
        nodes = self._by_amounts.setdefault(amounts, Counter())
        nodes[node] += count
        if not nodes[node]:
            del nodes[node]
        if not nodes:
            del self._by_amounts[amounts]
            self._columns.pop(amounts, None)
        elif self._layout is not None:
            self._note(self._columns.get(amounts), node, count)

    def on(self, layout: Layout) -> Iterable[tuple[Amounts, Counts]]:
        """Yield what is needed, and how often on each node, int64[nodes]."""
        if self._layout is None or self._layout.nodes is not layout.nodes:
            self._columns.clear()
        self._layout = layout
        for amounts, nodes in self._by_amounts.items():
            if amounts not in self._columns:
                self._columns[amounts] = np.zeros(len(layout.nodes), np.int64)
                for node, count in nodes.items():
                    self._note(self._columns[amounts], node, count)
            yield amounts, self._columns[amounts]

    def _note(self, column: Counts | None, node: NodeName, count: int) -> None:
        number = self._layout.number(node) if self._layout is not None and column is not None else None
        if number is not None and column is not None:
            column[number] += count
