"""Pods woken at the API server: nominated for a node where it is known which, otherwise annotated.

Preemption nominates, too, and evicts others for it: kube-scheduler keeps a node for a pod only as long as it is
nominated for that one. A pod that is annotated is tried there first, and elsewhere in the same attempt.
"""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from extender.kube.outcome import RequestOutcome, Succeeded, is_answered
from extender.kube.writes import Writes
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.model.parse import nominators, parse_pod
from extender.scheduling.choosing import Chooser
from extender.scheduling.steps import Refusal, is_refused
from extender.scheduling.survey import Unfinished
from extender.scheduling.veto import helped
from extender.service.remaking import WOKEN
from extender.state.belief import Belief
from extender.telemetry.metrics import Metrics

# So it is answered where we may not nominate: where the right is missing, or a policy of admission keeps it from us.
UNALLOWED: Final = (Refusal.FORBIDDEN, Refusal.INVALID, Refusal.REJECTED)


@dataclass(slots=True)
class Wakes:
    """Wakes one pod after another, with a pause of *pause_s*. *now* is a clock that only goes forward.

    *wall* is the time of day. victims: who was let go for a pod on a node; None where that is not known.
    """

    belief: Belief
    chooser: Chooser
    writes: Writes
    metrics: Metrics
    now: Callable[[], float]
    wall: Callable[[], float]
    pause_s: float
    nominates: bool
    victims: Callable[[Uid, NodeName], Collection[Uid] | None] = lambda _pod, _node: None

    async def wake(self, pod: Pod, node: NodeName | None = None) -> bool:
        """Have the scheduler try *pod* again; tell whether there was an answer to that."""
        outcome = await self._nominated(pod, node) if node and self.nominates and pod.nominated_node != node else None
        way = "nomination"
        if outcome is None or is_refused(outcome, *UNALLOWED):
            way = "annotation"
            outcome = await self.writes.annotate_pod(pod, WOKEN, f"{self.now():.3f}")
        self.metrics.wake(way, "done" if isinstance(outcome, Succeeded) else "failed")
        await asyncio.sleep(self.pause_s)
        return is_answered(outcome)

    async def _nominated(self, pod: Pod, node: NodeName) -> RequestOutcome | None:
        """Nominate *pod*, as it was shown, or as it is read where it has changed or is nominated.

        None: it is not, because it is nominated already, or goes on changing.
        """
        if not pod.nominated_node:
            outcome = await self.writes.nominate(self.belief.pods.current(pod), node)
            if not is_refused(outcome, Refusal.CONFLICT):
                return outcome
        read = await self.writes.read_pod(pod.key)
        if not isinstance(read, Succeeded):
            return read
        fresh = parse_pod(read.object)
        if not isinstance(fresh, Pod) or fresh.uid != pod.uid or fresh.node_name or fresh.nominated_node == node:
            return None
        if fresh.nominated_node and self._is_kept(fresh, fresh.nominated_node, nominators(read.object)):
            return None
        outcome = await self.writes.nominate(fresh, node)
        return None if is_refused(outcome, Refusal.CONFLICT) else outcome

    def _is_kept(self, pod: Pod, node: NodeName, managers: Collection[str]) -> bool:
        """Tell whether others go for *pod* on *node* where it has its devices then, or another than we sent it there.

        Who goes is not known after a restart: then the scheduler ends the nomination once nobody does.
        """
        victims = self.victims(pod.uid, node)
        if victims is None:
            return self.belief.ownership.domain.writer not in managers
        try:
            return bool(helped(pod, {node: victims}, self.chooser, self.wall()))
        except Unfinished:
            return True
