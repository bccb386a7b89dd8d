"""Mending what stands in the way of pods: allocations that cannot be used, writes that nobody knows the end of.

kube-scheduler frees such allocations itself where its own plugin allocates. Ours is off in the profile that we serve.
"""

from collections.abc import Generator, Iterator
from typing import Final

from extender.allocation.result import is_bound_to_nodes
from extender.model.claim import ResourceClaim
from extender.model.names import ObjectKey, Uid
from extender.model.node import Pod, PodClaimStatus
from extender.scheduling.assigning import kept_off
from extender.scheduling.claiming import deleted, is_alone_in, is_gone, is_reserved_for, release, same_claim
from extender.scheduling.conditions import have_failed
from extender.scheduling.evicting import eviction_of
from extender.scheduling.needs import stale_claim
from extender.scheduling.steps import (
    LASTING,
    Done,
    Later,
    Outcome,
    Pause,
    ReadClaim,
    Step,
    TouchClaim,
    Unknown,
    is_refused,
)
from extender.state.belief import Belief, version
from extender.state.claims import Asked, named_by
from extender.state.ledger import ClaimHold, Event, Phase

Mending = Generator[Step, Outcome, bool]
# On a claim that was made from a template: for which entry of the pod.
ENTRY: Final = "resource.kubernetes.io/pod-claim-name"


def unusable(pod: Pod, belief: Belief, now: float) -> tuple[ResourceClaim, ...]:
    """Return the allocated claims of *pod* that nobody else uses: freeing them lets the pod go elsewhere.

    What can be used on every node is none of them, unless pods are evicted for it, and neither is what we could not
    allocate again.

    Where some hold what is an earlier claim's, these alone are in the way. What was made for extended resources is
    among them, allocated or not: it is in the way of another. So is what is being deleted and stays only because it is
    reserved, whoever else has it: the scheduler does not look at the pod before it is gone. And so is what was made for
    the pod, and given devices, before another was made in its place, which the pod names now. And so is, at the time
    *now*, what cannot be made ready, whoever else has it: that keeps it away wherever there is room.

    What is being deleted, and stays for somebody's finalizer alone, is none: nothing that we write makes it go.
    """
    asked = belief.cluster.claims.asked_by(pod)
    made = stale_claim(pod, belief)
    left = () if made is None or _is_going(made) else (made,)
    had = asked.allocated if isinstance(asked, Asked) else ()
    contested = tuple(claim for claim in (*had, *left) if belief.contested(claim))
    hinders = contested or (*(claim for claim in had if _is_in_the_way(claim, belief, now)), *left)
    alone = (claim for claim in hinders if is_alone_in(claim, pod))
    kept = belief.cluster.claims.kept_by(pod)
    failed = _failed(pod, belief, now)
    return tuple({claim.uid: claim for claim in (*alone, *replaced(pod, belief), *kept, *failed)}.values())


def has_devices(pod: Pod, belief: Belief) -> bool:
    """Tell whether *pod* has a claim with devices that nobody else uses: perhaps it was about to be bound with it."""
    return any(is_alone_in(claim, pod) for claim in belief.cluster.claims.given_to(pod))


def _is_in_the_way(claim: ResourceClaim, belief: Belief, now: float) -> bool:
    """Tell whether an allocated claim keeps its pod from some nodes, or all, and is ours to give anew; or is of no use.

    Without what only others can allocate, and we have freed, its pod would be nobody's to place.
    """
    is_bound = claim.allocation is not None and is_bound_to_nodes(claim.allocation)
    is_movable = (is_bound or bool(eviction_of(claim, belief))) and belief.ownership.domain.gives(claim)
    return is_movable or have_failed((claim,), now, belief.ready_within_s)


def _is_going(claim: ResourceClaim) -> bool:
    return claim.is_deleting and claim.allocation is None and not claim.reserved_for


def _failed(pod: Pod, belief: Belief, now: float) -> Iterator[ResourceClaim]:
    """Yield the claims that *pod* has a part in, and whose devices cannot be made ready."""
    for claim in map(belief.cluster.claims.get, sorted(set(named_by(pod)))):
        if claim and is_reserved_for(claim, pod) and have_failed((claim,), now, belief.ready_within_s):
            yield claim


def replaced(pod: Pod, belief: Belief) -> Iterator[ResourceClaim]:
    """Yield what was made for *pod*, has devices for it alone, and is named by it no more."""
    named = frozenset(named_by(pod))
    for claim in belief.cluster.claims.owned_by(pod):
        is_its_own = claim.allocation is not None and is_alone_in(claim, pod)
        is_left = claim.key not in named and claim.key.name != pod.extended_claim
        if is_its_own and is_left and belief.ledger.hold_of(claim.uid) is None:
            yield claim


def lacks_claims(pod: Pod, belief: Belief) -> bool:
    """Tell whether a claim is gone that was made for *pod* from a template."""
    if pod.is_deleting:
        return False
    namespace, known = pod.key.namespace, belief.cluster.claims
    # All pods that wait are looked through each second, and hardly any lacks one: that is what is asked first.
    lost = {
        made.name
        for made in pod.claim_statuses
        if made.claim_name and known.get(ObjectKey(namespace, made.claim_name)) is None
    }
    return bool(lost) and any(entry.template_name and entry.name in lost for entry in pod.claims)


