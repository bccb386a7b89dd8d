"""What was decided: remembered for those who ask, and told on the pods' events where it is news."""

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Final

from extender.model.change import Changed, Listed
from extender.model.footprint import Footprint
from extender.model.names import DeviceKey, NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.account import continued, landed, note_of, of_advice, of_plan, of_result
from extender.scheduling.advice import Advice
from extender.scheduling.decision import Decided, Decision
from extender.scheduling.endings import Bound, Ending, NotBound, Order, Result
from extender.scheduling.gist import cause_of, gist
from extender.scheduling.needs import Needs, needs_of
from extender.scheduling.planner import Offer, Rejection
from extender.scheduling.record import Decisions
from extender.scheduling.unasked import unasked
from extender.service.afterwards import Afterwards
from extender.service.notices import Notices
from extender.state.belief import Belief
from extender.telemetry import keys
from extender.telemetry.metrics import Metrics
from extender.topology.memo import Memo
from extender.topology.policy import UNREADY
from extender.topology.quality import ONE

LOG: Final = logging.getLogger(__name__)
# What a pod names, a detail may name: as long as the pod says.
MOST_LETTERS: Final = 4096
# An offer is told when it is taken up: until then nothing has happened to the pod.
TOLD = frozenset((Decided.BOUND, Decided.REJECTED, Decided.FAILED, Decided.WAITING))
# After these a pod waits no longer with what it was given.
ENDED = frozenset((Decided.BOUND, Decided.FAILED))
# Pods that wait with their devices, which may be for minutes, and of whom it is remembered why they have these.
MOST_WAITING: Final = 1024
# Pods of whom the log has told why they are not bound: metrics and events tell that it goes on.
MOST_FAILING: Final = 10_000


