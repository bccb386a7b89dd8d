"""What the scheduler is told about a pod: where it may go, and which devices are kept for it meanwhile."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from extender.allocation.snapshot import Snapshot
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.decision import Ranked
from extender.scheduling.needs import Needs, Refused, needs_of
from extender.scheduling.placement import Chooser, Placement
from extender.scheduling.ranking import Policy, Ranking, offered, rank
from extender.scheduling.survey import Numbers, Survey, Tally, survey
from extender.scheduling.vocabulary import Word
from extender.state.belief import Belief
from extender.state.ledger import Event

# Nodes on which devices are chosen before the offer is given up: counting and choosing agree, so the first will do.
TRIES = 3
# Pods whose unhappy attempts are remembered.
REMEMBERED = 10_000


@dataclass(frozen=True, slots=True)
class Plain:
    """The pod needs no devices: every node will do."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Nothing can be said now; the pod is to be tried again soon."""

    message: str


@dataclass(frozen=True, slots=True)
class Rejection:
    """No node that was offered to us will do. *elsewhere* is one that would."""

    word: Word
    detail: str = ""
    elsewhere: NodeName | None = None
    rejected: tuple[Tally, ...] = ()


@dataclass(frozen=True, slots=True)
class Offer:
    """Nodes for the pod, the best first, and the devices on the best one."""

    needs: Needs
    nodes: tuple[NodeName, ...]
    scores: Mapping[NodeName, int]
    placement: Placement
    best: tuple[Ranked, ...]
    fitting: int
    surveyed: Survey

    @property
    def rejected(self) -> tuple[Tally, ...]:
        return tuple(self.surveyed.tallies())


Plan = Plain | Trouble | Rejection | Offer


@dataclass(frozen=True, slots=True)
class Moment:
    """When a plan is made, and whether the scheduler hears of it."""

    now: float
    is_answer: bool


@dataclass(slots=True)
class Planner:
    """Plans pods. One writer: an offer is promised before anybody else is planned."""

    belief: Belief
    chooser: Chooser
    policy: Policy = field(default_factory=Policy)
    _came_back: OrderedDict[Uid, set[NodeName]] = field(default_factory=OrderedDict)
    _numbers: tuple[Sequence[NodeName], dict[NodeName, int]] = ((), {})

    def plan(self, pod: Pod, names: Sequence[NodeName] | None, now: float, *, is_answer: bool = True) -> Plan:
        """Say where *pod* may go among *names*, or anywhere, and promise it the best of that.

        Where the scheduler asks again (*is_answer*) for a pod that was promised a node, the pod came back from there.
        """
        needs = needs_of(pod, self.belief)
        if isinstance(needs, Refused):
            return Rejection(needs.word, needs.detail)
        if needs.is_plain:
            return Plain()
        promise = self.belief.ledger.of_pod(pod.uid)
        if promise is not None and promise.is_binding:
            return Trouble(f"claims of the pod are being written for node {promise.node}")
        if promise is not None and promise.is_answer and is_answer:
            self._remember(pod.uid, promise.node)
        plan = self._planned(needs, names, Moment(now, is_answer))
        if not isinstance(plan, Offer):
            self.belief.ledger.tell(pod.uid, Event.EXPIRED)
        return plan

    def forget(self, pod: Uid) -> None:
        """Forget from where *pod* came back."""
        self._came_back.pop(pod, None)

    def _planned(self, needs: Needs, names: Sequence[NodeName] | None, moment: Moment) -> Plan:
        snapshot = self.belief.seen_by(needs.pod.uid)
        surveyed = survey(needs, snapshot, self.belief.questions)
        if isinstance(surveyed, Refused):
            return Rejection(surveyed.word, surveyed.detail)
        failure = surveyed.failure()
        if failure is not None:
            return Rejection(Word.NODE_ERROR, failure)
        nodes = np.flatnonzero(surveyed.fits)
        among = self._among(nodes, names, snapshot) if len(nodes) else nodes
        if not len(among):
            return self._nowhere(surveyed, nodes)
        return self._offered(needs, surveyed, among, moment)

    def _among(self, nodes: Numbers, names: Sequence[NodeName] | None, snapshot: Snapshot) -> Numbers:
        """Leave the nodes that were asked about."""
        if names is None:
            return nodes
        everything = snapshot.layout.nodes
        if self._numbers[0] is not everything:
            self._numbers = everything, {name: number for number, name in enumerate(everything)}
        known = self._numbers[1]
        asked = np.zeros(len(everything) + 1, np.bool_)
        asked[[known.get(name, len(everything)) for name in names]] = True
        return nodes[asked[nodes]]

    def _nowhere(self, surveyed: Survey, fitting: Numbers) -> Plan:
        if surveyed.is_open:
            return Trouble("the search for devices was given up before it was known whether they suffice")
        rejected = tuple(surveyed.tallies())
        if len(fitting):
            elsewhere = surveyed.snapshot.layout.nodes[int(fitting[0])]
            return Rejection(Word.NOT_OFFERED, f"devices are free on {elsewhere}", elsewhere, rejected)
        word = surveyed.shortage()
        detail = next((tally.message for tally in rejected if tally.word is word), "")
        return Rejection(word, detail, None, rejected)

    def _offered(self, needs: Needs, surveyed: Survey, nodes: Numbers, moment: Moment) -> Plan:
        names = surveyed.snapshot.layout.nodes
        shunned = self._shunned(needs.pod.uid, surveyed.snapshot)
        ranking = offered(rank(surveyed.snapshot, nodes, shunned), self.policy, shunned)
        for number in ranking.nodes[:TRIES].tolist():
            placement = self.chooser.place(needs, names[number])
            if isinstance(placement, Placement):
                promise = placement.promise(needs, moment.now, is_answer=moment.is_answer)
                if not self.belief.ledger.offer(promise):
                    return Trouble("the claims are being allocated for another pod")
                return _offer(needs, surveyed, ranking, placement, len(nodes))
        return Trouble("the devices that were counted on could not be chosen")

    def _shunned(self, pod: Uid, snapshot: Snapshot) -> set[int]:
        came_back = self._came_back.get(pod, set())
        return (
            {number for number, name in enumerate(snapshot.layout.nodes) if name in came_back} if came_back else set()
        )

    def _remember(self, pod: Uid, node: NodeName) -> None:
        self._came_back.setdefault(pod, set()).add(node)
        self._came_back.move_to_end(pod)
        if len(self._came_back) > REMEMBERED:
            self._came_back.popitem(last=False)


def _offer(needs: Needs, surveyed: Survey, ranking: Ranking, placement: Placement, fitting: int) -> Offer:
    names = surveyed.snapshot.layout.nodes
    nodes = tuple(names[number] for number in ranking.nodes.tolist())
    scores = dict(zip(nodes, ranking.scores.tolist(), strict=True))
    best = tuple(
        Ranked(names[number], score, free)
        for number, score, free in zip(
            ranking.nodes[:2].tolist(), ranking.scores[:2].tolist(), ranking.free[:2].tolist(), strict=True
        )
    )
    return Offer(needs, nodes, scores, placement, best, fitting, surveyed)
