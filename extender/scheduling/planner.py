"""What the scheduler is told about a pod: where it may go, and which devices are kept for it meanwhile."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from extender.allocation.grid import Flags
from extender.allocation.snapshot import Snapshot
from extender.model.names import NodeName, Uid
from extender.model.node import Node, Pod
from extender.scheduling.asked import Asked, first_of
from extender.scheduling.choosing import Chooser
from extender.scheduling.comparison import compared
from extender.scheduling.counted import Counted, counts_of, scored
from extender.scheduling.hopeless import Hopeless
from extender.scheduling.needs import Needs, Unplaceable, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.plans import GIVEN_UP, Moment, Offer, Plain, Plan, Rejection, Trouble, nowhere, unwanted
from extender.scheduling.possible import Possible
from extender.scheduling.precedent import Vain
from extender.scheduling.ranking import FULL, Answer, AnswerPolicy, Ranking, leading, offered, rank
from extender.scheduling.refining import is_open, is_settled, refined
from extender.scheduling.roll import Roll
from extender.scheduling.scored import Scored
from extender.scheduling.suitable import is_weighed
from extender.scheduling.survey import Survey, Unfinished, survey, tie_of
from extender.scheduling.trips import Travellers
from extender.scheduling.vocabulary import Word
from extender.scheduling.yielding import Yielding
from extender.state.belief import Belief
from extender.state.ledger import Event
from extender.state.table import Numbers
from extender.topology.memo import Memo

__all__ = ["Offer", "Plain", "Plan", "Planner", "Rejection", "Trouble"]
# Plans of pods that were sent to a node or woken, remembered until the scheduler asks about it.
AHEAD = 256
# Nodes on which devices are chosen before the offer is given up: counting and choosing agree, so the first will do.
TRIES = 3
# Nodes that a pod is sent to at once, one after the other, although the scheduler did not offer them.
STEERS = 3


@dataclass(slots=True)
class Planner:
    """Plans pods. One writer: an offer is promised before anybody else is planned."""

    belief: Belief
    chooser: Chooser
    answer_policy: AnswerPolicy = field(default_factory=AnswerPolicy)
    roll: Roll = field(default_factory=Roll)
    trips: Travellers = field(default_factory=Travellers)
    # Told of each pod before it is planned, and among which nodes, None for all: others may have to have theirs first.
    before: Callable[[Pod, Sequence[str] | None], None] = lambda _pod, _names: None
    possible: Possible = field(init=False)
    _ahead: Memo[Uid, Offer] = field(default_factory=lambda: Memo(AHEAD))
    _hopeless: Hopeless = field(default_factory=Hopeless)
    _counted: Counted = field(init=False)
    _yielding: Yielding = field(init=False)

    def __post_init__(self) -> None:
        self.possible, self._counted = Possible(self.belief), Counted(self.belief.loads)
        self._yielding = Yielding(self.belief, self.chooser)
        self.belief.parting.append(self._forget)

    def plan(
        self,
        pod: Pod,
        names: Sequence[str] | None,
        now: float,
        *,
        is_answer: bool = True,
        suitable: Flags | None = None,
    ) -> Plan:
        """Say where *pod* may go among *names*, or anywhere *suitable*, and promise it the best of that.

        Where the scheduler asks again (*is_answer*) for a pod that was offered a node, the pod came back from there.
        """
        promise = self.belief.ledger.of_pod(pod.uid)
        if promise is not None and promise.is_binding:
            return Trouble(promise.under_way)
        self.before(pod, names)
        if is_answer:
            self.trips.end(pod.uid)
        moment = Moment(now, is_answer, suitable)
        plan = self._planned(pod, names, moment)
        if isinstance(plan, Rejection) and is_answer and self._makes_way(pod, names):
            plan = self._planned(pod, names, moment)
        if not isinstance(plan, Offer):
            self.belief.ledger.tell(pod.uid, Event.EXPIRED)
        return plan

    def withdraw(self, pod: Uid) -> None:
        """Forget what *pod* was promised without having been asked about."""
        plan = self._ahead.pop(pod, None)
        if plan is not None:
            self.trips.of(pod).sent.discard(plan.placement.node)
        self.belief.ledger.tell(pod, Event.EXPIRED)

    def _makes_way(self, pod: Pod, names: Sequence[str] | None) -> bool:
        """Take back what less important pods were promised that nobody was told of, where it is what *pod* lacks.

        These were woken, or sent ahead, before *pod* was asked about. Tell whether it has a place on *names* now.
        """
        asked = Asked(names, self.belief.cluster.snapshot.layout.nodes, self.roll)
        left = self._yielding.who(pod, asked.among)
        for other in left:
            self.withdraw(other)
        return bool(left)

    def _forget(self, pod: Uid) -> None:
        """Forget all about a pod that waits no longer."""
        self._ahead.pop(pod, None)
        self._hopeless.drop(pod)
        self.trips.forget(pod)
        self.chooser.forget(pod)

    def went(self, pod: Uid, node: NodeName) -> None:
        """Remember that the scheduler has taken *node* for *pod*, of those that it was offered."""
        self.trips.of(pod).begin(node, is_answer=True)

    def _planned(self, pod: Pod, names: Sequence[str] | None, moment: Moment) -> Plan:
        needs = needs_of(pod, self.belief)
        if isinstance(needs, Unplaceable) and needs.word is Word.CLAIM_WAITING:
            # The scheduler has seen the claim, or it would have kept the pod: it is our watch that is behind.
            return Trouble(needs.detail)
        if isinstance(needs, Unplaceable):
            return Rejection(needs.word, needs.detail)
        return self._plain(pod, names, moment) if needs.is_plain else self._with_devices(needs, names, moment)

    def _plain(self, pod: Pod, names: Sequence[str] | None, moment: Moment) -> Plain:
        counts = counts_of(pod) if moment.is_answer else {}
        snapshot = self.belief.cluster.snapshot
        values = self.chooser.taste.beside_devices(pod, snapshot) if self.chooser.taste and not counts else None
        if not counts and (values is None or not moment.is_answer):
            return Plain()
        everything = snapshot.layout.nodes
        nodes = Asked(names, everything, self.roll).among(np.arange(len(everything)))
        if values is not None:
            return Plain(scored(values[nodes], [everything[node] for node in nodes.tolist()]))
        return Plain(self._counted.scores(counts, nodes, everything))

    def _with_devices(self, needs: Needs, names: Sequence[str] | None, moment: Moment) -> Plan:
        again = self._again(needs, names, moment)
        if again is not None:
            return again
        snapshot = self.belief.seen_by(needs.pod.uid)
        known = self._hopeless.of(needs, snapshot, self.chooser.taste)
        if known is not None:
            return known
        try:
            plan = self._judged(needs, names, moment, snapshot)
        except Unfinished as end:
            return Trouble("devices are still being looked for", end.is_search or not self.belief.questions.late())
        if isinstance(plan, Rejection):
            self._hopeless.put(needs, plan)
        if isinstance(plan, Offer) and not moment.is_answer:
            self._ahead[needs.pod.uid] = plan.settled()
        return plan

    def _again(self, needs: Needs, names: Sequence[str] | None, moment: Moment) -> Offer | None:
        """Return what the pod was sent to a node for, where the scheduler asks about that node.

        Where it has not heard of the node yet and asks about others, too, it is told of that one: it is the best.
        """
        if not moment.is_answer or (offer := self._ahead.pop(needs.pod.uid, None)) is None:
            return None
        node, promise = offer.placement.node, self.belief.ledger.of_pod(needs.pod.uid)
        if names is None or node not in names or promise is None or promise.node != node:
            return None
        if len(names) > 1 and self.answer_policy.answer is Answer.ALL:
            return None
        if node in self.trips.of(needs.pod.uid).came_back or self.chooser.kept(needs, node) is not offer.placement:
            return None
        self.belief.ledger.offer(replace(promise, since=moment.now, is_answer=True))
        self.trips.of(needs.pod.uid).begin(node, is_answer=True)
        return replace(offer, scores={node: FULL})

    def _judged(self, needs: Needs, names: Sequence[str] | None, moment: Moment, snapshot: Snapshot) -> Plan:
        surveyed = survey(needs, snapshot, self.belief.questions, self.chooser.taste)
        if isinstance(surveyed, Unplaceable):
            return Rejection(surveyed.word, surveyed.detail)
        failure = surveyed.failure()
        if failure is not None:
            # What one node says fails the pod in upstream's manner alone: otherwise it is the claim that is at fault.
            return Rejection(Word.QUESTION if self.belief.questions.manner.is_lenient else Word.NODE_ERROR, failure)
        nodes = np.flatnonzero(surveyed.fits)
        # Nodes whose device plugins serve what the pod asks for are the scheduler's to judge: we send it to none.
        ours = nodes if needs.allocated or not needs.extended else np.flatnonzero(surveyed.given)
        asked = Asked(names, snapshot.layout.nodes, self.roll)
        ranking = self._at_a_glance(surveyed, nodes, asked)
        if ranking is not None:
            return self._offered(surveyed, ranking, partial(asked.count, nodes), moment)
        among = ours if names is None else asked.among(nodes)
        if moment.suitable is not None:
            among = among[moment.suitable[among]]
        if not len(among):
            return self._refused(needs, surveyed, ours, asked.flags(), moment)
        ranking = self._shortlist(surveyed, among, moment)
        if not len(ranking.nodes):
            own = self.possible.own(needs.pod, None)
            return unwanted(surveyed, among, own, is_open=is_open(self.chooser.taste, surveyed))
        return self._offered(surveyed, ranking, partial(int, len(among)), moment)

    def _refused(
        self, needs: Needs, surveyed: Survey, fitting: Numbers, asked: Flags | None, moment: Moment
    ) -> Trouble | Rejection:
        own = self.possible.own(needs.pod, asked)
        if surveyed.is_open(own):
            return Trouble(GIVEN_UP)
        if moment.suitable is not None:
            return Rejection(Word.NOT_OFFERED, is_hopeless=surveyed.is_hopeless, fitting=fitting)
        plan = self._nowhere(needs, surveyed, fitting, own, moment)
        if needs.allocated and len(fitting) and asked is not None and not surveyed.usable[asked].any():
            tie = tie_of(needs, surveyed.snapshot, np.flatnonzero(asked))
            return replace(plan, word=Word.CLAIM_ELSEWHERE, detail=tie)
        return plan

    def _nowhere(
        self, needs: Needs, surveyed: Survey, fitting: Numbers, own: Flags | None, moment: Moment
    ) -> Rejection:
        # Where the scheduler would refuse the pod devices are of no use to it: it is told what the others lack.
        possible = self.possible.nodes(needs) if len(fitting) else None
        fitting = fitting if possible is None else fitting[possible[fitting]]
        if len(fitting):
            best = surveyed.snapshot.layout.nodes[int(fitting[0])]
            elsewhere = self._steered(needs.pod.uid, surveyed, fitting, moment)
            text = f"devices are free on {elsewhere or best}"
            return Rejection(Word.NOT_OFFERED, text, elsewhere, surveyed.rejected(own))
        return nowhere(surveyed, own)

    def _ranked(self, surveyed: Survey, nodes: Numbers, shunned: Collection[int], most: int | None = None) -> Ranking:
        """Rank *nodes*, or *most* of them at least."""
        if is_settled(self.chooser.taste, surveyed):
            return rank(surveyed.snapshot, nodes, shunned, surveyed.values, most)
        return refined(self.chooser, surveyed, rank(surveyed.snapshot, nodes, shunned, surveyed.values))

    def _steered(self, pod: Uid, surveyed: Survey, fitting: Numbers, moment: Moment) -> NodeName | None:
        """Name the best node that the pod was not sent to before; None where it was sent to some in vain already."""
        trips, snapshot = self.trips.of(pod), surveyed.snapshot
        if len(trips.sent) >= STEERS:
            return None
        order = self._ranked(surveyed, fitting, set(snapshot.layout.numbers(trips.came_back))).nodes.tolist()
        names = (snapshot.layout.nodes[number] for number in order)
        found = next((name for name in names if name not in trips.sent), None)
        if found is not None:
            trips.steered_at = moment.now
        return found

    def _at_a_glance(self, surveyed: Survey, nodes: Numbers, asked: Asked) -> Ranking | None:
        """Rank the first of *nodes* where the best is offered alone; None where others need a look, too."""
        names, pod = surveyed.snapshot.layout.nodes, surveyed.needs.pod
        is_plain = bool(surveyed.needs.pending) and is_settled(self.chooser.taste, surveyed)
        ranking = first_of(surveyed, nodes, asked, min(TRIES, self.answer_policy.shortlist)) if is_plain else None
        is_alone = ranking and self._is_alone(pod, surveyed.snapshot.nodes[names[int(ranking.nodes[0])]])
        return ranking if is_alone else None

    def _shortlist(self, surveyed: Survey, nodes: Numbers, moment: Moment) -> Ranking:
        """Rank those of *nodes* that are offered."""
        trips = self.trips.of(surveyed.needs.pod.uid)
        shunned = set(surveyed.snapshot.layout.numbers(trips.came_back if moment.is_answer else trips.vain))
        return offered(self._ranked(surveyed, nodes, shunned, self.answer_policy.most), self.answer_policy)

    def _offered(self, surveyed: Survey, ranking: Ranking, count: Callable[[], int], moment: Moment) -> Plan:
        names, needs = surveyed.snapshot.layout.nodes, surveyed.needs
        trips = self.trips.of(needs.pod.uid)
        placement: Placement | Vain | str = ""
        for place, number in enumerate(ranking.nodes[:TRIES].tolist()):
            placement = self.chooser.place(needs, names[number])
            if isinstance(placement, Placement):
                promise = placement.promise(needs, moment.now, is_answer=moment.is_answer)
                if not self.belief.ledger.offer(promise):
                    return Trouble("the claims are being allocated for another pod")
                trips.begin(names[number], is_answer=moment.is_answer)
                scores = leading(ranking.scores(self.answer_policy), place)
                best = compared(self.chooser, surveyed, ranking, scores, placement)
                told = self._told(needs.pod, surveyed.snapshot, ranking, scores, placement)
                return Offer(told, placement, best, count, surveyed.rejected)
        if isinstance(placement, Vain) and placement.is_overfull:
            return Rejection(Word.QUESTION, placement.message)
        return Trouble("the devices that were counted on could not be chosen")

    def _told(
        self, pod: Pod, snapshot: Snapshot, ranking: Ranking, scores: Numbers, placement: Placement
    ) -> Mapping[NodeName, int]:
        """Say with which scores which nodes are offered."""
        names = snapshot.layout.nodes
        if (placement.claims or placement.hidden) and self._is_alone(pod, snapshot.nodes[placement.node]):
            return {placement.node: FULL}
        if self.answer_policy.most is None:
            return Scored(names, ranking.nodes, scores)
        return dict(zip([names[number] for number in ranking.nodes.tolist()], scores.tolist(), strict=True))

    def _is_alone(self, pod: Pod, node: Node) -> bool:
        """Tell whether *node* is offered without the next best: its devices speak for it, and hardly any plugin."""
        is_auto, came_back = self.answer_policy.answer is Answer.AUTO, self.trips.of(pod.uid).came_back
        return is_auto and not came_back and not is_weighed(pod, node)
