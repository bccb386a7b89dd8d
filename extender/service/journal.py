"""What was decided: remembered for those who ask, and told on the pods' events where it is news."""

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from extender.model.change import Changed, Listed
from extender.model.footprint import Footprint
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.account import note_of, of_result
from extender.scheduling.binding import Bound, NotBound, Order, Result
from extender.scheduling.decision import Decision, Outcome
from extender.scheduling.record import Decisions
from extender.service.notices import Notices
from extender.state.belief import Belief
from extender.telemetry import keys
from extender.telemetry.metrics import Metrics
from extender.topology.quality import ONE

LOG: Final = logging.getLogger(__name__)
# What a pod names, a detail may name: as long as the pod says.
MOST_LETTERS: Final = 4096
# An offer is told when it is taken up: until then nothing has happened to the pod.
TOLD = frozenset((Outcome.BOUND, Outcome.REJECTED, Outcome.FAILED, Outcome.WAITING))
# After these nobody need find out whether the pod is bound.
ENDED = frozenset((Outcome.BOUND, Outcome.FAILED))
# Pods of which nobody knows whether they are bound: of older ones nobody will.
MOST_OPEN: Final = 1000


@dataclass(slots=True)
class Journal:
    """The last decisions. *wall* is the time of the day; *heard* is told of each decision."""

    belief: Belief
    notices: Notices
    metrics: Metrics
    wall: Callable[[], float]
    decisions: Decisions = field(default_factory=Decisions)
    heard: Callable[[Decision], None] = lambda _decision: None
    _open: OrderedDict[Uid, Decision] = field(default_factory=OrderedDict)

    def put(self, decision: Decision) -> None:
        """Remember *decision*, and tell it on the pod if it is news, or was told long ago."""
        if len(decision.detail) > MOST_LETTERS:
            decision = replace(decision, detail=decision.detail[:MOST_LETTERS])
        is_news = self.decisions.put(decision)
        if decision.outcome in ENDED:
            self._open.pop(decision.uid, None)
        self.metrics.decision(decision.outcome)
        if decision.outcome is Outcome.REJECTED:
            self.metrics.rejection(decision.reason)
        if decision.outcome is Outcome.BOUND:
            self._count(decision)
        # That it is bound is the last of a pod; of one that still waits the same is told again now and then.
        if decision.outcome in TOLD and (is_news or decision.outcome is not Outcome.BOUND):
            self.notices.put(decision, is_news=is_news)
        if is_news and decision.outcome in TOLD:
            fields = {keys.POD: str(decision.pod), keys.REASON: decision.reason, keys.NODE: decision.node}
            LOG.info(decision.outcome.lower(), extra={**fields, keys.GENERATION: decision.generation})
        self.heard(decision)

    def _count(self, decision: Decision) -> None:
        """Tell metrics what the devices of a bound pod are worth."""
        for policy in decision.basis.policies:
            self.metrics.placed(policy)
        for item in decision.best:
            if item.node == decision.node:
                for part in item.parts:
                    self.metrics.part(part.name, part.value / ONE)

    def ended(self, order: Order, result: Result) -> None:
        """Remember how a bind ended."""
        if isinstance(result, Bound) and result.placement is None:
            self._landed(order.uid, order.node)
            return
        pod = result.pod if isinstance(result, Bound) else self.belief.pods.with_uid(order.uid)
        before, now = self.decisions.get(order.pod), self.wall()
        if pod is not None:
            self.put(of_result(pod, result, order.node, before, now))
        if isinstance(result, NotBound) and result.is_open and result.placement is not None:
            meant = Pod(key=order.pod, uid=order.uid)
            self._leave_open(of_result(meant, Bound(meant, result.placement), order.node, before, now))

    def shown(self, told: object) -> None:
        """Remember that a pod is bound of which nobody knew it, where *told* shows that."""
        if not self._open:
            return
        items = told.items if isinstance(told, Listed) and told.kind is Footprint else ()
        for item in (told.what,) if isinstance(told, Changed) else items:
            if isinstance(item, Footprint):
                self._landed(item.uid, item.node)

    def _leave_open(self, bound: Decision) -> None:
        """Keep what is to be remembered if the pod turns out to be *bound*, as the watch may have shown already."""
        self._open[bound.uid] = bound
        if len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)
        node = self.belief.loads.node_of(bound.pod, bound.uid)
        if node is not None:
            self._landed(bound.uid, node)

    def _landed(self, pod: Uid, node: NodeName) -> None:
        bound = self._open.pop(pod, None)
        if bound is not None and bound.node == node:
            self.put(replace(bound, at=self.wall()))

    def of(self, pod: ObjectKey) -> object | None:
        """Return what was decided last about *pod*, as JSON values."""
        decision = self.decisions.get(pod)
        if decision is None:
            return None
        # Named tuples are no JSON values: what has fields is told with them, and what is a name in parts as a list.
        given = [{**asdict(item), "device": list(item.device)} for item in decision.given]
        rejected = [tally._asdict() for tally in decision.rejected]
        best = [
            {**asdict(item), "parts": [part._asdict() for part in item.parts], "words": item.words}
            for item in decision.best
        ]
        told = {"pod": str(pod), "note": note_of(decision), "given": given, "best": best, "rejected": rejected}
        told["basis"] = str(decision.basis)
        return {**asdict(decision), **told}
