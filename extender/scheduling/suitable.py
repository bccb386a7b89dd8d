"""Where kube-scheduler would let a pod be, devices apart: our own view of what its plugins say of nodes.

It is a guess: the scheduler judges the node again, and looks at all others where the guess was wrong.
"""

from collections.abc import Collection, Iterable
from itertools import compress
from operator import is_not
from typing import Final

import numpy as np

from extender.allocation.grid import Flags
from extender.allocation.snapshot import Snapshot
from extender.model.node import Node, Pod
from extender.model.node_selector import matches
from extender.model.taint import NO_SCHEDULE, Taint, blocking, tolerates
from extender.model.terms import Terms
from extender.scheduling.promised import Promised
from extender.state.loads import Loads
from extender.topology.memo import Memo

# Terms of which it is remembered which nodes meet them.
KINDS: Final = 64
UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
# Whose pods the plugin PodTopologySpread would have far from each other, unless its defaults are changed.
SPREAD: Final = frozenset(("ReplicaSet", "StatefulSet", "ReplicationController"))

Key = tuple[object, object, object]


class Suitable:
    """Judges nodes by labels, taints and what bound pods leave of them. One writer."""

    def __init__(self, loads: Loads) -> None:
        self._loads = loads
        self._listed: tuple[object, tuple[Node, ...]] = None, ()
        self._met: Memo[Key, tuple[tuple[Node, ...], Flags]] = Memo(KINDS)

    def nodes(
        self,
        terms: Terms,
        snapshot: Snapshot,
        promised: Promised | None = None,
        apart: Collection[str] = (),
    ) -> Flags | None:
        """Tell which nodes meet *terms* and have room beside what is *promised*; None where we cannot tell.

        *apart* names resources that devices stand behind: nodes have none of them. The answer is bool[nodes].
        """
        if not terms.is_all or not self._loads.is_known:
            return None
        return self._meeting(terms, snapshot) & self._roomy(terms, snapshot, promised, apart)

    def _meeting(self, terms: Terms, snapshot: Snapshot) -> Flags:
        """Judge the nodes that are other objects than when these terms were met last."""
        nodes = self._nodes(snapshot)
        key = terms.labels, terms.affinity, terms.tolerations
        before, flags = self._met.get(key, ((), np.zeros(0, np.bool_)))
        if before is nodes:
            return flags
        if len(before) != len(nodes):
            places: Iterable[int] = range(len(nodes))
            flags = np.zeros(len(nodes), np.bool_)
        else:
            places = compress(range(len(nodes)), map(is_not, before, nodes))
            flags = flags.copy()
        for place in places:
            flags[place] = is_met(terms, nodes[place])
        self._met[key] = nodes, flags
        return flags

    def _nodes(self, snapshot: Snapshot) -> tuple[Node, ...]:
        if self._listed[0] is not snapshot.nodes:
            self._listed = snapshot.nodes, tuple(map(snapshot.nodes.__getitem__, snapshot.layout.nodes))
        return self._listed[1]

    def _roomy(self, terms: Terms, snapshot: Snapshot, promised: Promised | None, apart: Collection[str]) -> Flags:
        rows = self._loads.rows_of(snapshot.layout.nodes)
        flags = np.ones(len(rows), np.bool_)
        for resource, number in terms.amounts:
            if resource in apart:
                continue
            free = self._loads.allocatable(resource, rows) - self._loads.used(resource, rows)
            if promised is not None:
                free -= promised.of(resource, snapshot.layout)
            flags &= free >= number
        return flags


def is_met(terms: Terms, node: Node) -> bool:
    """Tell whether *node* meets *terms*, but for what is left of it; one that puts the pod off does not."""
    taints = (*node.taints, UNSCHEDULABLE) if node.is_unschedulable else node.taints
    if taints and (blocking(taints, terms.tolerations) or is_put_off(terms, node)):
        return False
    if not terms.labels and terms.affinity is None:
        return True
    labels = dict(node.labels)
    has_labels = all(labels.get(key) == value for key, value in terms.labels)
    return has_labels and (terms.affinity is None or matches(terms.affinity, node.name, labels))


def is_weighed(pod: Pod, node: Node) -> bool:
    """Tell whether kube-scheduler's plugins may like another node better than *node* for more than how full it is.

    They look at what the pod prefers, at other pods, volumes and ports, at taints that only put off; and the pods of
    some controllers are spread by default. Of Services, which have theirs spread, too, and of what bound pods prefer
    we know nothing.
    """
    is_spread = any(owner.is_controller and owner.kind in SPREAD for owner in pod.owners)
    return is_spread or not pod.terms.is_all or is_put_off(pod.terms, node)


def is_put_off(terms: Terms, node: Node) -> bool:
    """Tell whether *node* has a taint that kube-scheduler would rather avoid."""
    soft = (taint for taint in node.taints if taint.effect == PREFER_NO_SCHEDULE)
    return any(not any(tolerates(entry, taint) for entry in terms.tolerations) for taint in soft)