@dataclass(slots=True)
class Journal:
    """The last decisions. *wall* is the time of the day; *heard* is told of each decision.

    What was answered is remembered *afterwards*: nobody who is to be answered waits for that.
    """

    belief: Belief
    notices: Notices
    metrics: Metrics
    wall: Callable[[], float]
    decisions: Decisions = field(default_factory=Decisions)
    afterwards: Afterwards = field(default_factory=Afterwards)
    heard: Callable[[Decision], None] = lambda _decision: None
    _waiting: Memo[Uid, Decision] = field(default_factory=lambda: Memo(MOST_WAITING))
    _failing: Memo[tuple[Uid, Decided], int] = field(default_factory=lambda: Memo(MOST_FAILING))

    def planned(self, pod: Pod, plan: Offer | Rejection) -> None:
        """Remember what filter answers."""
        self._decided(partial(of_plan, pod, plan))

    def advised(self, pod: Pod, advice: Advice) -> None:
        """Remember what an advisor answers."""
        self._decided(partial(of_advice, pod, advice))

    def _decided(self, account: Callable[[int, float], Decision]) -> None:
        generation = self.belief.cluster.snapshot.generation
        self.afterwards.put(lambda: self.put(account(generation, self.wall())))

    def put(self, decision: Decision) -> None:
        """Remember *decision*, and tell it on the pod if it is news, or was told long ago."""
        if len(decision.detail) > MOST_LETTERS:
            decision = replace(decision, detail=decision.detail[:MOST_LETTERS])
        is_news = self.decisions.put(decision)
        if decision.outcome in ENDED:
            self._waiting.pop(decision.uid, None)
        self.metrics.decision(decision.outcome)
        if decision.outcome is Decided.REJECTED:
            self.metrics.rejection(decision.reason)
        if decision.outcome is Decided.BOUND:
            self._count(decision)
        # That it is bound is the last of a pod; of one that still waits the same is told again now and then.
        if decision.outcome in TOLD and (is_news or decision.outcome is not Decided.BOUND):
            self.notices.put(decision, is_news=is_news)
        if is_news and decision.outcome in TOLD:
            self._log(decision)
        self.heard(decision)

    def _log(self, decision: Decision) -> None:
        """Write a line. A pod that fails is offered a node between two attempts: the same reason is told once.

        How near others were changes with each pod that comes or goes: of a thousand that wait nobody reads that.
        """
        fields = {keys.POD: str(decision.pod), keys.REASON: decision.reason, keys.NODE: decision.node}
        if decision.outcome is not Decided.BOUND:
            cause = cause_of(decision) if decision.outcome is Decided.REJECTED else gist(decision)
            subject, why = (decision.uid, decision.outcome), hash((decision.reason, cause))
            if self._failing.get(subject) == why:
                return
            self._failing[subject] = why
            fields[keys.ERROR] = decision.detail
        LOG.info(decision.outcome.lower(), extra={**fields, keys.GENERATION: decision.generation})

    def _count(self, decision: Decision) -> None:
        """Tell metrics what the devices of a bound pod are worth."""
        for policy in decision.basis.policies:
            self.metrics.placed(policy)
        for item in decision.best:
            if item.node == decision.node:
                # Devices that must be made ready outweigh everything, and would hide it.
                for part in (part for part in item.parts if part.value > -UNREADY):
                    self.metrics.part(part.name, part.value / ONE)

    def ended(self, order: Order, result: Result) -> None:
        """Remember how a bind ended. What the devices of a pod are, that waits with them, is told until it is bound."""
        self.afterwards.put(partial(self._ended, order, result))

    def _ended(self, order: Order, result: Result) -> None:
        first, before = self._waiting.get(order.uid), self.decisions.get(order.pod)
        if before and (before.uid, before.node, before.outcome) == (order.uid, order.node, Decided.BOUND):
            return
        if isinstance(result, Bound) and result.placement is None and (first is None or first.reason == Ending.UNKNOWN):
            self._landed(order.uid, order.node)
            return
        pod = result.pod if isinstance(result, Bound) else self.belief.pods.with_uid(order.uid)
        if pod is None and isinstance(result, NotBound) and result.is_open:
            # It waits no longer: it may have been shown to be bound.
            pod = Pod(key=order.pod, uid=order.uid)
        if pod is None:
            return
        decision = of_result(pod, result, order.node, before, self.wall())
        self._put_ended(decision if first is None else continued(decision, first, self._had_by(pod)))
        if first is not None and isinstance(result, NotBound) and result.is_unbegun:
            # It waits as it did.
            self._waiting[order.uid] = first

    def _put_ended(self, decision: Decision) -> None:
        if decision.outcome is Decided.WAITING and (decision.given or decision.reason == Ending.UNKNOWN):
            self._waiting[decision.uid] = decision
        if decision.reason == Ending.UNKNOWN and self.belief.loads.node_of(decision.pod, decision.uid) == decision.node:
            decision = landed(decision, decision.at)
        self.put(decision)

    def shown(self, told: object) -> None:
        """Remember that a pod is bound of which nobody knew it, where *told* shows that."""
        if not self._waiting:
            return
        items = told.items if isinstance(told, Listed) and told.kind is Footprint else ()
        for item in (told.what,) if isinstance(told, Changed) else items:
            if isinstance(item, Footprint):
                self._landed(item.uid, item.node)

    def _landed(self, pod: Uid, node: NodeName) -> None:
        first = self._waiting.get(pod)
        if first is not None and (first.reason, first.node) == (Ending.UNKNOWN, node):
            self.put(landed(first, self.wall()))

    def _had_by(self, pod: Pod) -> frozenset[DeviceKey]:
        """Return the devices of the claims of *pod*."""
        needs = needs_of(pod, self.belief)
        given = [claim.allocation for claim in needs.allocated] if isinstance(needs, Needs) else []
        return frozenset(item.device for allocation in given if allocation for item in allocation.devices)

    def unasked(self, pod: ObjectKey) -> str:
        """Say what else is known of a pod of which nothing is remembered."""
        return unasked(pod, self.belief)

    def of(self, pod: ObjectKey) -> object | None:
        """Return what was decided last about *pod*, as JSON values."""
        self.afterwards.flush()
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
