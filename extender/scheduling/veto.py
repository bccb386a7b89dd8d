"""Preemption, vetoed where it would not help: where the pod's devices are not there even without the victims."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from extender.allocation.snapshot import without
from extender.allocation.usage import Hold
from extender.model.claim import ResourceClaim
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.choosing import Chooser
from extender.scheduling.needs import Needs, Unplaceable, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.survey import survey
from extender.state.belief import Belief

# What the searches of one question may take: nobody else is answered meanwhile. Nodes behind them are left out. As long
# as none was found, more: one search that is given up would hide all nodes behind it.
PAUSES: Final = 64
IN_VAIN: Final = 512


def helped(
    pod: Pod, victims: Mapping[NodeName, Iterable[Uid]], belief: Belief, chooser: Chooser
) -> tuple[NodeName, ...]:
    """Return the nodes on which *pod* has its devices once the victims are gone. Raise Unfinished."""
    needs = needs_of(pod, belief)
    if isinstance(needs, Unplaceable):
        return ()
    if needs.is_plain:
        return tuple(victims)
    gone = {node: frozenset(pods) for node, pods in victims.items()}
    used = _used(belief.cluster.claims, frozenset().union(*gone.values()))
    freed = {node: tuple(_freed(used, pods)) for node, pods in gone.items()}
    # What the pod shares with victims alone has no devices any more when they are gone: it needs some for that, too.
    had = frozenset(claim.uid for claim in needs.allocated)
    again = {node: had.intersection(claim.uid for claim in claims) for node, claims in freed.items()}
    then = {claims: needs_of(pod, belief, claims) for claims in dict.fromkeys(again.values())}
    seen = belief.seen_by(pod.uid)
    # One node asks of every selector what it says of all devices: that is to be known, or known soon.
    for asked in then.values():
        if isinstance(asked, Needs):
            survey(asked, seen, belief.questions)
    found, before = list[NodeName](), chooser.pauses
    for node, claims in freed.items():
        asked = then[again[node]]
        if isinstance(asked, Needs) and isinstance(
            chooser.place(asked, node, without(seen, _holds(claims, gone[node], belief))), Placement
        ):
            found.append(node)
        if chooser.pauses - before > (PAUSES if found else IN_VAIN):
            break
    return tuple(found)


def _used(claims: Iterable[ResourceClaim], pods: frozenset[Uid]) -> Mapping[Uid, list[ResourceClaim]]:
    """Map each of *pods* to the claims with devices that are reserved for it."""
    used: dict[Uid, list[ResourceClaim]] = {}
    for claim in claims:
        for consumer in claim.reserved_for if claim.allocation else ():
            if consumer.uid in pods:
                used.setdefault(consumer.uid, []).append(claim)
    return used


def _freed(used: Mapping[Uid, list[ResourceClaim]], gone: frozenset[Uid]) -> Iterator[ResourceClaim]:
    """Yield the claims that only pods of *gone* use."""
    claims = {claim.uid: claim for uid in gone for claim in used.get(uid, ())}
    return (claim for claim in claims.values() if all(consumer.uid in gone for consumer in claim.reserved_for))


def _holds(freed: Iterable[ResourceClaim], gone: Iterable[Uid], belief: Belief) -> Iterator[Hold]:
    """Yield what is held no more when claims are *freed*, and pods are *gone*.

    kube-scheduler counts a pod that waits for volumes as being on its node, and takes it back from there without a
    word to anybody: of its devices there is no more than our promise.
    """
    yield from chain.from_iterable(belief.cluster.holds_of(claim.key) for claim in freed)
    yield from chain.from_iterable(map(belief.ledger.offered, gone))
