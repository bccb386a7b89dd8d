"""What is promised of nodes to pods that are on their way there: of these nothing that is bound tells."""

from collections import Counter, defaultdict

import numpy as np

from extender.allocation.layout import Layout
from extender.model.names import NodeName
from extender.model.quantity import Amounts
from extender.state.table import Numbers


class Promised:
    """Adds up what those need who are on their way to each node, as they come and go. One writer."""

    def __init__(self) -> None:
        self._by_resource: defaultdict[str, Counter[NodeName]] = defaultdict(Counter)
        # The same as int64[nodes] of the layout that was asked about last.
        self._columns: dict[str, Numbers] = {}
        self._layout: Layout | None = None

    def add(self, node: NodeName, amounts: Amounts, sign: int = 1) -> None:
        """Add what one more needs who is on the way to *node*; take it away again with a *sign* of -1."""
        number = self._layout.number(node) if self._layout else None
        for resource, amount in amounts:
            on_nodes = self._by_resource[resource]
            on_nodes[node] += sign * amount
            if not on_nodes[node]:
                del on_nodes[node]
            if not on_nodes:
                del self._by_resource[resource]
                self._columns.pop(resource, None)
            elif number is not None and resource in self._columns:
                self._columns[resource][number] += sign * amount

    def of(self, resource: str, layout: Layout) -> Numbers:
        """Return how much of *resource* is promised on each node, int64[nodes]; it changes as they come and go."""
        if self._layout is None or self._layout.nodes is not layout.nodes:
            self._columns.clear()
            self._layout = layout
        if resource not in self._by_resource:
            # Whoever makes pods may ask for ten thousand, each by another name: of these no column is kept.
            return np.zeros(len(layout.nodes), np.int64)
        if resource not in self._columns:
            self._columns[resource] = self._column(resource, layout)
        return self._columns[resource]

    def _column(self, resource: str, layout: Layout) -> Numbers:
        column = np.zeros(len(layout.nodes), np.int64)
        for node, amount in self._by_resource[resource].items():
            number = layout.number(node)
            if number is not None:
                column[number] = amount
        return column
