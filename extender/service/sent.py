"""A pod that was sent to a node before the scheduler has asked about it."""

from dataclasses import dataclass, replace

from extender.model.names import NodeName
from extender.model.node import Pod
from extender.scheduling.plans import Offer
from extender.scheduling.recall import World


@dataclass(frozen=True, slots=True)
class Sent:
    """A pod on its way: where to, by which view of that node, and the *version* that it got when that was written.

    *missed* is the version for which it was to be written, and which was not the last one any more.
    """

    pod: Pod
    offer: Offer
    seen: World
    version: str = ""
    missed: str = ""

    @property
    def is_written(self) -> bool:
        return bool(self.version)

    def shown_as(self, pod: Pod) -> "Sent":
        """Return what has become of this when the watch shows *pod*: who names its claims may have come after us."""
        is_ours = self.is_written and pod.nominated_node == self.node
        return replace(self, version=pod.resource_version) if is_ours else self

    def is_missed_by(self, pod: Pod) -> bool:
        """Tell whether *pod* has not heard of its node, and may be written for in the version that is shown now."""
        return bool(self.missed) and not self.is_written and pod.resource_version != self.missed

    def is_known_by(self, shown: Pod) -> bool:
        """Tell whether who shows the pod so has heard of its node."""
        return shown.nominated_node == self.node or (self.is_written and shown.resource_version == self.version)

    @property
    def node(self) -> NodeName:
        return self.offer.placement.node
