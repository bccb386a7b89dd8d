"""Preemption, vetoed where it would not help: where the pod's devices are not there even without the victims."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

from extender.allocation.result import is_usable
from extender.allocation.snapshot import Snapshot, overlay, without
from extender.allocation.usage import Hold, holds_of
from extender.model.claim import ResourceClaim
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Node, Pod
from extender.scheduling.choosing import Chooser
from extender.scheduling.conditions import have_failed
from extender.scheduling.needs import Needs, Unplaceable, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.survey import survey
from extender.scheduling.yielding import lesser_than
from extender.state.belief import Belief
from extender.state.claims import named_by

# What the searches of one question may take: nobody else is answered meanwhile. Nodes behind them are left out. As long
# as none was found, more: one search that is given up would hide all nodes behind it.
PAUSES: Final = 64
IN_VAIN: Final = 512


class Ahead(NamedTuple):
    """A pod that has its devices on a node first, for others go for it there already: these."""

    pod: Pod
    victims: tuple[Uid, ...]


def helped(
    pod: Pod,
    victims: Mapping[NodeName, Iterable[Uid]],
    chooser: Chooser,
    now: float,
    ahead: Mapping[NodeName, Sequence[Ahead]] = MappingProxyType({}),
) -> tuple[NodeName, ...]:
    """Return the nodes on which *pod* has its devices at the time of day *now* once the victims are gone.

    Who is *ahead* of it on a node has his devices first. Those who are less important leave it what nobody was told of.
    Raise Unfinished.

    It is bound with what it has already, whatever its policy says by now: that is not asked again. Not so with what
    cannot be made ready: binding it there frees that, and it needs devices anew; where others who stay use it, too, it
    is bound nowhere as long as they do.
    """
    belief = chooser.belief
    needs = needs_of(pod, belief)
    if isinstance(needs, Unplaceable):
        return ()
    if needs.is_plain:
        return tuple(victims)
    failed = tuple(claim for claim in needs.allocated if have_failed((claim,), now, belief.ready_within_s))
    gone = _gone(needs, victims, failed, belief.cluster.snapshot)
    first = {node: [each for each in ahead.get(node, ()) if _is_apart(each, needs)] for node in gone}
    others = chain.from_iterable(each.victims for found in first.values() for each in found)
    everybody = frozenset(chain(others, *gone.values()))
    given_up = frozenset(claim.uid for claim in failed)
    used = _used((claim for claim in belief.cluster.claims if claim.uid not in given_up), everybody)
    then = _needs_then(needs, gone, used, given_up, belief)
    seen = without(_seen(pod, everybody, belief), _taken(failed, belief))
    ground = _Ground(belief, chooser, used, seen)
    found, before = list[NodeName](), chooser.pauses
    for node, asked in then.items():
        if ground.has(asked, node, gone[node], first[node]):
            found.append(node)
        if chooser.pauses - before > (PAUSES if found else IN_VAIN):
            break
    return tuple(found)


def _gone(
    needs: Needs, victims: Mapping[NodeName, Iterable[Uid]], failed: Sequence[ResourceClaim], snapshot: Snapshot
) -> Mapping[NodeName, frozenset[Uid]]:
    """Map the nodes, on which what has *failed* is freed once the pod is there, to those who go from them."""
    if needs.made in failed:
        return {}  # another is made once it is gone
    gone = {node: frozenset(pods) for node, pods in victims.items()}
    return {
        node: pods
        for node, pods in gone.items()
        if all(_is_freed(claim, pods | {needs.pod.uid}, snapshot.nodes.get(node)) for claim in failed)
    }


def _needs_then(
    needs: Needs,
    gone: Mapping[NodeName, frozenset[Uid]],
    used: Mapping[Uid, list[ResourceClaim]],
    given_up: frozenset[Uid],
    belief: Belief,
) -> Mapping[NodeName, Needs]:
    """Say what the pod needs on each node once those are *gone* who have to go there. Raise Unfinished.

    What it shares with them alone has no devices any more then: it needs some for that, too, as for what is *given_up*.
    """
    had = frozenset(claim.uid for claim in needs.allocated)
    again = {
        node: given_up | had.intersection(claim.uid for claim in _freed(used, pods)) for node, pods in gone.items()
    }
    then = {claims: needs_of(needs.pod, belief, claims) for claims in dict.fromkeys(again.values())}
    # One node asks of every selector what it says of all devices: that is to be known, or known soon.
    for asked in then.values():
        if isinstance(asked, Needs):
            survey(asked, belief.seen_by(needs.pod.uid), belief.questions)
    return {node: asked for node, claims in again.items() if isinstance(asked := then[claims], Needs)}


class _Ground(NamedTuple):
    """What the nodes are judged by: who uses which claims, and what is *seen* before anybody has gone."""

    belief: Belief
    chooser: Chooser
    used: Mapping[Uid, list[ResourceClaim]]
    seen: Snapshot

    def has(self, needs: Needs, node: NodeName, gone: frozenset[Uid], ahead: Sequence[Ahead]) -> bool:
        """Tell whether the pod has its devices on *node* once those are *gone*, even if those *ahead* come first."""
        return self._fits(needs, node, self._without(gone)) and (
            not ahead or self._fits(needs, node, self._after(node, gone, ahead))
        )

    def _fits(self, needs: Needs, node: NodeName, left: Snapshot) -> bool:
        return isinstance(self.chooser.place(needs, node, left), Placement)

    def _after(self, node: NodeName, gone: frozenset[Uid], ahead: Sequence[Ahead]) -> Snapshot:
        """Return what is left once everybody has gone, and those *ahead* have what they find on *node*."""
        everybody = gone.union(*(each.victims for each in ahead))
        freed, left = frozenset(claim.uid for claim in _freed(self.used, everybody)), self._without(everybody)
        had = set[ObjectKey]()
        for each in ahead:
            needs = needs_of(each.pod, self.belief, freed)
            if not isinstance(needs, Needs) or any(claim.key in had for claim in needs.pending):
                continue  # what several of them share they have once
            had.update(claim.key for claim in needs.pending)
            found = self.chooser.place(needs, node, left)
            if isinstance(found, Placement):
                left = overlay(left, chain.from_iterable(holds_of(given) for _, given in found.claims))
        return left

    def _without(self, gone: frozenset[Uid]) -> Snapshot:
        return without(self.seen, _holds(_freed(self.used, gone), gone, self.belief))


def _is_apart(other: Ahead, needs: Needs) -> bool:
    """Tell whether the pod shares no claim with *other*: it would have that with it."""
    return {claim.key for claim in needs.pending}.isdisjoint(named_by(other.pod))


def _seen(pod: Pod, victims: frozenset[Uid], belief: Belief) -> Snapshot:
    """Return what *pod* sees where those who are less important, but for the victims, leave what nobody was told of.

    filter sees to it that they do.
    """
    seen, lesser = belief.seen_by(pod.uid), chain(*lesser_than(pod, belief).values())
    return without(seen, chain.from_iterable(belief.ledger.offered(uid) for uid in lesser if uid not in victims))


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
    return (claim for claim in claims.values() if _is_left(claim, gone))


def _is_left(claim: ResourceClaim, gone: AbstractSet[Uid]) -> bool:
    """Tell whether nobody uses *claim* any more once those are *gone*."""
    return all(consumer.uid in gone for consumer in claim.reserved_for)


def _is_freed(failed: ResourceClaim, users: AbstractSet[Uid], node: Node | None) -> bool:
    """Tell whether a claim that has *failed* is freed on *node*, where nobody but *users* may be using it."""
    is_there = node is not None and failed.allocation is not None and is_usable(failed.allocation, node)
    return is_there and _is_left(failed, users)


def _holds(freed: Iterable[ResourceClaim], gone: Iterable[Uid], belief: Belief) -> Iterator[Hold]:
    """Yield what is held no more when claims are *freed*, and pods are *gone*.

    kube-scheduler counts a pod that waits for volumes as being on its node, and takes it back from there without a
    word to anybody: of its devices there is no more than our promise. So it is with one that is being bound: what is
    written for it already is freed once it is gone, and nothing else would have the other pod tried again soon.
    """
    yield from _taken(freed, belief)
    promises = filter(None, map(belief.ledger.of_pod, gone))
    yield from (device for promise in promises for claim in promise.claims for device in claim.devices)


def _taken(claims: Iterable[ResourceClaim], belief: Belief) -> Iterator[Hold]:
    """Yield what *claims* take."""
    return chain.from_iterable(belief.cluster.holds_of(claim.key) for claim in claims)
