"""Pods sent to a node before the scheduler asks about them: it then looks at that node alone, of however many."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice

from extender.kube.outcome import Done
from extender.kube.writes import Writes
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.needs import Refused, needs_of
from extender.scheduling.planner import Offer, Planner
from extender.scheduling.vocabulary import Word
from extender.state.belief import Belief
from extender.telemetry.metrics import Metrics

# Pods planned between two looks at what else there is to do, and written for at once.
BATCH = 16
# Pods of which it is remembered that they had their turn.
REMEMBERED = 10_000


@dataclass(slots=True)
class Ahead:
    """Nominates nodes for pods as they appear, as soon as their claims are there."""

    belief: Belief
    planner: Planner
    writes: Writes
    metrics: Metrics
    now: Callable[[], float]
    leads: Callable[[], bool] = lambda: True
    _fresh: dict[Uid, None] = field(default_factory=dict)
    _sent: OrderedDict[Uid, None] = field(default_factory=OrderedDict)
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)

    def shown(self, pod: Pod) -> None:
        """Remember a pod that is new or has changed: its claims may be there now."""
        if not self.leads():
            return
        if pod.uid not in self._sent and pod.claims and not pod.nominated_node and _are_made(pod):
            self._fresh[pod.uid] = None

    def stir(self) -> None:
        """Have the pods looked at: something has changed."""
        self._stirred.set()

    async def run(self) -> None:
        """Plan for ever."""
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            while ready := list(islice(filter(None, map(self._ready, tuple(self._fresh))), BATCH)):
                wanted = [(pod, node) for pod in ready if (node := self._planned(pod))]
                await asyncio.gather(*(self._nominate(pod, node) for pod, node in wanted))

    def _ready(self, uid: Uid) -> Pod | None:
        """Return a pod whose turn it is: when the watch has shown its claims too."""
        pod = self.belief.pods.with_uid(uid)
        if pod is None:
            del self._fresh[uid]
            return None
        needs = needs_of(pod, self.belief)
        is_early = isinstance(needs, Refused) and needs.word is Word.CLAIM_WAITING
        return None if is_early else pod

    def _planned(self, pod: Pod) -> NodeName | None:
        """Plan *pod*, which has this one turn: afterwards the scheduler asks about it."""
        del self._fresh[pod.uid]
        self._sent[pod.uid] = None
        if len(self._sent) > REMEMBERED:
            self._sent.popitem(last=False)
        if self.belief.ledger.of_pod(pod.uid) is not None:
            return None
        plan = self.planner.plan(pod, None, self.now(), is_answer=False)
        return plan.placement.node if isinstance(plan, Offer) else None

    async def _nominate(self, pod: Pod, node: NodeName) -> None:
        outcome = await self.writes.nominate(pod, node)
        self.metrics.wake("ahead", "done" if isinstance(outcome, Done) else "failed")


def _are_made(pod: Pod) -> bool:
    """Tell whether the claims that *pod* has from templates have been made."""
    made = {status.name for status in pod.claim_statuses}
    return all(entry.name in made for entry in pod.claims if entry.template_name)
