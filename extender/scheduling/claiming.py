"""Writing one claim's allocation, and taking it back. A refusal is an answer; no answer is not.

A write whose outcome is unknown can land for as long as the version that it is based on is current. So its hold ends
only when the watch shows the allocation, or when the version is known to have moved on without it.
"""

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Final

from extender.model.claim import Allocation, Consumer, ResourceClaim
from extender.model.frozen import dataclass
from extender.model.names import Uid
from extender.model.node import Pod
from extender.scheduling.steps import (
    LASTING,
    AddFinalizer,
    DeleteClaim,
    Done,
    Later,
    Outcome,
    Pause,
    ReadClaim,
    Refusal,
    Refused,
    Release,
    Reserve,
    Step,
    TouchClaim,
    Unknown,
    WriteAllocation,
    is_refused,
    told_after,
    told_by,
    vain,
)
from extender.scheduling.unkept import unkept_of, unshared
from extender.state.belief import Belief, version
from extender.state.ledger import Event

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
# Conflicts and pauses that one write is worth: each means that somebody else was there first.
ATTEMPTS: Final = 5
# Of one that several pods use: kube-controller-manager 1.37.1 goes on to reserve it for pods that have finished, and to
# take that back, up to a hundred times a second. The deadline of the bind may end it sooner.
SHARED_ATTEMPTS: Final = 30


@dataclass(frozen=True, slots=True)
class Written:
    """A claim that the pod may use now. *is_ours*: we allocated it just now; otherwise we only reserved it.

    *is_had*: it was reserved for the pod before, so that a Binding may have been sent before, too; perhaps not by us.
    """

    claim: ResourceClaim
    is_ours: bool
    is_had: bool = False


@dataclass(frozen=True, slots=True)
class NotHad:
    """Why the claim could not be had."""

    message: str


Claiming = Generator[Step, Outcome, Written | NotHad]
# Sees to it that no Binding of a pod that was sent before can land; False where the pod has a node.
KeptOff = Callable[[Pod], Generator[Step, Outcome, bool]]


def consumer_of(pod: Pod) -> Consumer:
    """Return the entry of ``reservedFor`` that names *pod*."""
    return Consumer(resource="pods", name=pod.key.name, uid=pod.uid)


def patiently(step: Step) -> Generator[Step, Outcome, Outcome]:
    """Take *step*; where it is to come later nothing of it was looked at, and it is taken again, if there is time."""
    outcome: Outcome = yield step
    for _ in range(ATTEMPTS):
        if not isinstance(outcome, Later) or not isinstance((yield Pause(outcome.seconds, step)), Done):
            break
        again = yield step
        if is_refused(again, Refusal.UNSENT):
            # Why there was a pause says more than that there was no time left after it.
            break
        outcome = again
    return outcome


def allocate(claim: ResourceClaim, allocation: Allocation, pod: Pod, belief: Belief) -> Claiming:
    """Write *allocation*, which is reserved in the ledger already."""
    outcome: Outcome = Done()
    for _ in range(ATTEMPTS):
        step = _next_write(claim, allocation, pod)
        if not belief.ledger.is_reserved(claim.uid, pod.uid):
            after = f", after {told_by(outcome)}" if isinstance(outcome, Unknown) else ""
            return NotHad(f"claim {claim.key.name}: its devices are no longer kept for the pod{after}")
        belief.ledger.rebase(claim.uid, version(claim))
        before, outcome = outcome, (yield step)
        match outcome:
            case Done(ResourceClaim() as fresh) if isinstance(step, AddFinalizer):
                claim = fresh
                continue
            case Done(ResourceClaim(allocation=None) as fresh):
                # Nothing was stored, so that no watch will ever tell of it.
                belief.ledger.tell(pod.uid, Event.REFUSED, claim.uid)
                return NotHad(unkept_of(fresh, allocation))
            case Done(ResourceClaim() as fresh):
                belief.accepted(pod.uid, fresh)
                return Written(fresh, is_ours=True)
            case Later(seconds):
                yield Pause(seconds, step)
                continue
            case Refused(kind) if kind is not Refusal.CONFLICT:
                belief.ledger.tell(pod.uid, Event.REFUSED, claim.uid)
                return NotHad(f"claim {claim.key.name}: {told_after(before, outcome)}")
        is_open = isinstance(outcome, Unknown) and isinstance(step, WriteAllocation)
        if is_open:
            belief.unanswered(claim.uid)
        unheard = told_by(outcome) if is_open else ""
        found = yield from _looked_up(claim, allocation, pod, belief, unheard)
        if not isinstance(found, ResourceClaim):
            return found
        claim = found
    belief.ledger.tell(pod.uid, Event.REFUSED, claim.uid)
    return NotHad(vain(f"claim {claim.key.name}", outcome))


