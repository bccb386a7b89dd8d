"""Decisions put into records, and records into words for people."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Final

from extender.allocation.extended import in_words, unmade_name
from extender.model.names import DeviceKey, NodeName
from extender.model.node import Pod
from extender.scheduling.advice import Advice
from extender.scheduling.decision import Decided, Decision, Given, Ranked
from extender.scheduling.endings import Ending, NotBound, Result
from extender.scheduling.placement import Placement
from extender.scheduling.planner import Offer, Rejection
from extender.scheduling.tally import Tally
from extender.scheduling.vocabulary import TEXTS, Word
from extender.topology.appraisal import NO_BASIS, Basis

# What an event may say, in bytes, and what is told of the rest; reasons beyond these are in the record.
NOTE_BYTES, ELLIPSIS = 1024, "…"
MOST_REASONS = 5
# Devices that a note lists: the reasons come after them.
MOST_DEVICES = 8
# Thousands of records are kept, and most of them were made by the same policies.
_shared: Final = lru_cache(maxsize=256)(Basis)


def of_plan(pod: Pod, plan: Offer | Rejection, generation: int, now: float) -> Decision:
    """Record what filter answered."""
    rejected = _in_words(plan.rejected, pod)
    decision = partial(Decision, pod=pod.key, uid=pod.uid, at=now, generation=generation, rejected=rejected)
    if isinstance(plan, Rejection):
        return decision(outcome=Decided.REJECTED, reason=plan.word, detail=in_words(plan.detail, pod))
    return decision(
        outcome=Decided.OFFERED,
        reason="Fits",
        node=plan.placement.node,
        given=given_by(plan.placement),
        best=plan.best,
        basis=_shared(*plan.placement.appraisal.basis) if plan.placement.appraisal else NO_BASIS,
        fitting=plan.fitting,
        offered=len(plan.scores),
    )


def of_advice(pod: Pod, advice: Advice, generation: int, now: float) -> Decision:
    """Record what an advisor said: the best node, and what kube-scheduler would give the pod there."""
    placement = advice.placement
    return Decision(
        pod=pod.key,
        uid=pod.uid,
        at=now,
        generation=generation,
        outcome=Decided.OFFERED,
        reason="Advised",
        node=placement.node if placement else None,
        given=given_by(placement) if placement else (),
        best=advice.best,
        fitting=int(advice.passes.sum()),
        offered=int(advice.passes.sum()),
        rejected=_in_words(advice.rejected, pod),
    )


def _in_words(tallies: tuple[Tally, ...], pod: Pod) -> tuple[Tally, ...]:
    """Say the same of a pod's extended resources as of claims that somebody wrote."""
    name = unmade_name(pod)
    if not any(name in tally.message for tally in tallies):
        return tallies
    return tuple(tally._replace(message=in_words(tally.message, pod)) for tally in tallies)


def of_result(pod: Pod, result: Result, node: NodeName, before: Decision | None, now: float) -> Decision:
    """Record how a bind ended, with what filter had said *before*."""
    offer = before if before and before.uid == pod.uid and before.outcome is Decided.OFFERED else None
    decision = Decision(
        pod=pod.key,
        uid=pod.uid,
        at=now,
        generation=before.generation if before else 0,
        outcome=Decided.BOUND,
        reason=Ending.ALLOCATED,
        node=node,
    )
    if isinstance(result, NotBound):
        outcome = Decided.WAITING if result.is_waiting else Decided.FAILED
        decision = replace(decision, outcome=outcome, reason=result.ending, detail=in_words(result.message, pod))
    return decision if decision.outcome is Decided.FAILED else _explained(decision, offer, result.placement)


def _explained(decision: Decision, offer: Decision | None, placement: Placement | None) -> Decision:
    """Tell in *decision* which devices the pod was given, and why."""
    best, basis = _given_reasons(offer, placement)
    return replace(
        decision,
        given=given_by(placement) if placement else (),
        best=best,
        basis=basis,
        fitting=offer.fitting if offer else 0,
        offered=offer.offered if offer else 0,
        rejected=offer.rejected if offer else (),
    )


def landed(decision: Decision, now: float) -> Decision:
    """Tell that a pod is bound of which *decision* told that nobody knows."""
    return replace(decision, at=now, outcome=Decided.BOUND, reason=Ending.ALLOCATED, detail="")


