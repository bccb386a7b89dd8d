"""Where a pod that waits could be as far as we know, devices apart: on all other nodes kube-scheduler would refuse it.

What else its plugins ask, as of volumes and of other pods, is not known here: what is possible may be refused as well.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from extender.allocation.grid import Flags
from extender.allocation.snapshot import Snapshot
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.model.quantity import Amounts
from extender.scheduling.needs import Needs
from extender.scheduling.promised import Promised
from extender.scheduling.servable import is_among
from extender.scheduling.suitable import Suitable
from extender.state.belief import Belief
from extender.state.table import Numbers
from extender.topology.memo import Memo

# Amounts of which it is remembered where there is room for them; and those who ask the same, of whom it is remembered
# where there were devices without room when one of them was tried.
KINDS: Final = 256


@dataclass(slots=True)
class Possible:
    """Remembers which nodes are possible for whom, as long as nothing changes. One writer.

    ignored: resources that kube-scheduler does not look at, by name or with all of a domain (``example.com/*``).
    """

    belief: Belief
    ignored: Collection[str] = ()
    _at: tuple[Snapshot | None, int] = None, -1
    # Who is on the way to where, and what they take there together, as far as nothing that is bound tells of it.
    _travelling: dict[Uid, NodeName] = field(default_factory=dict)
    _promised: Promised = field(default_factory=Promised)
    _rooms: Memo[tuple[Amounts, tuple[str, ...]], Flags] = field(default_factory=lambda: Memo(KINDS))
    _tried: Memo[object, tuple[tuple[NodeName, ...], Numbers]] = field(default_factory=lambda: Memo(KINDS))
    _suitable: Suitable = field(init=False)

    def __post_init__(self) -> None:
        self._suitable = Suitable(self.belief.loads)

    def nodes(self, needs: Needs) -> Flags | None:
        """Tell where nothing speaks against the pod, beside who is on the way there: bool[nodes]; None: everywhere."""
        self._renew()
        flags = self._suitable.meeting(needs.pod.terms, self.belief.cluster.snapshot) & self._roomy(needs)
        return None if flags.all() else flags

    def own(self, pod: Pod, asked: Flags | None) -> Flags | None:
        """Tell which nodes neither labels nor taints keep the pod from: bool[nodes]; None: all, or none at all.

        What the scheduler has *asked* about, bool[nodes], is among them, whatever we think of it.
        """
        met = self._suitable.meeting(pod.terms, self.belief.cluster.snapshot)
        flags = met if asked is None else met | asked
        return None if flags.all() or not flags.any() else flags

    def is_news(self, key: object, needs: Needs, fitting: Numbers) -> bool:
        """Tell whether some of the nodes *fitting* lack but room, and did not when this was asked of *key* last.

        Room may be made there for the pod, by preemption, and there may be some that we do not know of.
        """
        snapshot = self.belief.cluster.snapshot
        names, full = snapshot.layout.nodes, fitting[self._suitable.meeting(needs.pod.terms, snapshot)[fitting]]
        nodes, before = self._tried.get(key, ((), full[:0]))
        self._tried[key] = names, full
        return len(np.setdiff1d(full, before if nodes is names else before[:0], assume_unique=True)) > 0

    def untried(self) -> None:
        """Forget who was tried: of the last of them nobody has heard."""
        self._tried.clear()

    def _renew(self) -> None:
        """Forget what was known before something has changed."""
        belief = self.belief
        at = belief.seen_by(), belief.loads.version
        if at[0] is self._at[0] and at[1] == self._at[1]:
            return
        self._at, self._promised, self._travelling = at, Promised(), {}
        self._rooms.clear()
        for promise in belief.ledger:
            pod = belief.pods.with_uid(promise.pod)
            if pod is not None and not belief.loads.has(pod.key, pod.uid):
                self._promised.add(promise.node, pod.terms.amounts)
                self._travelling[pod.uid] = promise.node

    def _roomy(self, needs: Needs) -> Flags:
        amounts, own = needs.pod.terms.amounts, self._travelling.get(needs.pod.uid)
        if own is not None:
            # It competes with all others, and not with itself.
            self._promised.add(own, amounts, -1)
            flags = self._judged(needs)
            self._promised.add(own, amounts)
            return flags
        key = amounts, needs.extended
        if key not in self._rooms:
            self._rooms[key] = self._judged(needs)
        return self._rooms[key]

    def _judged(self, needs: Needs) -> Flags:
        terms, snapshot = needs.pod.terms, self.belief.cluster.snapshot
        counted = tuple(item for item in terms.amounts if not is_among(item[0], self.ignored))
        return self._suitable.roomy(replace(terms, amounts=counted), snapshot, self._promised, needs.extended)
