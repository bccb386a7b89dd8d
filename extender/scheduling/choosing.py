"""The devices for a pod on one node."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from extender.allocation.choose import choosing
from extender.allocation.extended import through_devices
from extender.allocation.question import Refusal
from extender.allocation.reason import Reason
from extender.allocation.result import Release, allocations, is_usable, overfull, written
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import BEST, Failure, Manner, Solution, Undecided, why_not
from extender.allocation.work import finished, finished_with_pauses
from extender.model.claim import Allocation, ResourceClaim
from extender.model.names import NodeName, Uid
from extender.scheduling.needs import Needs
from extender.scheduling.placement import Placement
from extender.scheduling.precedent import FORBIDDEN, OPEN, SHORT, Case, Vain
from extender.scheduling.recall import Grounds, Recall, World, grounds_of, world_of
from extender.scheduling.servable import unsuited
from extender.scheduling.survey import claims_for
from extender.scheduling.taste import Forbidden, Taste
from extender.state.belief import Belief
from extender.topology.appraisal import Appraisal
from extender.topology.policy import Policy


class _Given(NamedTuple):
    """What each claim gets on a node, and how good that is, where anything is preferred."""

    allocations: tuple[Allocation, ...]
    appraisal: Appraisal | None = None


@dataclass(slots=True)
class Chooser:
    """Chooses devices. share_id: gives a new identifier for each share of a device.

    *taste* may be replaced at any time; without one there is what *manner* prefers. *pauses*: how often searches took
    so long that others could have been answered meanwhile.
    """

    belief: Belief
    share_id: Callable[[], str]
    manner: Manner = BEST
    release: Release = Release.V1_37
    taste: Taste | None = None
    pauses: int = 0
    _recall: Recall = field(default_factory=Recall)

    def place(self, needs: Needs, node: NodeName, snapshot: Snapshot | None = None) -> Placement | Vain | str:
        """Find devices on *node*, as things are now or as *snapshot* has them.

        Vain where they were looked for in vain; a text where the pod cannot be there at all.
        """
        if snapshot is not None:
            return self._searched(needs, node, snapshot)
        seen = self.belief.seen_by(needs.pod.uid)
        placement = self._searched(needs, node, seen)
        if isinstance(placement, Placement):
            self._recall.put(needs, placement, seen, self.taste)
        return placement

    def again(self, needs: Needs, node: NodeName) -> Placement | Vain | str:
        """Return what the pod was offered on *node*, or find devices there if that cannot be had any more."""
        return self.kept(needs, node) or self.place(needs, node)

    def kept(self, needs: Needs, node: NodeName) -> Placement | None:
        """Return what was found for the pod on *node* last, if it can still be had."""
        pod, ledger = needs.pod.uid, self.belief.ledger
        is_left = partial(ledger.is_left_to, pod)
        return self._recall.get(needs, node, self.belief.cluster.snapshot, self.taste, is_left)

    def explained(self, needs: Needs, node: NodeName, why: Vain | str) -> str:
        """Say with *why* what is short on *node*. Most searches are not for people, so they leave that out."""
        if why != SHORT.on(node):
            return str(why)
        seen = self.belief.seen_by(needs.pod.uid)
        claims = claims_for(needs, through_devices(needs.extended, seen.nodes[node]))
        question = self.belief.questions.question(claims, seen.classes)
        answer = finished(choosing(seen, bisect_left(seen.layout.nodes, node), question))
        reason = finished(why_not(answer))
        return f"{why}: {reason.named(question)}" if isinstance(reason, Reason) else str(why)

    def world(self, node: NodeName) -> World:
        """Return what decides, beside what is taken, which devices can be had on *node* now."""
        return world_of(self.belief.cluster.snapshot, node, self.taste)

    def grounds(self) -> Grounds:
        """Return the parts of the cluster that all worlds are taken from, as they are now."""
        return grounds_of(self.belief.cluster.snapshot, self.taste)

    def forget(self, pod: Uid) -> None:
        """Forget what was found for a pod that waits no longer."""
        self._recall.drop(pod)
        if self.taste is not None:
            self.taste.forget(pod)

    def _searched(self, needs: Needs, node: NodeName, snapshot: Snapshot) -> Placement | Vain | str:
        known = snapshot.nodes.get(node)
        if known is None:
            return f"node {node} is not known"
        for claim in needs.allocated:
            if claim.allocation and not is_usable(claim.allocation, known):
                return f"claim {claim.key.name} is allocated on another node"
        resources = through_devices(needs.extended, known)
        if not needs.suits(resources):
            return unsuited(needs, node)
        claims = claims_for(needs, resources)
        if not claims:
            return Placement(node)
        given = self._given(snapshot, bisect_left(snapshot.layout.nodes, node), claims)
        if not isinstance(given, _Given):
            return given
        hidden = needs.hidden(resources) if resources and needs.made is None else None
        placement = Placement(node, tuple(zip(claims, given.allocations, strict=True)), hidden, given.appraisal)
        flaw = overfull(claims, given.allocations)
        return Vain(flaw, is_overfull=True) if flaw else placement

    def _given(self, snapshot: Snapshot, number: int, claims: tuple[ResourceClaim, ...]) -> _Given | Vain | str:
        """Give what was given on a node that was in the same state, or search."""
        try:
            policies = self.taste.policies(claims) if self.taste else ()
        except Forbidden as forbidden:
            return str(forbidden)
        asked = self.belief.questions.known(claims, snapshot.classes)
        case = self.taste.case(asked[1], policies, snapshot, number) if self.taste and asked else None
        known, node = self.taste.precedents.of(case) if self.taste and case else None, snapshot.layout.nodes[number]
        if asked is None or known is None:
            return self._found(snapshot, number, claims, policies, case)
        if isinstance(known, Vain):
            return known.on(node)
        given = known.given(snapshot, number)
        return _Given(written(asked[0], node, given, self.share_id, self.release), known.appraisal)

    def _found(
        self,
        snapshot: Snapshot,
        number: int,
        claims: tuple[ResourceClaim, ...],
        policies: Sequence[Policy],
        case: Case | None,
    ) -> _Given | Vain | str:
        """Search on a node, and remember for others in the same *case* what was found."""
        node = snapshot.layout.nodes[number]
        try:
            question = self.belief.questions.question(claims, snapshot.classes)
        except Refusal as refusal:
            return str(refusal)
        preferring = self.taste.preferring(question, policies) if self.taste else None
        manner = preferring.manner(self.manner) if preferring else self.manner
        answer, pauses = finished_with_pauses(choosing(snapshot, number, question, manner))
        self.pauses += pauses
        if isinstance(answer, Failure):
            return answer.message
        if not isinstance(answer, Solution) or (preferring and not preferring.accepts(answer)):
            why = FORBIDDEN if isinstance(answer, Solution) else OPEN if isinstance(answer, Undecided) else SHORT
            if self.taste and case:
                self.taste.precedents.put(case, why)
            return why.on(node)
        given = allocations(answer, self.share_id, self.release)
        if self.taste is None or preferring is None:
            return _Given(given)
        appraisal = preferring.appraise(answer)._replace(basis=self.taste.basis(question, policies))
        self.taste.remember(case, answer, appraisal, snapshot)
        return _Given(given, appraisal)
