"""Writing one claim's allocation, and taking it back. A refusal is an answer; no answer is not.

A write whose outcome is unknown can land for as long as the version that it is based on is current. So its hold ends
only when the watch shows the allocation, or when the version is known to have moved on without it.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from extender.model.claim import Allocation, Consumer, ResourceClaim
from extender.model.node import Pod
from extender.scheduling.steps import (
    AddFinalizer,
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
)
from extender.state.belief import Belief, version
from extender.state.ledger import Event

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
# Conflicts and pauses that one write is worth: each means that somebody else was there first.
ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class Written:
    """A claim that the pod may use now. *is_ours*: we allocated it just now; otherwise we only reserved it."""

    claim: ResourceClaim
    is_ours: bool


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the claim could not be had."""

    message: str


Claiming = Generator[Step, Outcome, Written | Problem]


def consumer_of(pod: Pod) -> Consumer:
    """Return the entry of ``reservedFor`` that names *pod*."""
    return Consumer(resource="pods", name=pod.key.name, uid=pod.uid)


def allocate(claim: ResourceClaim, allocation: Allocation, pod: Pod, belief: Belief) -> Claiming:
    """Write *allocation*, which is reserved in the ledger already."""
    for _ in range(ATTEMPTS):
        step = _next_write(claim, allocation, pod)
        if not belief.ledger.is_reserved(claim.uid):
            return Problem(f"claim {claim.key.name}: its devices are no longer kept for the pod")
        belief.ledger.rebase(claim.uid, version(claim))
        outcome = yield step
        match outcome:
            case Done(ResourceClaim() as fresh) if isinstance(step, AddFinalizer):
                claim = fresh
                continue
            case Done(ResourceClaim() as fresh):
                belief.ledger.tell_claim(claim.uid, Event.ACCEPTED)
                return Written(fresh, is_ours=True)
            case Later(seconds):
                yield Pause(seconds)
                continue
            case Refused(kind, message) if kind is not Refusal.CONFLICT:
                belief.ledger.tell_claim(claim.uid, Event.REFUSED)
                return Problem(f"claim {claim.key.name}: {message or kind.value}")
        is_open = isinstance(outcome, Unknown) and isinstance(step, WriteAllocation)
        if is_open:
            belief.unanswered(claim.uid)
        found = yield from _looked_up(claim, allocation, pod, belief, is_open=is_open)
        if not isinstance(found, ResourceClaim):
            return found
        claim = found
    belief.ledger.tell_claim(claim.uid, Event.REFUSED)
    return Problem(f"claim {claim.key.name} kept changing")


def _next_write(claim: ResourceClaim, allocation: Allocation, pod: Pod) -> AddFinalizer | WriteAllocation:
    if FINALIZER not in claim.finalizers:
        return AddFinalizer(claim)
    return WriteAllocation(claim, allocation, consumer_of(pod))


def _looked_up(
    claim: ResourceClaim, allocation: Allocation, pod: Pod, belief: Belief, *, is_open: bool
) -> Generator[Step, Outcome, ResourceClaim | Written | Problem]:
    """Find out what became of *claim* after a write that did not simply succeed; a claim means: try again with it."""
    outcome = yield ReadClaim(claim.key)
    fresh = outcome.what if isinstance(outcome, Done) else None
    if not isinstance(fresh, ResourceClaim) or fresh.uid != claim.uid:
        return _lost(claim, belief, is_open=is_open and not _is_gone(outcome, fresh))
    if fresh.allocation is not None:
        belief.ledger.tell_claim(claim.uid, Event.ACCEPTED)
        if same_devices(fresh.allocation, allocation) and any(item.uid == pod.uid for item in fresh.reserved_for):
            return Written(fresh, is_ours=True)
        return Problem(f"claim {claim.key.name} was allocated by somebody else")
    if fresh.is_deleting:
        return _lost(claim, belief, is_open=is_open)
    return (yield from _shut_out(fresh, belief)) if is_open else fresh


def _lost(claim: ResourceClaim, belief: Belief, *, is_open: bool) -> Problem:
    """Give *claim* up. Where a write may still land its hold stays until the watch tells."""
    if not is_open:
        belief.ledger.tell_claim(claim.uid, Event.REFUSED)
        belief.ledger.tell_claim(claim.uid, Event.OUTDATED)
        return Problem(f"claim {claim.key.name} is gone or cannot be read")
    return Problem(f"claim {claim.key.name}: nobody knows yet whether its devices were written")


def _is_gone(outcome: Outcome, fresh: object) -> bool:
    return isinstance(fresh, ResourceClaim) or (isinstance(outcome, Refused) and outcome.kind is Refusal.NOT_FOUND)


def _shut_out(claim: ResourceClaim, belief: Belief) -> Generator[Step, Outcome, ResourceClaim | Problem]:
    """Move the claim on, so that the write that nobody knows of cannot land any more."""
    outcome = yield TouchClaim(claim)
    if isinstance(outcome, Done) and isinstance(outcome.what, ResourceClaim) and outcome.what.allocation is None:
        belief.ledger.tell_claim(claim.uid, Event.RESUMED)
        return outcome.what
    return Problem(f"claim {claim.key.name}: nobody knows yet whether its devices were written")


def reserve(claim: ResourceClaim, pod: Pod) -> Claiming:
    """Reserve a claim that is allocated already."""
    for _ in range(ATTEMPTS):
        if any(item.uid == pod.uid for item in claim.reserved_for):
            return Written(claim, is_ours=False)
        outcome = yield Reserve(claim, consumer_of(pod))
        if isinstance(outcome, Later):
            yield Pause(outcome.seconds)
        elif isinstance(outcome, Done) and isinstance(outcome.what, ResourceClaim):
            return Written(outcome.what, is_ours=False)
        elif isinstance(outcome, Refused) and outcome.kind is not Refusal.CONFLICT:
            return Problem(f"claim {claim.key.name}: {outcome.message or outcome.kind.value}")
        else:
            outcome = yield ReadClaim(claim.key)
            fresh = outcome.what if isinstance(outcome, Done) else None
            if not isinstance(fresh, ResourceClaim) or fresh.uid != claim.uid or fresh.allocation is None:
                return Problem(f"claim {claim.key.name} is gone or holds no devices any more")
            claim = fresh
    return Problem(f"claim {claim.key.name} kept changing")


def release(claim: ResourceClaim, pod: Pod, *, is_ours: bool) -> Generator[Step, Outcome, bool]:
    """Take back what *pod* has of *claim*: its reservation, and the allocation if nobody else uses it."""
    for _ in range(ATTEMPTS):
        others = [item for item in claim.reserved_for if item.uid != pod.uid]
        outcome = yield Release(claim, pod.uid, deallocate=is_ours and not others)
        if isinstance(outcome, Done):
            return True
        if isinstance(outcome, Later):
            yield Pause(outcome.seconds)
        outcome = yield ReadClaim(claim.key)
        fresh = outcome.what if isinstance(outcome, Done) else None
        if not isinstance(fresh, ResourceClaim) or fresh.uid != claim.uid:
            return isinstance(outcome, Refused) and outcome.kind is Refusal.NOT_FOUND
        if all(item.uid != pod.uid for item in fresh.reserved_for):
            return True
        claim = fresh
    return False


def same_devices(left: Allocation, right: Allocation) -> bool:
    """Tell whether two allocations give the same devices to the same requests."""

    def given(allocation: Allocation) -> list[tuple[object, ...]]:
        return [(item.request, item.device, item.share_id) for item in allocation.devices]

    return given(left) == given(right)
