"""Where kube-scheduler would let a pod be, devices apart: our own view of what its plugins say of nodes.

It is a guess: the scheduler judges the node again, and looks at all others where the guess was wrong.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress
from operator import is_not
from typing import Final

import numpy as np

from extender.allocation.grid import Flags
from extender.allocation.snapshot import Snapshot
from extender.model.names import NodeName
from extender.model.node import Node, Pod
from extender.model.node_selector import matches, pinned
from extender.model.taint import NO_SCHEDULE, Taint, blocking, is_about, tolerates
from extender.model.terms import Terms
from extender.scheduling.promised import Promised
from extender.state.loads import Loads
from extender.topology.memo import Memo

# Terms of which it is remembered which nodes meet them.
KINDS: Final = 64
# Looks at terms and their requirements in one go, some 0.7 microseconds each. Where there are more we do not guess.
MOST_LOOKS: Final = 1 << 18
# So many values, and tolerations, are looked at in the time of one of these.
VALUES: Final = 64
TOLERATIONS: Final = 4
UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
# How numbers are tolerated where kube-scheduler's alpha feature TaintTolerationComparisonOperators is on.
COMPARING: Final = ("Gt", "Lt")
# Whose pods the plugin PodTopologySpread would have far from each other, unless its defaults are changed.
SPREAD: Final = frozenset(("ReplicaSet", "StatefulSet", "ReplicationController"))

Key = tuple[object, object, object, bool]


class Suitable:
    """Judges nodes by labels, taints and what bound pods leave of them. One writer."""

    def __init__(self, loads: Loads) -> None:
        self._loads = loads
        self._listed: tuple[object, tuple[Node, ...]] = None, ()
        # By label and value, where these are among *nodes*.
        self._indexed: tuple[Node, ...] = ()
        self._index: dict[str, dict[str, list[int]]] = {}
        self._met: Memo[Key, tuple[tuple[Node, ...], Flags]] = Memo(KINDS)

    def nodes(self, terms: Terms, snapshot: Snapshot, promised: Promised, apart: Collection[str]) -> Flags | None:
        """Tell which nodes meet *terms* and have room beside what is *promised*; None where we cannot tell.

        *apart* names resources that devices stand behind where nodes have none. The answer is bool[nodes].
        """
        if not terms.is_all or not self._loads.is_known:
            return None
        flags = self._meeting(terms, snapshot, is_wary=True)
        return None if flags is None else flags & self._roomy(terms, snapshot, promised, apart)

    def meeting(self, terms: Terms, snapshot: Snapshot) -> Flags:
        """Tell which nodes are not sure to be refused for labels or taints, whatever else has a say: bool[nodes]."""
        flags = None if terms.is_long else self._meeting(terms, snapshot, is_wary=False)
        return np.ones(len(snapshot.layout.nodes), np.bool_) if flags is None else flags

    def roomy(self, terms: Terms, snapshot: Snapshot, promised: Promised, apart: Collection[str]) -> Flags:
        """Tell which nodes have room, as far as that is known, beside what is *promised*: bool[nodes]."""
        if not self._loads.is_known:
            return np.ones(len(snapshot.layout.nodes), np.bool_)
        return self._roomy(terms, snapshot, promised, apart)

    def _meeting(self, terms: Terms, snapshot: Snapshot, *, is_wary: bool) -> Flags | None:
        """Judge nodes that are other objects than when these terms were met last; None where that takes too long."""
        nodes = self._nodes(snapshot)
        key = terms.labels, terms.affinity, terms.tolerations, is_wary
        before, flags = self._met.get(key, ((), np.zeros(0, np.bool_)))
        if before is nodes:
            return flags
        if len(before) != len(nodes):
            places = self._candidates(terms, snapshot)
            flags = np.zeros(len(nodes), np.bool_)
        else:
            places = list(compress(range(len(nodes)), map(is_not, before, nodes)))
            flags = flags.copy()
        if len(places) * _looks(terms) > MOST_LOOKS:
            return None
        for place in places:
            flags[place] = is_met(terms, nodes[place], is_wary=is_wary)
        self._met[key] = nodes, flags
        return flags

    def _candidates(self, terms: Terms, snapshot: Snapshot) -> Sequence[int]:
        """Name the nodes that may meet *terms*: of thousands of pods each may be tied to a node of its own."""
        nodes, names = self._nodes(snapshot), pinned(terms.affinity) if terms.affinity else None
        if names is not None:
            return snapshot.layout.numbers(map(NodeName, names))
        if not terms.labels:
            return range(len(nodes))
        index = self._with({key for key, _ in terms.labels}, nodes)
        return min((index.get(key, {}).get(value, ()) for key, value in terms.labels), key=len)

    def _with(self, keys: AbstractSet[str], nodes: tuple[Node, ...]) -> Mapping[str, Mapping[str, Sequence[int]]]:
        """Say which of *nodes* have which value of each label of *keys*, thousands perhaps: they are gone through once.

        What none of them has is for whoever makes pods to say, and is not kept.
        """
        if self._indexed is not nodes:
            self._indexed, self._index = nodes, {}
        unknown = keys - self._index.keys()
        for place, node in enumerate(nodes) if unknown else ():
            for name, value in node.labels:
                if name in unknown:
                    self._index.setdefault(name, {}).setdefault(value, []).append(place)
        return self._index

    def _nodes(self, snapshot: Snapshot) -> tuple[Node, ...]:
        if self._listed[0] is not snapshot.nodes:
            self._listed = snapshot.nodes, tuple(map(snapshot.nodes.__getitem__, snapshot.layout.nodes))
        return self._listed[1]

    def _roomy(self, terms: Terms, snapshot: Snapshot, promised: Promised, apart: Collection[str]) -> Flags:
        rows = self._loads.rows_of(snapshot.layout.nodes)
        flags = np.ones(len(rows), np.bool_)
        for resource, number in terms.amounts:
            has = self._loads.allocatable(resource, rows)
            free = has - self._loads.used(resource, rows) - promised.of(resource, snapshot.layout)
            # Where a device plugin has some of it the scheduler counts these alone.
            flags &= (free >= number) | (resource in apart and has <= 0)
        return flags


def _looks(terms: Terms) -> int:
    """Say with how many looks at a node it turns out whether it meets *terms*."""
    alternatives = terms.affinity.terms if terms.affinity else ()
    requirements = [item for each in alternatives for item in (*each.expressions, *each.fields)]
    values = sum(len(item.values) for item in requirements)
    return len(alternatives) + len(requirements) + values // VALUES + len(terms.tolerations) // TOLERATIONS


def is_met(terms: Terms, node: Node, *, is_wary: bool) -> bool:
    """Tell whether *node* meets *terms*, but for what is left of it; to the wary one that puts the pod off does not."""
    taints = (*node.taints, UNSCHEDULABLE) if node.is_unschedulable else node.taints
    if taints and (_is_kept_off(terms, taints, is_wary=is_wary) or (is_wary and is_put_off(terms, node))):
        return False
    has_labels = all(label in node.labels for label in terms.labels)
    return has_labels and (terms.affinity is None or matches(terms.affinity, node.name, dict(node.labels)))


def _is_kept_off(terms: Terms, taints: Iterable[Taint], *, is_wary: bool) -> bool:
    """Tell whether some of *taints* keep the pod off, as the wary one thinks of those that a number may tolerate."""
    return any(is_wary or not _may_compare(terms, taint) for taint in blocking(taints, terms.tolerations))


def _may_compare(terms: Terms, taint: Taint) -> bool:
    return any(entry.operator in COMPARING and is_about(entry, taint) for entry in terms.tolerations)


def is_weighed(pod: Pod, node: Node) -> bool:
    """Tell whether kube-scheduler's plugins may like another node better than *node* for more than how full it is.

    They look at what the pod prefers, at other pods, volumes and ports, at taints that only put off; and the pods of
    some controllers are spread by default. Of Services, which have theirs spread, too, and of what bound pods prefer
    we know nothing.
    """
    is_spread = any(owner.kind in SPREAD for owner in pod.owners)
    return is_spread or not pod.terms.is_all or is_put_off(pod.terms, node)


def is_put_off(terms: Terms, node: Node) -> bool:
    """Tell whether *node* has a taint that kube-scheduler would rather avoid."""
    soft = (taint for taint in node.taints if taint.effect == PREFER_NO_SCHEDULE)
    return any(not any(tolerates(entry, taint) for entry in terms.tolerations) for taint in soft)
