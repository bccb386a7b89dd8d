"""Preemption, vetoed where it would not help: where the pod's devices are not there even without the victims."""

from collections.abc import Iterable, Iterator, Mapping

from extender.allocation.snapshot import Snapshot, with_usage
from extender.allocation.usage import Hold, Usage, subtract
from extender.model.claim import ResourceClaim
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.choosing import Chooser
from extender.scheduling.needs import Unplaceable, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.survey import survey
from extender.state.belief import Belief


def helped(
    pod: Pod, victims: Mapping[NodeName, Iterable[Uid]], belief: Belief, chooser: Chooser
) -> tuple[NodeName, ...]:
    """Return the nodes on which *pod* has its devices once the victims are gone. Raise Unfinished."""
    needs = needs_of(pod, belief)
    if isinstance(needs, Unplaceable):
        return ()
    if needs.is_plain:
        return tuple(victims)
    seen = belief.seen_by(pod.uid)
    # One node asks of every selector what it says of all devices: that is to be known, or known soon.
    survey(needs, seen, belief.questions)
    victims = {node: tuple(gone) for node, gone in victims.items()}
    used = _used(belief.cluster.claims, frozenset(uid for gone in victims.values() for uid in gone))
    return tuple(
        node
        for node, gone in victims.items()
        if isinstance(chooser.place(needs, node, _without(seen, _freed(used, frozenset(gone), belief))), Placement)
    )


def _used(claims: Iterable[ResourceClaim], pods: frozenset[Uid]) -> Mapping[Uid, list[ResourceClaim]]:
    """Map each of *pods* to the claims with devices that are reserved for it."""
    used: dict[Uid, list[ResourceClaim]] = {}
    for claim in claims:
        for consumer in claim.reserved_for if claim.allocation else ():
            if consumer.uid in pods:
                used.setdefault(consumer.uid, []).append(claim)
    return used


def _freed(used: Mapping[Uid, list[ResourceClaim]], gone: frozenset[Uid], belief: Belief) -> Iterator[Hold]:
    """Yield what is taken by the claims that only pods of *gone* use."""
    claims = {claim.uid: claim for uid in gone for claim in used.get(uid, ())}
    for claim in claims.values():
        if all(consumer.uid in gone for consumer in claim.reserved_for):
            yield from belief.cluster.holds_of(claim.key)


def _without(snapshot: Snapshot, freed: Iterable[Hold]) -> Snapshot:
    """Return *snapshot* as it will be when what is *freed* is taken no longer."""
    rows: dict[int, Usage] = {}
    for hold in freed:
        for row in snapshot.inventory.rows_of(hold.device):
            rows[row] = subtract(rows.get(row, snapshot.usage_at(row)), hold.usage)
    return with_usage(snapshot, rows)
