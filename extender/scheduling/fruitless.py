"""Where devices were looked for in vain, and for whom: not again before something changes there.

Hundreds may wait for what others let go of, each on a node of its own, and it is looked for whoever is asked about.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from extender.allocation.passage import passage
from extender.allocation.snapshot import Snapshot
from extender.model.claim import ResourceClaim
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.needs import Needs
from extender.scheduling.taste import Taste
from extender.state.belief import Belief
from extender.topology.memo import Memo

# As many as others are remembered to go for.
REMEMBERED: Final = 256


class Search(NamedTuple):
    """A pod as it was, what it asked for, and where that was not to be had."""

    pod: Pod
    claims: tuple[ResourceClaim, ...]
    node: NodeName


@dataclass(slots=True)
class Fruitless:
    """Remembers it as long as nothing changes on the node, nor about the pod and its claims. One writer."""

    belief: Belief
    _at: tuple[Snapshot, Taste | None] | None = None
    _known: Memo[Uid, Search] = field(default_factory=lambda: Memo(REMEMBERED))

    def look(self, taste: Taste | None) -> None:
        """Forget what was found out about nodes that have changed since; all, where another *taste* decides."""
        before, now = self._at, self.belief.seen_by()
        self._at = now, taste
        if before is not None and before[0] is now and before[1] is taste:
            return
        way = passage(before[0], now) if before and before[1] is taste else None
        changed = frozenset(now.layout.nodes[node] for node in way.changed.tolist()) if way else None
        for uid in [uid for uid, known in self._known.items() if changed is None or known.node in changed]:
            del self._known[uid]

    def knows(self, pod: Pod, node: NodeName) -> bool:
        """Tell whether devices for *pod* would be looked for on *node* in vain once more."""
        known, claims = self._known.get(pod.uid), self.belief.cluster.claims
        if known is None or known.pod is not pod or known.node != node:
            return False
        return all(claims.with_uid(claim.uid) is claim for claim in known.claims)

    def put(self, needs: Needs, node: NodeName) -> None:
        """Remember that there is nothing on *node* for a pod."""
        # A node whose devices do not change may begin to serve extended resources by them.
        if not needs.extended:
            self._known[needs.pod.uid] = Search(needs.pod, (*needs.pending, *needs.allocated), node)

    def forget(self, pod: Uid) -> None:
        """Forget a pod that waits no longer; with the last one the snapshot, which is large."""
        self._known.pop(pod, None)
        self._at = self._at if self._known else None
