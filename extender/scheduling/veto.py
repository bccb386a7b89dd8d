"""Preemption, vetoed where it would not help: where the pod's devices are not there even without the victims."""

from collections.abc import Iterable, Mapping

from extender.allocation.snapshot import Snapshot, with_usage
from extender.allocation.usage import holds_of, subtract
from extender.model.claim import ResourceClaim
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.needs import Refused, needs_of
from extender.scheduling.placement import Chooser, Placement
from extender.state.belief import Belief


def helped(
    pod: Pod, victims: Mapping[NodeName, Iterable[Uid]], belief: Belief, chooser: Chooser
) -> tuple[NodeName, ...]:
    """Return the nodes on which *pod* has its devices once the victims are gone."""
    needs = needs_of(pod, belief)
    if isinstance(needs, Refused):
        return ()
    if needs.is_plain:
        return tuple(victims)
    seen = belief.seen_by(pod.uid)
    claims = [claim for claim in belief.cluster.claims if claim.allocation and claim.reserved_for]
    return tuple(
        node
        for node, gone in victims.items()
        if isinstance(chooser.place(needs, node, _without(seen, claims, frozenset(gone))), Placement)
    )


def _without(snapshot: Snapshot, claims: Iterable[ResourceClaim], gone: frozenset[Uid]) -> Snapshot:
    """Return *snapshot* as it will be when the claims are freed that only pods of *gone* use."""
    freed = snapshot
    for claim in claims if gone else ():
        if claim.allocation is None or any(consumer.uid not in gone for consumer in claim.reserved_for):
            continue
        for hold in holds_of(claim.allocation):
            for row in snapshot.inventory.rows_of(hold.device):
                freed = with_usage(freed, {row: subtract(freed.usage_at(row), hold.usage)})
    return freed
