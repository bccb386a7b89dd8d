"""A pod that was sent to a node before the scheduler has asked about it."""

from dataclasses import dataclass, replace

from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.plans import Offer
from extender.scheduling.recall import World


@dataclass(frozen=True, slots=True)
class Sent:
    """A pod on its way: where to, by which view of that node, and the *version* that it got when that was written.

    *heard* is the node that it was told of before this one. *missed* is the version in which it was known when it was
    to be written for in vain. *made* are the claims that were made from its templates last, *since* when.
    """

    pod: Pod
    offer: Offer
    seen: World
    version: str = ""
    heard: NodeName | None = None
    missed: str = ""
    made: tuple[Uid, ...] = ()
    since: float = 0.0

    @property
    def is_written(self) -> bool:
        return bool(self.version)

    def shown_as(self, pod: Pod) -> "Sent":
        """Return what has become of this when the watch shows *pod*: who names its claims may have come after us."""
        is_newer = self.is_written and pod.nominated_node == self.node and pod.resource_version != self.version
        return replace(self, version=pod.resource_version) if is_newer else self

    def is_missed_by(self, pod: Pod) -> bool:
        """Tell whether *pod* has not heard of its node, and may be written for in the version that is shown now."""
        return bool(self.missed) and not self.is_written and pod.resource_version != self.missed

    def is_known_by(self, shown: Pod) -> bool:
        """Tell whether who shows the pod so has heard of its node."""
        return shown.nominated_node == self.node or (self.is_written and shown.resource_version == self.version)

    @property
    def node(self) -> NodeName:
        return self.offer.placement.node
