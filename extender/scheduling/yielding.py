"""Devices that nobody was told of, left by those who were promised them to somebody more important.

Who is woken, or sent ahead, has devices kept before the scheduler asks. Meanwhile it may ask about another.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

import numpy as np

from extender.allocation.snapshot import Snapshot, without
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.choosing import Chooser
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.survey import Survey, Unfinished, survey
from extender.state.belief import Belief
from extender.state.ledger import Promise
from extender.state.table import Numbers

# Whose devices are to be left, by node.
Lesser = Mapping[NodeName, Sequence[Uid]]
# Nodes that are searched for whom it takes.
TRIES: Final = 3


@dataclass(slots=True)
class Yielding:
    """Remembers, as long as nothing changes, what others could leave, and for whom that is of no use. One writer."""

    belief: Belief
    chooser: Chooser
    _seen: Snapshot | None = None
    _worlds: dict[int, tuple[Lesser, Snapshot]] = field(default_factory=dict)
    _vain: set[Hashable] = field(default_factory=set)

    def who(self, pod: Pod, among: Callable[[Numbers], Numbers]) -> Sequence[Uid]:
        """Name those who leave what *pod* lacks on one of the nodes that it is asked *among*: no more than it takes."""
        seen = self.belief.seen_by(pod.uid)
        lesser, left = self._world(pod, seen)
        needs = needs_of(pod, self.belief) if lesser and pod.uid not in self._vain else None
        if not isinstance(needs, Needs) or _asking(needs) in self._vain:
            return ()
        try:
            found = self._fitting(needs, lesser, left)
        except Unfinished:
            # It is looked for further when the pod is asked about again.
            return ()
        if not len(found):
            self._vain.update((pod.uid, _asking(needs)))
        names = left.layout.nodes
        tried = (self._enough(needs, lesser[names[node]], names[node], seen) for node in among(found).tolist())
        return next(filter(None, islice(tried, TRIES)), ())

    def _world(self, pod: Pod, seen: Snapshot) -> tuple[Lesser, Snapshot]:
        """Return who is less important, and what is *seen* without what these were promised."""
        if self._seen is not seen:
            self._seen, self._worlds, self._vain = seen, {}, set()
        known = self._worlds.get(pod.priority)
        if known is None:
            lesser = lesser_than(pod, self.belief)
            left = self._left(seen, chain(*lesser.values())) if lesser else seen
            known = self._worlds[pod.priority] = lesser, left
        return known

    def _fitting(self, needs: Needs, lesser: Lesser, left: Snapshot) -> Numbers:
        """Return the nodes of *lesser* on which the pod fits then; none where it is refused whatever is free."""
        surveyed = survey(needs, left, self.belief.questions, self.chooser.taste)
        nodes = np.array(left.layout.numbers(lesser), np.int64)
        if not isinstance(surveyed, Survey) or surveyed.failure() is not None:
            return nodes[:0]
        return nodes[surveyed.fits[nodes]]

    def _enough(self, needs: Needs, others: Sequence[Uid], node: NodeName, seen: Snapshot) -> Sequence[Uid]:
        """Name who of *others*, the least important first, has to leave *node*; nobody where all do not suffice."""
        # Since they were found somebody may have been asked about.
        going = [uid for uid in others if may_leave(self.belief.ledger.of_pod(uid))]
        if not self._suffices(needs, node, seen, going):
            return ()
        for uid in reversed(going.copy()):
            fewer = [other for other in going if other != uid]
            if fewer and self._suffices(needs, node, seen, fewer):
                going = fewer
        return going

    def _suffices(self, needs: Needs, node: NodeName, seen: Snapshot, others: Sequence[Uid]) -> bool:
        return isinstance(self.chooser.place(needs, node, self._left(seen, others)), Placement)

    def _left(self, seen: Snapshot, others: Iterable[Uid]) -> Snapshot:
        return without(seen, chain.from_iterable(map(self.belief.ledger.offered, others)))


def _asking(needs: Needs) -> Hashable:
    """Return all that decides for whom else it is of no use."""
    pod = needs.pod
    return pod.uid if needs.allocated or needs.extended else (pod.priority, needs.asked)


def lesser_than(pod: Pod, belief: Belief) -> Lesser:
    """Find those who are less important than *pod*, of whose promises nobody was told; the least important first."""
    found = list[tuple[int, float, NodeName, Uid]]()
    for promise in belief.ledger:
        if may_leave(promise):
            other = belief.pods.with_uid(promise.pod)
            if other is not None and other.priority < pod.priority:
                found.append((other.priority, -promise.since, promise.node, promise.pod))
    lesser: dict[NodeName, list[Uid]] = {}
    for _, _, node, uid in sorted(found):
        lesser.setdefault(node, []).append(uid)
    return lesser


def may_leave(promise: Promise | None) -> bool:
    """Tell whether nobody was told of *promise*, and nothing is being written for it."""
    return promise is not None and not promise.is_answer and not promise.is_binding
