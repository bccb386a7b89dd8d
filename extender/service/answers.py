"""The answers to the scheduler's verbs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.choosing import Chooser
from extender.scheduling.endings import Order
from extender.scheduling.planner import Offer, Plain, Planner, Rejection, Trouble
from extender.scheduling.scored import Scored
from extender.scheduling.survey import Unfinished
from extender.scheduling.vocabulary import TEXTS
from extender.service.afterwards import Afterwards
from extender.service.attention import Attention
from extender.service.binds import Binds
from extender.service.catching_up import CatchingUp
from extender.service.evictions import Evictions
from extender.service.journal import Journal
from extender.service.offered import OfferedNodes
from extender.service.preemption import Preemption
from extender.service.scores import Remembered
from extender.state.belief import Belief
from extender.web.verbs import Failed, Filtered, Scores, Victims


@dataclass(slots=True)
class Answers:
    """Answers from belief. *missing* says what keeps us from answering at all, if anything does; *leading* who does."""

    belief: Belief
    planner: Planner
    chooser: Chooser
    binds: Binds
    journal: Journal
    attention: Attention
    offered: OfferedNodes
    catching_up: CatchingUp
    missing: Callable[[], Sequence[str]]
    now: Callable[[], float]
    leading: Callable[[], str] = lambda: ""
    # Told of each pod that the scheduler asks about, with the names of the nodes.
    asked: Callable[[Pod, Sequence[str]], None] = lambda _pod, _names: None
    # Told of each that is offered a node, and of that.
    answered: Callable[[Pod, NodeName], None] = lambda _pod, _node: None
    # Told of each pod that others may be evicted for.
    evicting: Callable[[Uid], None] = lambda _pod: None
    afterwards: Afterwards = field(default_factory=Afterwards)
    evictions: Evictions = field(init=False)
    preemption: Preemption = field(init=False)
    _scores: Remembered = field(init=False)

    def __post_init__(self) -> None:
        self._scores = Remembered(self.planner.roll, self.afterwards)
        self.evictions = Evictions(self.now)
        self.preemption = Preemption(self.belief, self.chooser, self.attention, self.evictions)
        self.belief.parting.append(self.evictions.forget)
        self.planner.before = self.preemption.keep

    async def hear(self, pod: Pod) -> None:
        """Wait a moment for claims of *pod* that are not known yet, and for our writes, where it is answered at all."""
        if not self.hindrance():
            await self.catching_up.hear(pod)
            await self.catching_up.keep_pace(pod)

    def filter(self, pod: Pod, names: Sequence[str]) -> Filtered:
        """Say which nodes can take the pod, and keep its devices on the best of them."""
        self.preemption.begin()
        filtered = self._filtered(pod, names)
        self.offered.put(pod.uid, filtered.names)
        self.evictions.refused(pod.uid, () if filtered.names else names)
        return filtered

    def _filtered(self, pod: Pod, names: Sequence[str]) -> Filtered:
        hindrance = self.hindrance()
        if hindrance:
            return Filtered(error=hindrance)
        node = self.belief.loads.node_of(pod.key, pod.uid)
        if node is not None:
            # It was asked about late, as it was before: what it has would be taken for what an attempt has left.
            return Filtered(names=(node,)) if node in names else Filtered(text=f"the pod is on node {node} already")
        self.asked(pod, names)
        for gone in self.evictions.over(pod, names, self.belief.ledger.of_pod):
            self.planner.withdraw(gone)
        plan = self.planner.plan(pod, names, self.now())
        if isinstance(plan, Plain):
            self._scores.put(pod.uid, plan.scores)
            return Filtered(names=names)
        if isinstance(plan, Trouble):
            return Filtered(error=plan.message, goes_on=plan.goes_on)
        self.journal.planned(pod, plan)
        if isinstance(plan, Rejection):
            self.attention.rejected(pod, plan)
            self.preemption.refused(pod.uid, plan.elsewhere)
            return Filtered(text=TEXTS[plan.word])
        self.attention.offered(pod)
        self.answered(pod, plan.placement.node)
        return self._offered(pod, names, plan)

    def _offered(self, pod: Pod, names: Sequence[str], plan: Offer) -> Filtered:
        scores = plan.scores
        self._scores.put(pod.uid, scores)
        # Of the others nothing is said: kube-scheduler asks why only where no node is left.
        if not isinstance(scores, Scored):
            return Filtered(names=plan.nodes)
        numbers = self.planner.roll.numbers(names, scores.everything)
        return Filtered(names=self._scores.kept(pod.uid, names, scores.offered[numbers], scores.everything))

    def prioritize(self, pod: Pod, names: Sequence[str]) -> Scores:
        """Score the nodes as filter ranked them."""
        return self._scores.of(pod.uid, names)

    def preempt(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims] | Failed:
        """Leave the nodes on which the pod would have its devices."""
        hindrance = self.hindrance()
        if hindrance:
            return Failed(hindrance)
        if self.belief.loads.has(pod.key, pod.uid):
            return {}  # it was asked about late, as it was before: it has its room and its devices
        # It was refused wherever it was nominated, and what it is nominated for next is the scheduler's own.
        self.asked(pod, ())
        try:
            nodes = self.preemption.emptied(pod, victims)
        except Unfinished:
            return Failed("the devices that the pod's claims ask for are still being looked for")
        if nodes:
            self.evicting(pod.uid)
        return {name: victims[name] for name in nodes}

    async def bind(self, order: Order) -> str:
        """Bind the pod; return what went wrong, nothing where it is bound."""
        hindrance = self.hindrance()
        if not hindrance and not self.binds.is_under_way(order.uid) and await self.catching_up.meet(order):
            # Meanwhile another may have begun to lead.
            hindrance = self.hindrance()
        if hindrance and not self.binds.is_under_way(order.uid):
            self.planner.trips.unbegun(order.uid)
        return hindrance or await self.binds.bind(order)

    def hindrance(self) -> str:
        """Say why nobody is answered. Who asks is to come back later: a rejection would not wake the pod again."""
        missing = self.missing()
        # Who does not know the cluster does not lead, which tells nobody what to look for.
        return "; ".join(filter(None, (self.leading(), f"not ready: {'; '.join(missing)}" if missing else "")))
