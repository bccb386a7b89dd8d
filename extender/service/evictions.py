"""For whom others have been evicted, and where: until their devices are let go of, nobody else has to go.

kube-scheduler tries the pod again as soon as the last of them is gone. The controller frees their claims a moment
later: meanwhile the pod fits nowhere, and the next would be evicted in vain.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.veto import Ahead
from extender.state.ledger import Promise
from extender.topology.memo import Memo

# How long claims of pods that are gone may take to be freed: the controller frees some ten a second.
PATIENCE_S: Final = 15.0
# How long who was evicted may take to end, at most: one that takes longer is stuck, and nobody waits for it.
LASTING_S: Final = 3600.0
# How long it may take until it is shown which of the nodes the scheduler has chosen.
SHOWN_S: Final = 1.0
# After how long a pod is tried again whose devices were let go of while the scheduler was told that there are none.
SOON_S: Final = 1.0
# Pods that are remembered, with all nodes that the scheduler could choose from.
REMEMBERED: Final = 256

Victims = Mapping[NodeName, tuple[Uid, ...]]


@dataclass(slots=True)
class Eviction:
    """Who goes, on whichever of the nodes, and until when the pod waits for nothing but their devices.

    *at*: when that was decided; *refused*: where of these the pod was told that there are none when it was asked about;
    *kept_until*: until when others are not given what was let go of, known once all have gone.
    """

    victims: Victims
    at: float
    until: float | None = None
    refused: AbstractSet[NodeName] = frozenset()
    kept_until: float | None = None


@dataclass(slots=True)
class Evictions:
    """Remembers what preemption was let do. *now* is a clock that only goes forward."""

    now: Callable[[], float]
    _known: Memo[Uid, Eviction] = field(default_factory=lambda: Memo(REMEMBERED))
    # For whose devices pods for which nobody may go are tried again, and until when.
    _leavers: Memo[Uid, tuple[AbstractSet[Uid], float]] = field(default_factory=lambda: Memo(REMEMBERED))

    def put(self, pod: Uid, victims: Victims) -> None:
        """Remember that for *pod* the victims on one of these nodes are evicted."""
        self._known[pod] = Eviction(victims, self.now())

    def over(self, pod: Pod, nodes: Iterable[str], promise_of: Callable[[Uid], Promise | None]) -> Sequence[Uid]:
        """Name those who have gone for *pod*, which is asked about with *nodes*, and are promised devices still.

        kube-scheduler takes pods that wait for volumes, or for a plugin, back without a word. It asks about *pod* once
        that is done, and names a node only where there is room without who had to go.
        """
        known = self._known.get(pod.uid)
        if known is None:
            return ()
        gone = (victim for node in _chosen(pod, known) & frozenset(nodes) for victim in known.victims[node])
        return [promise.pod for promise in map(promise_of, gone) if promise and promise.since <= known.at]

    def refused(self, pod: Uid, nodes: Collection[str]) -> None:
        """Remember that *pod* was told that it fits on none of *nodes*."""
        known = self._known.get(pod)
        if known is not None:
            known.refused = known.victims.keys() & frozenset(nodes)

    def was_refused(self, pod: Uid, nodes: Collection[NodeName]) -> bool:
        """Tell whether *pod* was told of each of *nodes* that it does not fit there."""
        return self._known[pod].refused >= frozenset(nodes)

    def ahead(self, pod: Pod, find: Callable[[Uid], Pod | None]) -> Mapping[NodeName, Sequence[Ahead]]:
        """Name those for whom others go on a node, and who are no less important than *pod*, by nodes.

        kube-scheduler keeps the node for them, and tells pods of their priority when it does not any more.
        """
        found: dict[NodeName, list[Ahead]] = {}
        for uid, known in self._known.items():
            other = find(uid) if uid != pod.uid else None
            node = self._chosen(other, known) if other is not None and other.priority >= pod.priority else None
            if other is not None and node is not None:
                found.setdefault(node, []).append(Ahead(other, known.victims[node]))
        return found

    def _chosen(self, pod: Pod, known: Eviction) -> NodeName | None:
        """Name the node where others go for *pod*, as far as that is certain."""
        if pod.nominated_node:
            return pod.nominated_node if pod.nominated_node in known.victims else None
        is_certain = len(known.victims) == 1 and self.now() - known.at <= SHOWN_S
        return next(iter(known.victims)) if is_certain else None

    def done(self, pod: Pod, candidates: Collection[str]) -> Victims:
        """Return where those that were to go for *pod* are gone: where some have yet to go is a candidate."""
        known = self._known.get(pod.uid)
        if known is None:
            return {}
        return {node: known.victims[node] for node in _chosen(pod, known) if node not in candidates}

    def victims(self, pod: Uid, node: NodeName) -> tuple[Uid, ...] | None:
        """Return who was to go for *pod* on *node*; None where that is not remembered."""
        known = self._known.get(pod)
        return known.victims.get(node) if known else None

    def are_going(self, pod: Uid, node: NodeName, is_on: Callable[[Uid, NodeName], bool]) -> bool:
        """Tell whether some of those who were to go for *pod* on *node* are there still, and may yet end."""
        known = self._known.get(pod)
        if known is None or self.now() - known.at > LASTING_S:
            return False
        return any(is_on(victim, node) for victim in known.victims.get(node, ()))

    def is_letting_go(self, pod: Uid, node: NodeName, is_on: Callable[[Uid, NodeName], bool]) -> bool:
        """Tell whether all who went for *pod* on *node* have gone, and their devices are let go of about now."""
        known, now = self._known[pod], self.now()
        if any(is_on(victim, node) for victim in known.victims[node]):
            # One that was being bound may be there only now.
            known.kept_until = None
            return False
        known.kept_until = now + PATIENCE_S if known.kept_until is None else known.kept_until
        return now < known.kept_until

    def ending(self, pod: Pod, is_on: Callable[[Uid, NodeName], bool]) -> NodeName | None:
        """Name the node where others go for *pod* and are there still, and may yet end; None where it is uncertain."""
        known = self._known.get(pod.uid)
        nodes = _chosen(pod, known) if known else ()
        return next((node for node in nodes if len(nodes) == 1 and self.are_going(pod.uid, node, is_on)), None)

    def waits(self, pod: Uid) -> float | None:
        """Remember that *pod* has nothing to wait for but their devices; say until when, None where that is past."""
        known, now = self._known[pod], self.now()
        known.until = now + PATIENCE_S if known.until is None else known.until
        return known.until if now < known.until else None

    def is_patient(self, pod: Uid, leavers: AbstractSet[Uid], everyone: AbstractSet[Uid]) -> bool:
        """Tell whether *pod* is still to wait for devices of *leavers*, of whom some have not left for long.

        Each attempt may be about other nodes: who was waited for is remembered as long as he is among *everyone* there.
        """
        known, until = self._leavers.get(pod, (frozenset[Uid](), 0.0))
        if not leavers <= known:
            until = self.now() + PATIENCE_S
        self._leavers[pod] = leavers | (known & everyone), until
        return self.now() < until

    def forget(self, pod: Uid) -> None:
        """Forget a pod that waits no longer."""
        self._known.pop(pod, None)
        self._leavers.pop(pod, None)


def _chosen(pod: Pod, known: Eviction) -> AbstractSet[NodeName]:
    """Name the nodes where others may have gone for *pod*: the one alone that it is nominated for, where it is."""
    nodes = known.victims.keys()
    return nodes & {pod.nominated_node} if pod.nominated_node else nodes
