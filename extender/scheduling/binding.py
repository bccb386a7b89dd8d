"""Binding one pod: claims first, then the pod, and everything back if that fails. Waits for nothing itself.

A binding is a generator: it yields the steps that the world has to take and is sent how each ended. What it decides,
it decides between two steps, on what is believed at that moment.
"""

from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass, field, replace
from typing import Final

from extender.model.claim import Allocation, ResourceClaim
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.assigning import Confirming, assigned, kept_off, obstacle_of
from extender.scheduling.choosing import Chooser
from extender.scheduling.claiming import (
    NotHad,
    Written,
    allocate,
    is_reserved_for,
    patiently,
    release,
    reserve,
    same_devices,
)
from extender.scheduling.conditions import Readiness, failed_for_others, standing_of, time_of
from extender.scheduling.endings import Bound, NotBound, Order, Result
from extender.scheduling.mapping import mapped, spared, unmade
from extender.scheduling.meant import current
from extender.scheduling.needs import Needs, Unplaceable
from extender.scheduling.placement import Placement
from extender.scheduling.remedy import replaced
from extender.scheduling.rivals import contest_of
from extender.scheduling.servable import unserved
from extender.scheduling.steps import (
    AwaitShown,
    CreateClaim,
    Done,
    Outcome,
    Step,
    told_by,
)
from extender.scheduling.unkept import unkept_of
from extender.state.belief import Belief, version
from extender.state.ledger import Event

WAITING: Final = "waiting for conditions"
Doing = Generator[Step, Outcome, Result]


@dataclass(slots=True)
class Binder:
    """Binds pods. *clock* gives the time that conditions are judged by; *offered* tells which nodes a pod may go to."""

    belief: Belief
    chooser: Chooser
    clock: Callable[[], float]
    offered: Callable[[Uid, NodeName], bool]
    # Extended resources that nodes need not have.
    ignored: Collection[str] = ()

    def bind(self, order: Order) -> Doing:
        """Carry out *order*, which may have been carried out before, wholly or in part."""
        with self.belief.alone_with(order.uid) as is_alone:
            if not is_alone:
                return NotBound("claims of the pod are being freed")
            return (yield from self._bound(order))

    def _bound(self, order: Order) -> Doing:
        found = yield from current(order, self.belief)
        if isinstance(found, NotBound):
            return found
        pod, needs = found
        if pod.node_name == order.node:
            return Bound(pod)
        obstacle = self._obstacle(pod, needs, order.node)
        if obstacle or isinstance(needs, Unplaceable):
            return NotBound(obstacle)
        if needs.is_plain:
            bound = yield from assigned(pod, order.node)
            return Bound(bound) if isinstance(bound, Pod) else NotBound(bound.message, bound.is_open, bound.is_open)
        return (yield from self._with_devices(needs, order.node))

    def _obstacle(self, pod: Pod, needs: Needs | Unplaceable, node: NodeName) -> str:
        """Say why *pod* is not put on *node*: whoever reaches our port is not believed blindly."""
        if pod.node_name:
            return f"the pod is on node {pod.node_name} already"
        is_offered = self.offered(pod.uid, node)
        obstacle = obstacle_of(pod) or ("" if is_offered else f"the pod was not offered node {node}")
        refusal = needs.detail if isinstance(needs, Unplaceable) else unserved(needs, node, self.belief, self.ignored)
        return obstacle or refusal

    def _with_devices(self, needs: Needs, node: NodeName) -> Doing:
        failed = failed_for_others(needs.allocated, needs.pod.uid, self.clock(), self.belief.ready_within_s)
        if failed:
            return (yield from self._left(needs, failed))
        placement = self.chooser.again(needs, node)
        if not isinstance(placement, Placement):
            return NotBound(self.chooser.explained(needs, node, placement))
        promise = placement.promise(needs, self.clock())
        if not self.belief.ledger.reserve(promise):
            return NotBound("a claim of the pod is being written already")
        work = _Work(self.belief, needs, placement, self.clock)
        try:
            result = yield from work.carried_out()
        except BaseException:
            # Whoever drops a binding in the middle may have sent its last step.
            for claim in work.unwritten():
                self.belief.unanswered(claim)
            raise
        for claim in work.unwritten():
            self.belief.ledger.tell_claim(claim, Event.REFUSED)
        return result

    def _left(self, needs: Needs, message: str) -> Doing:
        """Give up the part that the pod has in what cannot be made ready: whoever does so last frees it.

        Of several pods that wait for it none would, if each left that to the others.
        """
        pod, now, within_s = needs.pod, self.clock(), self.belief.ready_within_s
        failed = [claim for claim in needs.allocated if failed_for_others((claim,), pod.uid, now, within_s)]
        parts = [claim for claim in failed if is_reserved_for(claim, pod)]
        if parts and not (yield from kept_off(pod)):
            return NotBound(message, is_waiting=True, is_open=True)
        for claim in parts:
            yield from release(claim, pod, is_ours=False, kept_off=kept_off)
        return NotBound(message, is_unready=True)