def continued(decision: Decision, first: Decision, had: Collection[DeviceKey]) -> Decision:
    """Tell in *decision* what *first* told of devices that the pod was given then, on the same node, and *had* now."""
    is_later = decision.outcome in (Decided.BOUND, Decided.WAITING) and not decision.given
    is_same = (decision.uid, decision.node) == (first.uid, first.node)
    if not (is_later and is_same and all(item.device in had for item in first.given)):
        return decision
    return replace(
        decision,
        given=first.given,
        best=first.best,
        basis=first.basis,
        fitting=first.fitting,
        offered=first.offered,
        rejected=first.rejected,
    )


def _given_reasons(offer: Decision | None, placement: Placement | None) -> tuple[tuple[Ranked, ...], Basis]:
    """Say what speaks for the node of *placement* beside others: for other devices than those offered, what does."""
    if offer is None:
        return (), NO_BASIS
    appraisal = placement.appraisal if placement else None
    if placement is None or appraisal is None:
        return offer.best, offer.basis
    best = (
        replace(item, value=appraisal.value, parts=appraisal.parts) if item.node == placement.node else item
        for item in offer.best
    )
    return tuple(best), _shared(*appraisal.basis)


def given_by(placement: Placement) -> tuple[Given, ...]:
    """List the devices of *placement*."""
    return tuple(
        Given(claim.key.name, item.request, item.device)
        for claim, allocation in placement.claims
        for item in allocation.devices
    )


def note_of(decision: Decision) -> str:
    """Tell a decision to people, in a kilobyte."""
    text = _of_success(decision) if decision.outcome in (Decided.BOUND, Decided.OFFERED) else _of_failure(decision)
    return shortened(text)


def shortened(text: str) -> str:
    """Cut off what an event has no room for, and show that there is more."""
    # What strangers wrote may hold half a character, which cannot be written.
    written = text.encode(errors="replace")
    if len(written) <= NOTE_BYTES:
        return written.decode()
    return written[: NOTE_BYTES - len(ELLIPSIS.encode())].decode(errors="ignore") + ELLIPSIS


def in_few_words(given: Sequence[Given]) -> str:
    """Tell which request has which device, of which claim where there are several; of many devices the first."""
    is_one = len({item.claim for item in given}) == 1
    named = [
        f"{item.request}={'/'.join(item.device)}" + ("" if is_one else f" (claim {item.claim})")
        for item in given[:MOST_DEVICES]
    ]
    more = len(given) - MOST_DEVICES
    return ", ".join([*named, *([f"and {more} more"] if more > 0 else [])])


def _of_success(decision: Decision) -> str:
    devices = in_few_words(decision.given)
    parts = [f"node {decision.node}: {devices or 'no new devices'}"]
    mine = next((item for item in decision.best if item.node == decision.node), None)
    if mine:
        parts.append(_scored(mine))
    other = next((item for item in decision.best if item.node != decision.node), None)
    if other:
        parts.append(f"runner-up {other.node} with {_scored(other)}")
    if decision.fitting:
        parts.append("1 node fits" if decision.fitting == 1 else f"{decision.fitting} nodes fit")
    return "; ".join(parts)


def _scored(item: Ranked) -> str:
    return f"score {item.score}: {item.words}" if item.words else f"score {item.score}"


def _of_failure(decision: Decision) -> str:
    if decision.outcome is not Decided.REJECTED:
        return decision.detail
    text = TEXTS[Word(decision.reason)]
    lead = text if decision.detail in ("", text) else f"{text}: {decision.detail}"
    # What was nearest to a success leads, and is not told again among what the other nodes lack.
    nearest = next((tally for tally in decision.rejected if tally.message == decision.detail), None)
    if nearest:
        lead += f" ({_nodes(nearest)}, such as {nearest.example})"
    others = [tally for tally in decision.rejected if tally is not nearest]
    reasons = [f"{_nodes(tally)}: {tally.message} (such as {tally.example})" for tally in others[:MOST_REASONS]]
    more = len(others) - MOST_REASONS
    return "; ".join([lead, *reasons, *([f"and {more} more"] if more > 0 else [])])


def _nodes(tally: Tally) -> str:
    return "1 node" if tally.nodes == 1 else f"{tally.nodes} nodes"