def _next_write(claim: ResourceClaim, allocation: Allocation, pod: Pod) -> AddFinalizer | WriteAllocation:
    if FINALIZER not in claim.finalizers:
        return AddFinalizer(claim)
    return WriteAllocation(claim, allocation, consumer_of(pod))


def _looked_up(
    claim: ResourceClaim, allocation: Allocation, pod: Pod, belief: Belief, unheard: str
) -> Generator[Step, Outcome, ResourceClaim | Written | NotHad]:
    """Find out what became of *claim* after a write that did not simply succeed; a claim means: try again with it.

    *unheard*: why nobody knows whether its allocation was written, where nobody does.
    """
    outcome = yield from patiently(ReadClaim(claim.key))
    fresh = same_claim(claim.uid, outcome)
    if fresh is not None and fresh.allocation is None and unheard and version(fresh) <= version(claim):
        # Nobody else moved the claim on, so that what nobody knows of could land still.
        outcome = yield from patiently(TouchClaim(fresh))
        fresh = same_claim(claim.uid, outcome)
    if fresh is None and unheard and not is_gone(outcome):
        # A write may still land: the hold stays until the watch tells.
        why = told_by(outcome) if is_refused(outcome, *LASTING) else unheard
        return NotHad(f"claim {claim.key.name}: nobody knows yet whether its devices were written: {why}")
    if fresh is None:
        return _lost(claim, pod, belief, "is gone" if is_gone(outcome) else f"cannot be read: {told_by(outcome)}")
    if fresh.allocation is not None:
        belief.accepted(pod.uid, fresh)
        is_written = any(same_devices(fresh.allocation, each) for each in (allocation, unshared(allocation)))
        if is_written and is_reserved_for(fresh, pod):
            # Perhaps by another of our kind, which chose alike and may have sent a Binding, or take it back just now:
            # it is touched, so that what was sent for that, based on its own write, cannot land after our Binding.
            found = yield from reserve(fresh, pod)
            return replace(found, is_ours=True) if isinstance(found, Written) else found
        return NotHad(f"claim {claim.key.name} was allocated by somebody else")
    if fresh.is_deleting:
        return _lost(claim, pod, belief, "is being deleted")
    belief.ledger.tell(pod.uid, Event.RESUMED, claim.uid)
    return fresh


def same_claim(uid: Uid, outcome: Outcome) -> ResourceClaim | None:
    """Return the claim with *uid* as it was answered; None where the answer is none, or another claim."""
    fresh = outcome.what if isinstance(outcome, Done) else None
    return fresh if isinstance(fresh, ResourceClaim) and fresh.uid == uid else None


def _lost(claim: ResourceClaim, pod: Pod, belief: Belief, why: str) -> NotHad:
    """Give *claim* up, and its hold: no write of ours can land."""
    belief.ledger.tell(pod.uid, Event.REFUSED, claim.uid)
    belief.ledger.tell(pod.uid, Event.OUTDATED, claim.uid)
    return NotHad(f"claim {claim.key.name} {why}")


def is_gone(outcome: Outcome) -> bool:
    """Tell whether a claim that was not found in *outcome* is no more: there is none of its name, or another."""
    is_another = isinstance(outcome, Done) and isinstance(outcome.what, ResourceClaim)
    return is_another or is_refused(outcome, Refusal.NOT_FOUND)


