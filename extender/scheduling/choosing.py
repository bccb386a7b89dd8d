"""The devices for a pod on one node."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field

from extender.allocation.choose import choose
from extender.allocation.extended import Hidden, through_devices
from extender.allocation.question import Refusal
from extender.allocation.result import Release, allocations
from extender.allocation.snapshot import Snapshot
from extender.allocation.solve import BEST, Failure, Manner, Solution
from extender.model.claim import ResourceClaim
from extender.model.names import NodeName, Uid
from extender.model.node_selector import matches
from extender.scheduling.needs import Needs
from extender.scheduling.placement import Placement
from extender.scheduling.recall import Recall
from extender.scheduling.survey import claims_for
from extender.scheduling.taste import Forbidden, Taste
from extender.state.belief import Belief


@dataclass(slots=True)
class Chooser:
    """Chooses devices. share_id: gives a new identifier for each share of a device.

    *taste* may be replaced at any time; without one there is what *manner* prefers.
    """

    belief: Belief
    share_id: Callable[[], str]
    manner: Manner = BEST
    release: Release = Release.V1_37
    taste: Taste | None = None
    _recall: Recall = field(default_factory=Recall)

    def place(self, needs: Needs, node: NodeName, snapshot: Snapshot | None = None) -> Placement | str:
        """Find devices on *node*, as things are now or as *snapshot* has them; a text where there are none."""
        if snapshot is not None:
            return self._searched(needs, node, snapshot)
        seen = self.belief.seen_by(needs.pod.uid)
        placement = self._searched(needs, node, seen)
        if isinstance(placement, Placement):
            self._recall.put(needs, placement, seen, self.taste)
        return placement

    def again(self, needs: Needs, node: NodeName) -> Placement | str:
        """Return what the pod was offered on *node*, or find devices there if that cannot be had any more."""
        return self.kept(needs, node) or self.place(needs, node)

    def kept(self, needs: Needs, node: NodeName) -> Placement | None:
        """Return what was found for the pod on *node* last, if it can still be had."""
        return self._recall.get(needs, node, self.belief.seen_by(needs.pod.uid), self.taste)

    def forget(self, pod: Uid) -> None:
        """Forget what was found for a pod that waits no longer."""
        self._recall.drop(pod)
        if self.taste is not None:
            self.taste.forget(pod)

    def _searched(self, needs: Needs, node: NodeName, snapshot: Snapshot) -> Placement | str:
        known = snapshot.nodes.get(node)
        if known is None:
            return f"node {node} is not known"
        labels = dict(known.labels)
        for claim in needs.allocated:
            selector = claim.allocation.node_selector if claim.allocation else None
            if selector is not None and not matches(selector, node, labels):
                return f"claim {claim.key.name} is allocated on another node"
        resources = through_devices(needs.extended, known)
        claims = claims_for(needs, resources)
        if not claims:
            return Placement(node)
        return self._given(snapshot, node, claims, needs.hidden(resources) if resources else None)

    def _given(
        self, snapshot: Snapshot, node: NodeName, claims: tuple[ResourceClaim, ...], hidden: Hidden | None
    ) -> Placement | str:
        try:
            question = self.belief.questions.question(claims, snapshot.classes)
        except Refusal as refusal:
            return str(refusal)
        try:
            policies = self.taste.policies(claims) if self.taste else ()
        except Forbidden as forbidden:
            return str(forbidden)
        preferring = self.taste.preferring(question, policies) if self.taste else None
        manner = preferring.manner(self.manner) if preferring else self.manner
        answer = choose(snapshot, bisect_left(snapshot.layout.nodes, node), question, manner)
        if isinstance(answer, Solution) and preferring and not preferring.accepts(answer):
            return f"the devices of node {node} are forbidden by the claim's policy"
        if isinstance(answer, Solution):
            given = allocations(answer, self.share_id, self.release)
            appraisal = None
            if self.taste and preferring:
                appraisal = preferring.appraise(answer)._replace(basis=self.taste.basis(question, policies))
            return Placement(node, tuple(zip(claims, given, strict=True)), hidden, appraisal)
        if isinstance(answer, Failure):
            return answer.message
        return f"the devices of node {node} do not suffice any more"