def are_named(pod: Pod) -> bool:
    """Tell whether *pod* names all claims that it has from templates, which have been made then."""
    named = {status.name for status in pod.claim_statuses}
    return all(entry.name in named for entry in pod.claims if entry.template_name)


def unnamed(pod: Pod, belief: Belief) -> tuple[PodClaimStatus, ...]:
    """Return all that the status of *pod* has to name, where every claim was made and not every one is named there.

    What it names already is among that: who names a part takes back what it has named before. The name of a single
    claim is nowhere taken back for another: whoever made it names it, however long that takes where much is to be made.
    """
    entries = [entry.name for entry in pod.claims if entry.template_name]
    if len(entries) == 1 or pod.is_deleting or are_named(pod):
        return ()
    named = {status.name: status for status in pod.claim_statuses}
    made = _made_for_entries(pod, belief)
    found = [named.get(name) or made.get(name) for name in entries]
    return tuple(status for status in found if status and status.claim_name) if all(found) else ()


def _made_for_entries(pod: Pod, belief: Belief) -> dict[str, PodClaimStatus]:
    """Return the claims that were made for *pod* from templates, by entry; of several the first by name."""
    claims = sorted(belief.cluster.claims.owned_by(pod), key=lambda claim: claim.key, reverse=True)
    entries = ((dict(claim.annotations).get(ENTRY), claim) for claim in claims if not claim.is_deleting)
    return {name: PodClaimStatus(name=name, claim_name=claim.key.name) for name, claim in entries if name}


def freed(pod: Pod, belief: Belief, now: float) -> Generator[Step, Outcome, bool | None]:
    """Deallocate the claims that keep *pod* where it cannot go, and delete the one left from an earlier attempt.

    Tell whether that was done; None where it was not for lack of an answer.
    """
    with belief.alone_with(pod.uid) as is_alone:
        return is_alone and (yield from _answered(_freed(pod, belief, now)))


def _answered(work: Mending) -> Generator[Step, Outcome, bool | None]:
    is_silent = is_busy = False
    try:
        step = next(work)
        while True:
            outcome = yield step
            if isinstance(step, Pause):
                # Where there was time for it, it is asked again, and answered.
                is_busy = is_busy and not isinstance(outcome, Done)
            else:
                is_silent = is_silent or is_busy or isinstance(outcome, Unknown)
                is_busy = isinstance(outcome, Later)
            step = work.send(outcome)
    except StopIteration as end:
        return True if end.value else None if is_silent or is_busy else False


def _freed(pod: Pod, belief: Belief, now: float) -> Mending:
    done, made, found = False, stale_claim(pod, belief), unusable(pod, belief, now)
    if not found or not (yield from kept_off(pod)):
        return False
    for claim in found:
        is_free = yield from release(claim, pod, is_ours=True, kept_off=kept_off)
        if claim is made and is_free:
            is_free = yield from deleted(claim)
        done = is_free or done
    return done


def settled(belief: Belief, last: Uid | None = None) -> Generator[Step, Outcome, Uid | None]:
    """Find out about every write whose outcome is unknown, or see to it that it cannot land any more.

    Where one has no answer, others need not be waited for as well: return of which claim it is. Next time it is the
    *last*.
    """
    found = list(_unsettled(belief))
    first = next((number + 1 for number, (hold, _) in enumerate(found) if hold.claim == last), 0)
    for hold, key in found[first:] + found[:first]:
        if not (yield from _settle(hold, key, belief)):
            return hold.claim
    return None


def _unsettled(belief: Belief) -> Iterator[tuple[ClaimHold, ObjectKey]]:
    for promise in belief.ledger:
        for hold in promise.claims:
            is_open = hold.phase is Phase.UNKNOWN or (hold.phase is Phase.WRITTEN and hold.unseen is not None)
            claim = belief.cluster.claims.with_uid(hold.claim) if is_open else None
            key = claim.key if claim else hold.unseen
            if is_open and key is not None:
                yield hold, key


def _settle(hold: ClaimHold, key: ObjectKey, belief: Belief) -> Mending:
    """Find out about one write; tell whether there was an answer, and none that may be the same for ever.

    A claim that never was to be seen may be gone before the watch tells of it.
    """
    outcome = yield ReadClaim(key)
    fresh = same_claim(hold.claim, outcome)
    if fresh is not None and fresh.allocation is None and version(fresh) <= hold.version:
        outcome = yield TouchClaim(fresh)
        fresh = same_claim(hold.claim, outcome)
    # Meanwhile the binding may have found out itself, and have written anew: of that write nothing is known here.
    is_anew = belief.ledger.hold_of(hold.claim) not in (None, hold)
    if not is_anew and (fresh is not None or is_gone(outcome)):
        has_landed = fresh is not None and fresh.allocation is not None
        belief.ledger.tell_claim(hold.claim, Event.ACCEPTED if has_landed else Event.OUTDATED)
    return not (isinstance(outcome, Unknown | Later) or is_refused(outcome, *LASTING))