@dataclass(slots=True)
class _Work:
    """One pod on its way to one node, and what was written for it so far."""

    belief: Belief
    needs: Needs
    placement: Placement
    clock: Callable[[], float]
    written: list[Written] = field(default_factory=list)
    made: list[ResourceClaim] = field(default_factory=list)

    def unwritten(self) -> list[Uid]:
        """Return the claims that are reserved in the ledger, and will not be written by this work."""
        claims = [claim.uid for claim, _ in self.placement.claims]
        return [uid for uid in claims if self.belief.ledger.is_reserved(uid, self.needs.pod.uid)]

    def carried_out(self) -> Doing:
        yield from self._given_up()
        awaited = self._awaited()
        return self._waiting(awaited) if awaited else (yield from self._finished())

    def _finished(self) -> Doing:
        problem = yield from self._claims()
        problem = problem or (yield from self._verified())
        # Sending the pod here has changed it, perhaps after the scheduler let it in.
        pod = self.belief.pods.current(self.needs.pod)
        if problem is None and self.made:
            told = yield from self._mapped(pod)
            pod, problem = (pod, told) if isinstance(told, NotHad) else (told, None)
        if problem is not None:
            return (yield from self._undone(problem.message))
        standing = standing_of(self._claims_now(), self.clock(), self.belief.ready_within_s)
        if standing.readiness is Readiness.WAITING:
            return self._waiting(standing.detail)
        if standing.readiness is Readiness.FAILED:
            return (yield from self._undone(standing.detail, frees=True))
        node, is_checked = self.placement.node, not self.made
        bound = yield from assigned(pod, node, self._loss, self._confirmed, is_checked=is_checked)
        if isinstance(bound, Pod):
            if bound.node_name:
                yield from spared(self.made, bound)
            return Bound(bound, self.placement)
        if bound.is_open:
            # As long as the Binding may still land, the pod needs what was written for it.
            return NotBound(bound.message, is_waiting=True, is_open=True, placement=self.placement)
        return (yield from self._undone(bound.message, is_running=bound.is_elsewhere))

    def _awaited(self) -> str:
        """Say what is awaited where the pod has all its claims: until it is there nothing need be written for them."""
        has = self.needs.allocated
        if self.placement.claims or not all(is_reserved_for(claim, self.needs.pod) for claim in has):
            return ""
        standing = standing_of(has, self.clock(), self.belief.ready_within_s)
        return standing.detail if standing.readiness is Readiness.WAITING else ""

    def _waiting(self, detail: str) -> NotBound:
        return NotBound(f"{WAITING}: {detail}", is_waiting=True, placement=self.placement)

    def _claims(self) -> Generator[Step, Outcome, NotHad | None]:
        """Write every claim; stop at the first that cannot be had."""
        now = time_of(self.clock())
        for claim, allocation in self.placement.claims:
            found = yield from self._claim(claim, replace(allocation, timestamp=now))
            if isinstance(found, NotHad):
                return found
            self.written.append(found)
            problem = unkept_of(found.claim, allocation)
            if problem:
                return NotHad(problem)
        for claim in self.needs.allocated:
            found = yield from reserve(claim, self.needs.pod)
            if isinstance(found, NotHad):
                return found
            self.written.append(found)
        return None

    def _claim(self, claim: ResourceClaim, allocation: Allocation) -> Generator[Step, Outcome, Written | NotHad]:
        hidden = self.placement.hidden
        if hidden is None or claim is not self.placement.claims[-1][0]:
            return (yield from allocate(claim, allocation, self.needs.pod, self.belief))
        outcome = yield from patiently(CreateClaim(self.needs.pod, hidden))
        made = outcome.what if isinstance(outcome, Done) else None
        if not isinstance(made, ResourceClaim):
            return NotHad(f"the claim for extended resources could not be made: {told_by(outcome)}")
        self.made.append(made)
        self.placement = self.placement.with_made(made)
        self.belief.made(claim.uid, made)
        return (yield from allocate(made, allocation, self.needs.pod, self.belief))

    def _verified(self) -> Generator[Step, Outcome, NotHad | None]:
        """See our writes on the watch, and that no claim was there before us."""
        for item in self.written:
            shown = yield AwaitShown(item.claim.uid, version(item.claim))
            if not isinstance(shown, Done):
                return NotHad(f"claim {item.claim.key.name}: the watch did not show its devices in time")
        loss = self._loss()
        return NotHad(loss) if loss else None

    def _loss(self) -> str:
        """Say what the pod no longer has of what was written for it, as far as the watch shows."""
        for item in self.written:
            name, known = item.claim.key.name, self.belief.cluster.claims.with_uid(item.claim.uid)
            if known is None or known.is_deleting:
                return f"claim {name} is gone"
            given, now = item.claim.allocation, known.allocation
            is_given = given is not None and now is not None and same_devices(given, now)
            if not (is_given and is_reserved_for(known, self.needs.pod)):
                return f"claim {name} was taken from the pod"
            contest = contest_of(known, self.belief)
            if contest:
                return contest
        return ""

    def _confirmed(self) -> Confirming:
        """Touch every claim: what somebody has sent to take it back, believing the pod to be off, cannot land then."""
        for index, item in enumerate(self.written):
            found = yield from reserve(item.claim, self.needs.pod)
            if isinstance(found, NotHad):
                return found.message
            self.written[index] = replace(item, claim=found.claim, is_had=True)
        return ""

    def _claims_now(self) -> list[ResourceClaim]:
        known = self.belief.cluster.claims
        return [known.with_uid(item.claim.uid) or item.claim for item in self.written]

    def _mapped(self, pod: Pod) -> Generator[Step, Outcome, Pod | NotHad]:
        for made in self.made:
            found = yield from mapped(pod, made.key.name, self.placement.hidden, self._confirmed)
            if isinstance(found, NotHad):
                return found
            pod = found
        return pod

    def _given_up(self) -> Generator[Step, Outcome, None]:
        """Release what the pod had before it named another claim. Once it runs with that, nobody looks for more.

        A claim may be shown before the pod that names it is, so that a Binding may be on its way with that one, too.
        What nobody answers keeps no pod from its node.
        """
        used = {claim.uid for claim in (*self.needs.pending, *self.needs.allocated)}
        left = [claim for claim in replaced(self.needs.pod, self.belief) if claim.uid not in used]
        if left and (yield from kept_off(self.needs.pod)):
            for claim in left:
                yield from release(claim, self.needs.pod, is_ours=True, kept_off=kept_off)

    def _undone(self, message: str, *, frees: bool = False, is_running: bool = False) -> Doing:
        """Take everything back, the last first, as far as it can be; what cannot is found again later.

        What was allocated before stays allocated, unless *frees*: its devices are of no use. A pod that *is_running*
        may be using it, and what somebody has changed since. Where it had something before, a Binding may have been
        sent before, too.
        """
        is_first = not any(item.is_had for item in self.written)
        if not (is_first or is_running or (yield from kept_off(self.needs.pod))):
            yield from spared(self.made, self.needs.pod)
            return NotBound(message, is_waiting=True, is_open=True)
        freed = {}
        for item in reversed(self.written):
            is_ours, is_used = item.is_ours or frees, is_running and (item.is_had or not item.is_ours)
            freed[item.claim.uid] = not is_used and (
                yield from release(item.claim, self.needs.pod, is_ours=is_ours, kept_off=kept_off)
            )
        yield from unmade(self.made, freed, self.needs.pod)
        return NotBound(message, is_unready=frees)