def reserve(claim: ResourceClaim, pod: Pod) -> Claiming:
    """Reserve a claim that is allocated already.

    One that is reserved for *pod* is touched: what an earlier attempt sent to take it back may not be shown yet, or not
    have landed yet.
    """
    unheard = 0
    outcome: Outcome = Done()
    for _ in range(SHARED_ATTEMPTS):
        is_had, before = is_reserved_for(claim, pod), outcome
        outcome = yield from patiently(TouchClaim(claim) if is_had else Reserve(claim, consumer_of(pod)))
        unheard += isinstance(outcome, Unknown)
        match outcome:
            case Done(ResourceClaim() as fresh) if is_had and not _is_usable_by(fresh, pod, claim):
                return NotHad(f"claim {claim.key.name} was taken from the pod")
            case Done(ResourceClaim() as fresh):
                return Written(fresh, is_ours=False, is_had=is_had)
            case Later() | Refused() if not is_refused(outcome, Refusal.CONFLICT, Refusal.IN_VAIN):
                return NotHad(f"claim {claim.key.name}: {told_after(before, outcome)}")
        again = same_claim(claim.uid, (yield from patiently(ReadClaim(claim.key))))
        if again is None or again.is_deleting or not _gives_the_same(again, claim):
            return NotHad(f"claim {claim.key.name} is gone or holds other devices now")
        if is_refused(outcome, Refusal.IN_VAIN) and is_reserved_for(again, pod):
            # Where nothing can be touched there is no more to be known: without this, its pod would never be bound.
            return Written(again, is_ours=False, is_had=True)
        if unheard == ATTEMPTS:
            # Each may have taken as long as we wait for an answer, and a touch is sent after any deadline.
            break
        claim = again
    return NotHad(vain(f"claim {claim.key.name}", outcome))


def release(
    claim: ResourceClaim, pod: Pod, *, is_ours: bool, kept_off: KeptOff | None = None
) -> Generator[Step, Outcome, bool]:
    """Take back what *pod* has of *claim*: its reservation, and the allocation if nobody else uses it.

    Whoever has changed the claim may be about to bind the pod with it: it is *kept_off* once more, where it may be.

    With the last reservation the allocation always goes, whoever wrote it: of one that nobody uses nobody would think.
    """
    given = claim
    for _ in range(ATTEMPTS):
        is_last = is_alone_in(claim, pod)
        if not is_reserved_for(claim, pod) and not (is_ours and is_last and _gives_the_same(claim, given)):
            return True
        outcome = yield from patiently(Release(claim, pod.uid, deallocate=is_last))
        match outcome:
            case Done():
                return True
            case Later() | Refused() if not is_refused(outcome, Refusal.CONFLICT):
                return is_gone(outcome)
        outcome = yield from patiently(ReadClaim(claim.key))
        fresh = same_claim(claim.uid, outcome)
        if fresh is None:
            return is_gone(outcome)
        claim = fresh
        if kept_off is not None and not (yield from kept_off(pod)):
            return False
    return False


def deleted(claim: ResourceClaim) -> Generator[Step, Outcome, bool]:
    """Delete *claim* as it was read, and only where it holds nothing and nobody uses it; tell whether it is gone.

    Whoever changes it meanwhile may be about to use it: then it is looked at again.
    """
    for _ in range(ATTEMPTS):
        outcome = yield from patiently(ReadClaim(claim.key))
        fresh = same_claim(claim.uid, outcome)
        if fresh is None:
            return is_gone(outcome)
        if fresh.allocation is not None or fresh.reserved_for:
            return False
        outcome = yield from patiently(DeleteClaim(fresh))
        if not is_refused(outcome, Refusal.CONFLICT):
            return isinstance(outcome, Done) or is_gone(outcome)
    return False


def _is_usable_by(fresh: ResourceClaim, pod: Pod, known: ResourceClaim) -> bool:
    return not fresh.is_deleting and is_reserved_for(fresh, pod) and _gives_the_same(fresh, known)


def _gives_the_same(left: ResourceClaim, right: ResourceClaim) -> bool:
    """Tell whether both versions of a claim hold devices, and the same."""
    return bool(left.allocation and right.allocation) and left.allocation == right.allocation


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Tell whether *pod* may use *claim* already."""
    return any(consumer.uid == pod.uid for consumer in claim.reserved_for)


def is_alone_in(claim: ResourceClaim, pod: Pod) -> bool:
    """Tell whether nobody but *pod* may use *claim*."""
    return all(consumer.uid == pod.uid for consumer in claim.reserved_for)


def same_devices(left: Allocation, right: Allocation) -> bool:
    """Tell whether two allocations give the same devices to the same requests."""

    def given(allocation: Allocation) -> list[tuple[object, ...]]:
        return [(item.request, item.device, item.share_id) for item in allocation.devices]

    return given(left) == given(right)
