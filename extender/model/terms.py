"""What a pod asks of its node beside devices, as far as the node alone can tell."""

from extender.model.frozen import dataclass
from extender.model.node_selector import NodeSelector
from extender.model.quantity import Amounts
from extender.model.taint import Toleration


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A pod's terms. Most pods have the same: they are compared, and looked up.

    *labels* is ``spec.nodeSelector``, sorted. *is_all* says that nothing else decides: neither what the pod prefers,
    nor other pods, volumes or ports. Of a pod whose terms are so long that looking at them takes its time, *is_long*,
    labels, affinity and tolerations are not known, and decide beside what is.
    """

    amounts: Amounts = ()
    labels: tuple[tuple[str, str], ...] = ()
    affinity: NodeSelector | None = None
    tolerations: tuple[Toleration, ...] = ()
    is_all: bool = True
    is_long: bool = False


ANYWHERE = Terms()
