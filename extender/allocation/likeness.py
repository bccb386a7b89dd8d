"""Which nodes are in one state to a question, cheaply: what is published is named once, and what is taken looked at.

Only of nodes that have all their devices to themselves: what others can have, too, is named by ``Naming`` alone.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from extender.allocation.columns import Column
from extender.allocation.grid import grid_of
from extender.allocation.memory import Basis
from extender.allocation.node_state import Found, Naming, States
from extender.allocation.passage import passage
from extender.allocation.snapshot import Snapshot
from extender.model.node import Node

# Nodes that are looked up one by one: of more it is cheaper to ask all at once.
FEW: Final = 16
# Nodes that are named together: the first of them is asked about, and its neighbours will be.
TOGETHER: Final = 16
# Nodes that are remembered for one question, of which there may be hundreds.
NODES: Final = 1 << 10
# About as many devices as are looked at for that.
CELLS: Final = 1 << 12
# What is published of a node, by name, and how much of each of its devices is taken, by the codes of the column.
State = tuple[bytes, bytes]


@dataclass(slots=True)
class Likeness:
    """Names of nodes apart from what is taken of them, as long as *states*, *basis* and *layout* are the same."""

    states: States
    basis: Basis
    layout: object
    _named: dict[int, tuple[Node, bytes]] = field(default_factory=dict)
    _seen: Snapshot | None = None
    _told: dict[int, State] = field(default_factory=dict)

    def holds(self, states: States, basis: Basis, snapshot: Snapshot) -> bool:
        return self.states is states and self.basis is basis and self.layout is snapshot.layout

    def state(self, snapshot: Snapshot, node: int) -> State | None:
        """Tell the state of *node* in *snapshot*; None where it sees what is not its own."""
        self._look(snapshot)
        state = self._told.get(node)
        if state is None and not snapshot.reach.view[node]:
            noun, known = snapshot.nodes[snapshot.layout.nodes[node]], self._named.get(node)
            if known is None or known[0] is not noun:
                self._name(snapshot, node)
                known = self._named[node]
            if len(self._told) >= NODES:
                self._told.clear()
            state = self._told[node] = known[1], snapshot.usage.codes[snapshot.layout.local(node)].tobytes()
        return state

    def all(self, snapshot: Snapshot, nodes: NDArray[np.int64]) -> list[State] | None:
        """Tell the states of *nodes*; None where any of them sees what is not its own."""
        found = list[State]()
        self._look(snapshot)
        for node in nodes.tolist():
            state = self._told.get(node) or self.state(snapshot, node)
            if state is None:
                return None
            found.append(state)
        return found

    def _look(self, snapshot: Snapshot) -> None:
        """Forget the states of the nodes that are not as they were when any was asked about last."""
        if self._seen is snapshot:
            return
        way = passage(self._seen, snapshot) if self._seen else None
        if way is None:
            self._told.clear()
        else:
            for node in way.changed.tolist():
                self._told.pop(node, None)
        self._seen = snapshot

    def known(
        self, snapshot: Snapshot, nodes: NDArray[np.int64]
    ) -> tuple[list[tuple[int, Found]], list[tuple[int, State]]]:
        """Return what was found out about the like of a few *nodes*, and the states of those of which nothing was."""
        found, left = list[tuple[int, Found]](), list[tuple[int, State]]()
        if len(nodes) > FEW:
            return found, left
        for node in nodes.tolist():
            state = self.state(snapshot, node)
            answer = self.states.known.get(state)
            if answer is not None:
                found.append((node, answer))
            elif state is not None:
                left.append((node, state))
        return found, left

    def _name(self, snapshot: Snapshot, node: int) -> None:
        together = max(1, min(TOGETHER, CELLS // max(1, len(snapshot.layout.local(node)))))
        first = node - node % together
        nodes = np.arange(first, min(first + together, len(snapshot.layout.nodes)))
        nodes = nodes[snapshot.reach.view[nodes] == 0]
        nothing: Column[Any] = Column(np.zeros_like(snapshot.usage.codes), snapshot.usage.dictionary)
        naming = Naming(self.states, replace(snapshot, usage=nothing), self.basis.matches, self.basis.added)
        names = naming.of(grid_of(snapshot.layout, nodes))
        if len(self._named) >= NODES:
            self._named.clear()
        for number, name in zip(nodes.tolist(), names, strict=True):
            self._named[number] = snapshot.nodes[snapshot.layout.nodes[number]], name
