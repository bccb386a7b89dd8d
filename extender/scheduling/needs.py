"""What a pod needs before it can be placed, or why nobody can place it."""

from collections.abc import Collection, Hashable, Iterator
from dataclasses import replace

from extender.allocation.extended import ANNOTATION, Classes, Hidden, hidden_claim, unmade_name, wanted
from extender.model.claim import ClaimSpec, ResourceClaim
from extender.model.frozen import dataclass
from extender.model.names import ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.claiming import is_reserved_for
from extender.scheduling.evicting import eviction_of
from extender.scheduling.rivals import contest_of
from extender.scheduling.vocabulary import Word
from extender.state.belief import Belief
from extender.state.claims import Asked, Unclear, Waiting
from extender.state.domain import Domain, classes_of
from extender.state.ledger import UNMADE
from extender.state.questions import asked_in_full
from extender.topology.policies import ANNOTATION as POLICY

# How many pods can use one claim.
RESERVATIONS = 256


@dataclass(frozen=True, slots=True)
class Unplaceable:
    """The pod is placed nowhere. *detail* says it with names and numbers."""

    word: Word
    detail: str


@dataclass(frozen=True, slots=True)
class Needs:
    """What a pod needs: its claims without an allocation, those with one, and extended resources that classes serve.

    *mapped*: a claim for extended resources that its status names, and that it does not have any more. *made*: the one
    that it has, which is among *allocated*.
    """

    pod: Pod
    pending: tuple[ResourceClaim, ...] = ()
    allocated: tuple[ResourceClaim, ...] = ()
    extended: tuple[str, ...] = ()
    classes: Classes | None = None
    mapped: str = ""
    made: ResourceClaim | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the pod needs no devices at all."""
        return not (self.pending or self.allocated or self.extended)

    @property
    def asked(self) -> Hashable:
        """What decides where devices for *pending* can be had: thousands of pods may ask the same."""
        # Who asks the same may be placed by another policy.
        claims = ((asked_in_full(each.spec), dict(each.annotations).get(POLICY)) for each in self.pending)
        return self.pod.key.namespace, tuple(claims)

    def hidden(self, resources: tuple[str, ...]) -> Hidden:
        """Write the claim for *resources*, those of the pod's that a node serves by devices."""
        return hidden_claim(self.pod, resources, self.classes or {})

    @property
    def is_choosy(self) -> bool:
        """Whether what was made for the pod, or is named by its status, decides which nodes it can go to."""
        return bool(self.mapped) or self.made is not None

    def suits(self, resources: tuple[str, ...]) -> bool:
        """Tell whether the pod can go where devices serve *resources*.

        What was made for it has to be for all of these, and for nothing else: the kubelet gives a container what the
        pod's status says it has of that, and passes over what its node does not have.
        """
        if self.made is None:
            return bool(resources) or not self.mapped
        return _served_by(self.made.spec) == _served_by(self.hidden(resources).spec)

    def unmade(self, hidden: Hidden) -> ResourceClaim:
        """Return the claim that *hidden* describes as it will be once it is made."""
        key = ObjectKey(self.pod.key.namespace, unmade_name(self.pod))
        return ResourceClaim(key=key, uid=Uid(UNMADE + self.pod.uid), spec=hidden.spec)


def needs_of(pod: Pod, belief: Belief, freed: Collection[Uid] = ()) -> Needs | Unplaceable:
    """Say what *pod* needs, once those of its claims that are *freed* have no devices any more."""
    if not belief.pods.serves(pod):
        return Unplaceable(Word.FOREIGN_SCHEDULER, f"scheduler {pod.scheduler!r} is not configured here")
    classes = belief.served_by_classes()
    extended = wanted(pod, classes)
    if not pod.claims and not extended:
        return Needs(pod, mapped=_mapped(pod, belief) or "")
    if pod.scheduling_group is not None:
        return Unplaceable(Word.GANG, "spec.schedulingGroup is set")
    asked = _with_hidden(pod, belief.cluster.claims.asked_by(pod, freed), belief)
    if not isinstance(asked, Asked):
        word = Word.CLAIM_WAITING if isinstance(asked, Waiting) else Word.UNKNOWN_FIELD
        return Unplaceable(word, asked.message)
    not_ours = _of_domain(asked, extended, classes, belief.ownership.domain)
    refusal = not_ours or _of_allocated(pod, asked, belief) or _of_pending(pod, asked, belief)
    mapped = _mapped(pod, belief) or ""
    made = next((claim for claim in asked.allocated if claim.key.name == mapped), None)
    if refusal or made:
        return refusal or Needs(pod, asked.pending, asked.allocated, extended, classes, made=made)
    return _of_stale(pod, belief) or Needs(pod, asked.pending, asked.allocated, extended, classes, mapped)


