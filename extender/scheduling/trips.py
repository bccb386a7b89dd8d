"""Where pods were sent and did not stay: a pod that comes back is sent there last."""

from collections import OrderedDict
from dataclasses import dataclass, field

from extender.model.names import NodeName, Uid
from extender.scheduling.endings import NotBound, Order, Result

# Pods whose trips are remembered.
REMEMBERED = 10_000


@dataclass(slots=True)
class Trips:
    """Where a pod was sent and did not stay. *came_back*: after the scheduler was told.

    Nearly all pods stay where they are sent first: for those no sets are kept.
    """

    offered: NodeName | None = None
    steered_at: float | None = None
    came_back: frozenset[NodeName] = frozenset()
    _sent: set[NodeName] | None = None

    @property
    def sent(self) -> set[NodeName]:
        """Where it was sent by us alone, to be added to."""
        if self._sent is None:
            self._sent = set()
        return self._sent

    @property
    def vain(self) -> frozenset[NodeName]:
        return self.came_back | (self._sent or frozenset())

    def begin(self, node: NodeName, *, is_answer: bool) -> None:
        """Remember that the pod was offered *node*, or is sent there."""
        if is_answer:
            self.offered = node
            self.steered_at = None
            self._sent = None
        else:
            self.sent.add(node)

    def end(self) -> None:
        """Remember that the pod is back."""
        if self.offered is not None:
            self.came_back |= {self.offered}
        self.offered = None


@dataclass(slots=True)
class Travellers:
    """The trips of the pods that were sent anywhere last. One writer."""

    _trips: OrderedDict[Uid, Trips] = field(default_factory=OrderedDict)

    def of(self, pod: Uid) -> Trips:
        """Return the trips of *pod*, to be continued."""
        trips = self._trips.setdefault(pod, Trips())
        self._trips.move_to_end(pod)
        if len(self._trips) > REMEMBERED:
            self._trips.popitem(last=False)
        return trips

    def end(self, pod: Uid) -> None:
        """Remember that *pod* is back, if it was anywhere."""
        if pod in self._trips:
            self._trips[pod].end()

    def ended(self, order: Order, result: Result) -> None:
        """Remember nothing of a binding that was refused before anything was tried."""
        if isinstance(result, NotBound) and result.is_unbegun:
            self.unbegun(order.uid)

    def unbegun(self, pod: Uid) -> None:
        """Take back that *pod* was offered a node: it never came there, so that it cannot come back from there."""
        if pod in self._trips:
            self._trips[pod].offered = None

    def all_unbegun(self) -> None:
        """Take back what was offered in a term of ours before: who came for it was refused, or was sent elsewhere."""
        for trips in self._trips.values():
            trips.offered = None

    def forget(self, pod: Uid) -> None:
        """Forget the trips of a pod that waits no longer."""
        self._trips.pop(pod, None)

    def steered_at(self, pod: Uid) -> float | None:
        """Tell when *pod* was last sent to a node that the scheduler had not offered."""
        return self._trips[pod].steered_at if pod in self._trips else None
