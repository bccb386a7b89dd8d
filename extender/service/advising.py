"""The answers of an advisor: kube-scheduler's own plugin allocates and binds; nodes are filtered and scored for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from extender.model.node import Pod
from extender.scheduling.advice import Advisor
from extender.scheduling.endings import Order
from extender.scheduling.planner import Plain
from extender.service.journal import Journal
from extender.service.scores import Remembered
from extender.web.verbs import Filtered, Scores, Victims

NOT_BINDING: Final = (
    "ownership.mode is advisor: kube-scheduler's own plugins allocate and bind; remove bindVerb from the extender in "
    "the configuration of kube-scheduler, or set ownership.mode to owner"
)


@dataclass(slots=True)
class Advising:
    """Answers. *missing* says what we do not know yet: meanwhile all nodes pass, for we are not needed."""

    advisor: Advisor
    journal: Journal
    missing: Callable[[], Sequence[str]]
    _scores: Remembered = field(init=False)

    def __post_init__(self) -> None:
        self._scores = Remembered(self.advisor.roll, self.journal.afterwards)

    async def hear(self, pod: Pod) -> None:
        """Wait for nothing: nodes pass meanwhile."""

    def filter(self, pod: Pod, names: Sequence[str]) -> Filtered:
        """Leave out the nodes that are not good for the pod."""
        plan = Plain() if self.missing() else self.advisor.advise(pod, names)
        if isinstance(plan, Plain):
            self._scores.put(pod.uid, {})
            return Filtered(names=names)
        self._scores.put(pod.uid, plan.scores)
        if plan.placement is not None:
            self.journal.advised(pod, plan)
        everything = self.advisor.belief.cluster.snapshot.layout.nodes
        return Filtered(names=self._scores.kept(pod.uid, names, plan.passes, everything))

    def prioritize(self, pod: Pod, names: Sequence[str]) -> Scores:
        """Score the nodes by what kube-scheduler would give the pod there."""
        return self._scores.of(pod.uid, names)

    def preempt(self, _pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims]:
        """Leave preemption to kube-scheduler."""
        return victims

    async def bind(self, _order: Order) -> str:
        """Bind nothing, and say why."""
        return NOT_BINDING
