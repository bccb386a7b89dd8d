"""Who may be evicted for a pod: those without whom it has its devices, and nobody as long as it has but to wait."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from extender.model.claim import ResourceClaim
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.choosing import Chooser
from extender.scheduling.conditions import have_failed, is_waited_for
from extender.scheduling.drift import leavers
from extender.scheduling.fruitless import Fruitless
from extender.scheduling.needs import Needs, Unplaceable, needs_of
from extender.scheduling.placement import Placement
from extender.scheduling.precedent import Vain
from extender.scheduling.ties import named
from extender.scheduling.veto import helped
from extender.service.attention import Attention
from extender.service.evictions import PATIENCE_S, SOON_S, Evictions, Victims
from extender.state.belief import Belief
from extender.state.claims import named_by
from extender.web import verbs

# How long after filter kube-scheduler asks about preemption in the same attempt, at most. Rather too short: who is
# believed to be asked about in another attempt than in fact has others evicted, as if he had never been refused.
ATTEMPT_S: Final = 2.0
# So many of those who are gone and had devices that are not of one node are counted on every node.
ANYWHERE: Final = 64


class Refused(NamedTuple):
    """Which pod filter was asked about last, where it was refused; when, and where devices are free for it."""

    pod: Uid
    at: float
    elsewhere: NodeName | None


@dataclass(slots=True)
class Preemption:
    """Lets others be evicted, and remembers for whom."""

    belief: Belief
    chooser: Chooser
    attention: Attention
    evictions: Evictions
    _refused: Refused | None = None
    _fruitless: Fruitless = field(init=False)

    def __post_init__(self) -> None:
        self._fruitless = Fruitless(self.belief)
        self.belief.parting.append(self._fruitless.forget)

    def begin(self) -> None:
        """Remember that filter is asked, about whichever pod."""
        self._refused = None

    def keep(self, pod: Pod, names: Sequence[str] | None) -> None:
        """Promise what was let go of on *names*, or anywhere, to those for whom that was, before *pod* is planned.

        They are woken for it a moment later: by then others, who are no more important, would have it.
        """
        due = self._due(pod)
        here = frozenset(names) if due and names is not None else None
        for other, node in due:
            if (here is None or node in here) and set(named_by(other)).isdisjoint(named_by(pod)):
                self._keep(other, node)

    def _due(self, pod: Pod) -> Sequence[tuple[Pod, NodeName]]:
        """Name who is ahead of *pod* where what others had is let go of, unless nothing has changed there since."""
        is_on, ahead = self.belief.loads.is_on, self.evictions.ahead(pod, self._waiting).items()
        others = ((each.pod, node) for node, first in ahead for each in first)
        found = [(other, node) for other, node in others if self.evictions.is_letting_go(other.uid, node, is_on)]
        if not found:
            return ()
        self._fruitless.look(self.chooser.taste)
        return [(other, node) for other, node in found if not self._fruitless.knows(other, node)]

    def _keep(self, pod: Pod, node: NodeName) -> None:
        needs = needs_of(pod, self.belief)
        found = self.chooser.place(needs, node) if isinstance(needs, Needs) else None
        if isinstance(needs, Needs) and isinstance(found, Placement):
            now = self.evictions.now()
            if self.belief.ledger.offer(found.promise(needs, now, is_answer=False)):
                self.attention.waker.kept(pod.uid, node, now)
        elif isinstance(needs, Needs) and isinstance(found, Vain):
            # Since the last look another may have been promised what is lacking.
            self._fruitless.look(self.chooser.taste)
            self._fruitless.put(needs, node)

    def refused(self, pod: Uid, elsewhere: NodeName | None) -> None:
        """Remember that filter has refused *pod* just now, which is to be sent *elsewhere*."""
        self._refused = Refused(pod, self.evictions.now(), elsewhere)

    def emptied(self, pod: Pod, asked: Mapping[str, verbs.Victims]) -> Sequence[NodeName]:
        """Name the nodes on which others may be evicted for *pod*, of those *asked* about. Raise Unfinished."""
        is_elsewhere = self.belief.loads.is_elsewhere
        # Those of a group go together, wherever they are. kube-scheduler ends the attempt where we name somebody with a
        # node that he is not on, and does without the nodes that we leave out.
        victims = {
            NodeName(name): items.pods
            for name, items in asked.items()
            if not any(is_elsewhere(uid, NodeName(name)) for uid in items.pods)
        }
        if self._is_sent(pod, asked):
            return ()
        until = self._awaited(pod, asked)
        if until is not None:
            # Once the devices are free the pod is woken; if they are not in time, others have to go after all.
            self.attention.waits.postponed(pod.uid, until)
            return ()
        nodes = self._helped(pod, victims)
        needs = needs_of(pod, self.belief)
        if not nodes and self._has_failed(needs):
            # No binding gives that up where nobody goes: it is freed as what keeps its pod away.
            self.attention.waits.refused(pod)
        if not nodes:
            self._left(pod, victims)
        if nodes and isinstance(needs, Needs) and not needs.is_plain:
            if self._is_made_ready(needs) and self._can_be_woken(pod, nodes):
                self.attention.waits.awaits(pod.uid, nodes[0], is_unheard=self._refusal(pod) is None)
                return ()
            self.evictions.put(pod.uid, {node: victims[node] for node in nodes})
        return nodes

    def _left(self, pod: Pod, victims: Victims) -> None:
        """Have *pod* tried again soon if it is not helped for what those have yet who are gone. Raise Unfinished.

        kube-scheduler tries it as soon as a pod has gone. The claims of that are freed a moment later, of which nobody
        hears whom filter has not refused.
        """
        if self._refusal(pod) or not self._can_be_woken(pod, tuple(victims)):
            return
        left = tuple(leavers(self.belief))
        gone = _gone(left, frozenset(named_by(pod)), victims)
        more = {node: (*pods, *gone[node]) for node, pods in victims.items() if node in gone}
        nodes = more and self._helped(pod, more)
        here = frozenset[Uid]().union(*map(gone.__getitem__, nodes))
        if nodes and self.evictions.is_patient(pod.uid, here, frozenset(uid for uid, _ in left)):
            self.attention.waits.awaits(pod.uid, nodes[0], is_unheard=True)

    def _helped(self, pod: Pod, victims: Victims) -> Sequence[NodeName]:
        ahead = self.evictions.ahead(pod, self._waiting)
        return helped(pod, victims, self.chooser, self.attention.wall(), ahead)

    def _waiting(self, pod: Uid) -> Pod | None:
        """Find a pod that is promised nothing yet: what is promised counts as taken."""
        found = self.belief.pods.with_uid(pod)
        return None if found is None or found.is_deleting or self.belief.ledger.of_pod(pod) else found

    def _awaited(self, pod: Pod, candidates: Collection[str]) -> float | None:
        """Say when *pod* is to be tried again if it waits for devices of who was evicted alone. Raise Unfinished."""
        done = self.evictions.done(pod, candidates)
        if not done:
            return None
        free = helped(pod, dict.fromkeys(done, ()), self.chooser, self.attention.wall())
        # Where they were free before it was asked about something else is missing.
        if not (self.evictions.was_refused(pod.uid, free) if free else self._helped(pod, done)):
            return None
        if not free and self._is_ending(pod):
            # As with kube-scheduler, which has no more evicted where those of before have yet to end.
            return self.evictions.now() + PATIENCE_S
        until = self.evictions.waits(pod.uid)
        return until if until is None or not free else min(until, self.evictions.now() + SOON_S)

    def _is_ending(self, pod: Pod) -> bool:
        """Tell whether *pod* was refused in this attempt where those end who were evicted for it.

        A node about which filter is not asked any more, as one that is gone or tainted, may never be let go of.
        """
        node = self.evictions.ending(pod, self.belief.loads.is_on)
        return node is not None and bool(self._refusal(pod)) and self.evictions.was_refused(pod.uid, (node,))

    def _refusal(self, pod: Pod) -> Refused | None:
        """Return how filter has refused *pod* in this attempt, if it has.

        Then it is tried again whenever we touch it, so that it may be left to wait. Who was refused by other plugins
        alone is tried again for what these wait for.
        """
        found = self._refused
        is_now = found is not None and found.pod == pod.uid and self.evictions.now() - found.at <= ATTEMPT_S
        return found if is_now else None

    def _can_be_woken(self, pod: Pod, nodes: Sequence[NodeName]) -> bool:
        """Tell whether kube-scheduler would try *pod* again for what we write.

        Where filter has not refused it NodeResourcesFit has to have, on one of *nodes*: that hears of a nomination that
        is taken back, as of a pod that has gone from its node.
        """
        return bool(self._refusal(pod)) or (
            any(self._is_full(node, pod) for node in nodes) and self.attention.habits.nominates
        )

    def _is_full(self, node: NodeName, pod: Pod) -> bool:
        """Tell whether *node* is known to lack room for *pod*."""
        free = self.belief.loads.free(node) or {}
        return any(name in free and number > free[name] for name, number in pod.terms.amounts)

    def _is_sent(self, pod: Pod, candidates: Collection[str]) -> bool:
        """Tell whether *pod* is sent to a node with free devices that is no candidate: nobody has to go there."""
        refusal, promise = self._refusal(pod), self.belief.ledger.of_pod(pod.uid)
        if refusal is None:
            return False
        if promise is not None and not promise.is_answer:
            return promise.node not in candidates
        is_free = refusal.elsewhere is not None and refusal.elsewhere not in candidates
        return is_free and self.attention.asks_again(pod.uid)

    def _has_failed(self, needs: Needs | Unplaceable) -> bool:
        """Tell whether devices of the pod cannot be made ready: with these it is bound nowhere."""
        wall, within_s = self.attention.wall(), self.belief.ready_within_s
        return isinstance(needs, Needs) and have_failed(needs.allocated, wall, within_s)

    def _is_made_ready(self, needs: Needs) -> bool:
        """Tell whether devices of the pod are made ready still: it would not be bound, and lose the room again."""
        return is_waited_for(needs.allocated, self.attention.wall(), self.belief.ready_within_s)


def _gone(
    left: Iterable[tuple[Uid, ResourceClaim]], own: AbstractSet[ObjectKey], nodes: Collection[NodeName]
) -> Mapping[NodeName, AbstractSet[Uid]]:
    """Name who has *left*, by those of *nodes* where it matters to a pod with its *own* claims that these are freed.

    Thousands may be gone at once, as with their namespace, and hundreds of nodes be asked about.
    """
    found, anywhere = defaultdict[NodeName, set[Uid]](set), set[Uid]()
    for uid, claim in left:
        is_own = claim.key in own
        place = named(claim.allocation.node_selector) if claim.allocation and not is_own else None
        if place is not None and place in nodes:
            found[place].add(uid)
        elif is_own or (place is None and len(anywhere) < ANYWHERE):
            anywhere.add(uid)
    for node in nodes if anywhere else ():
        found[node] |= anywhere
    return found
