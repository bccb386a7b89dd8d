"""Who may be evicted for a pod: those without whom it has its devices, and nobody as long as it has but to wait."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.choosing import Chooser
from extender.scheduling.conditions import is_waited_for
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.veto import helped
from extender.service.attention import Attention
from extender.service.evictions import SOON_S, Evictions
from extender.state.belief import Belief
from extender.web.verbs import PreemptRequest

# How long after filter kube-scheduler asks about preemption in the same attempt, at most. Rather too short: who is
# believed to be asked about in another attempt than in fact has others evicted, as if he had never been refused.
ATTEMPT_S: Final = 2.0


class Refused(NamedTuple):
    """Which pod filter was asked about last, where it was refused, and when."""

    pod: Uid
    at: float


@dataclass(slots=True)
class Preemption:
    """Lets others be evicted, and remembers for whom."""

    belief: Belief
    chooser: Chooser
    attention: Attention
    evictions: Evictions
    _refused: Refused | None = None

    def begin(self) -> None:
        """Remember that filter is asked, about whichever pod."""
        self._refused = None

    def refused(self, pod: Uid) -> None:
        """Remember that filter has refused *pod* everywhere just now."""
        self._refused = Refused(pod, self.evictions.now())

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
        if nodes and self._is_refused(pod) and isinstance(needs, Needs) and self._is_made_ready(needs):
            self.attention.awaits(pod.uid, nodes[0])
            return ()
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

    def _is_refused(self, pod: Pod) -> bool:
        """Tell whether filter has refused *pod* in this attempt.

        Then it is tried again whenever we touch it, so that it may be left to wait. Who was refused by other plugins
        alone is tried again for what these wait for, and for nothing that we write.
        """
        refused = self._refused
        return refused is not None and refused.pod == pod.uid and self.evictions.now() - refused.at <= ATTEMPT_S

    def _is_made_ready(self, needs: Needs) -> bool:
        """Tell whether devices of the pod are made ready still: it would not be bound, and lose the room again."""
        return is_waited_for(needs.allocated, self.attention.wall(), self.belief.ready_within_s)
