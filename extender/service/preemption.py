"""Who may be evicted for a pod: those without whom it has its devices, and nobody as long as it has but to wait."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from extender.model.names import NodeName
from extender.model.node import Pod
from extender.scheduling.choosing import Chooser
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.veto import helped
from extender.service.attention import Attention
from extender.service.evictions import SOON_S, Evictions
from extender.state.belief import Belief
from extender.web.verbs import PreemptRequest


@dataclass(slots=True)
class Preemption:
    """Lets others be evicted, and remembers for whom."""

    belief: Belief
    chooser: Chooser
    attention: Attention
    evictions: Evictions

    def emptied(self, request: PreemptRequest) -> Sequence[NodeName]:
        """Name the nodes on which others may be evicted for the pod. Raise Unfinished."""
        pod, is_elsewhere = request.pod, self.belief.loads.is_elsewhere
        # Those of a group go together, wherever they are. kube-scheduler ends the attempt where we name somebody with a
        # node that he is not on, and does without the nodes that we leave out.
        victims = {
            NodeName(name): items.pods
            for name, items in request.victims.items()
            if not any(is_elsewhere(uid, NodeName(name)) for uid in items.pods)
        }
        until = self._awaited(pod, request.victims)
        if until is not None:
            # Once the devices are free the pod is woken; if they are not in time, others have to go after all.
            self.attention.postponed(pod, until)
            return ()
        nodes = helped(pod, victims, self.belief, self.chooser)
        needs = needs_of(pod, self.belief)
        if nodes and isinstance(needs, Needs) and not needs.is_plain:
            self.evictions.put(pod.uid, {node: victims[node] for node in nodes})
        return nodes

    def _awaited(self, pod: Pod, candidates: Collection[str]) -> float | None:
        """Say when *pod* is to be tried again if it waits for devices of who was evicted alone. Raise Unfinished."""
        done = self.evictions.done(pod, candidates)
        if not done:
            return None
        free = helped(pod, dict.fromkeys(done, ()), self.belief, self.chooser)
        # Where they were free before it was asked about something else is missing.
        if not (self.evictions.was_refused(pod.uid, free) if free else helped(pod, done, self.belief, self.chooser)):
            return None
        until = self.evictions.waits(pod.uid)
        return until if until is None or not free else min(until, self.evictions.now() + SOON_S)