def had_by(pod: Pod, belief: Belief) -> tuple[ResourceClaim, ...]:
    """Return the allocated claims of *pod*, whatever else is the matter with it: that is known without looking far."""
    asked = _with_hidden(pod, belief.cluster.claims.asked_by(pod), belief)
    return asked.allocated if isinstance(asked, Asked) else ()


def _served_by(spec: ClaimSpec) -> frozenset[tuple[str, int | None]]:
    """Say for whom *spec* asks, and for how much: its requests are named by containers and resources."""
    return frozenset((slot.name, slot.exactly.count if slot.exactly else None) for slot in spec.requests)


def _with_hidden(pod: Pod, asked: Asked | Waiting | Unclear, belief: Belief) -> Asked | Waiting | Unclear:
    """Add the claim that was made for the extended resources of *pod* and is in use by it already."""
    name = _mapped(pod, belief)
    made = belief.cluster.claims.get(ObjectKey(pod.key.namespace, name)) if name else None
    if not made or not made.allocation or made.problem or made.is_deleting or not is_reserved_for(made, pod):
        return asked
    return replace(asked, allocated=(*asked.allocated, made)) if isinstance(asked, Asked) else asked


def _mapped(pod: Pod, belief: Belief) -> str | None:
    """Return the claim that has the extended resources of *pod*; the scheduler's copy of the pod may be older."""
    known = belief.pods.with_uid(pod.uid)
    return pod.extended_claim or (known.extended_claim if known else None)


def stale_claim(pod: Pod, belief: Belief) -> ResourceClaim | None:
    """Find a claim that was made for the extended resources of *pod* in an earlier attempt."""
    return next((claim for claim in made_for(pod, belief) if belief.ledger.hold_of(claim.uid) is None), None)


def made_for(pod: Pod, belief: Belief) -> Iterator[ResourceClaim]:
    """Yield what was made for the extended resources of *pod*, in this attempt or an earlier one."""
    return (claim for claim in belief.cluster.claims.owned_by(pod) if (ANNOTATION, "true") in claim.annotations)


def _of_stale(pod: Pod, belief: Belief) -> Unplaceable | None:
    stale = stale_claim(pod, belief)
    if stale is None:
        return None
    return Unplaceable(Word.CLAIM_STALE, f"claim {stale.key.name} is left from an earlier attempt")


def _of_domain(asked: Asked, extended: tuple[str, ...], classes: Classes, domain: Domain) -> Unplaceable | None:
    """Refuse what asks for a class that is not ours. A claim that somebody has allocated may be used all the same."""
    for claim in asked.pending:
        for name in (name for name in classes_of(claim).values() if not domain.has_class(name)):
            return Unplaceable(
                Word.NOT_OURS, f"claim {claim.key.name} asks for class {name}, which is not ours to allocate"
            )
    for resource in extended:
        if not domain.has_class(classes[resource]):
            text = f"{resource} stands for class {classes[resource]}, which is not ours to allocate"
            return Unplaceable(Word.NOT_OURS, text)
    return None


def _of_allocated(pod: Pod, asked: Asked, belief: Belief) -> Unplaceable | None:
    for claim in asked.allocated:
        contest = contest_of(claim, belief)
        if contest:
            return Unplaceable(Word.CLAIM_CONTESTED, contest)
        if is_reserved_for(claim, pod):
            continue
        if len(claim.reserved_for) >= RESERVATIONS:
            return Unplaceable(Word.CLAIM_FULL, f"claim {claim.key.name} is reserved for {RESERVATIONS} pods")
        eviction = eviction_of(claim, belief)
        if eviction:
            return Unplaceable(Word.CLAIM_TAINTED, eviction)
    return None


def _of_pending(pod: Pod, asked: Asked, belief: Belief) -> Unplaceable | None:
    for claim in asked.pending:
        promise = belief.ledger.of_claim(claim.uid)
        if promise is not None and promise.pod != pod.uid:
            return Unplaceable(
                Word.CLAIM_IN_FLIGHT, f"claim {claim.key.name} is promised to another pod on {promise.node}"
            )
    return None
