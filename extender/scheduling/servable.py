"""Whether a node has what a pod's extended resources ask for, as far as is known here.

kube-scheduler lets a pod go to a node that lacks one only where it knows of a class that stands behind it. Where we
know of none our watch is behind, or the class is gone meanwhile. Bound all the same, the pod would run without its
devices: the kubelet passes over what its node does not have.
"""

from collections.abc import Collection

from extender.allocation.extended import IMPLICIT, through_devices
from extender.model.names import NodeName
from extender.model.node import Pod
from extender.scheduling.counted import is_extended
from extender.scheduling.needs import Needs
from extender.state.belief import Belief


def unserved(needs: Needs, name: NodeName, belief: Belief, ignored: Collection[str]) -> str:
    """Say which extended resource a pod would not have on a node; nothing where it has all but those *ignored*."""
    asked = [resource for resource in sorted(_asked(needs.pod)) if not is_among(resource, ignored)]
    if not asked:
        return ""
    node = belief.cluster.snapshot.nodes.get(name)
    if node is None:
        return f"node {name}, which is to have {asked[0]}, is not known here, or cannot be read"
    lacking = through_devices(tuple(asked), node)
    missing = [resource for resource in lacking if resource not in belief.served_by_classes()]
    if missing:
        return f"node {name} does not have {missing[0]}, and no device class is known to stand behind it"
    return "" if needs.suits(through_devices(needs.extended, node)) else unsuited(needs, name)


def unsuited(needs: Needs, name: NodeName) -> str:
    """Say why a pod cannot go where others could: it would have what its status names, or would wait for it."""
    if needs.made is not None:
        return f"claim {needs.made.key.name} was made for other resources than the pod needs on node {name}"
    return f"the pod's status names claim {needs.mapped}, which is gone, and node {name} serves it without one"


def is_among(resource: str, ignored: Collection[str]) -> bool:
    """Tell whether *resource* is ignored by its name, or with all of its domain."""
    return resource in ignored or f"{resource.partition('/')[0]}/*" in ignored


def _asked(pod: Pod) -> frozenset[str]:
    amounts = (item for container in pod.containers for item in container.requests)
    return frozenset(
        name for name, amount in amounts if amount.nanos > 0 and (is_extended(name) or name.startswith(IMPLICIT))
    )
