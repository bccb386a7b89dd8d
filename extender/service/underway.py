"""The pods that were sent to a node, and about which the scheduler has yet to ask."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from extender.model.names import Uid
from extender.model.node import Pod
from extender.scheduling.planner import Planner
from extender.scheduling.remedy import are_named
from extender.service.sent import Sent
from extender.state.belief import Belief
from extender.state.ledger import Promise

# Pods that are sent somewhere at a time and were not asked about yet: what is promised to them nobody else gets. While
# many pods are made, the scheduler hears of a nomination only after it has taken dozens of others.
MOST: Final = 128
# Those of them whose claims are yet to be made. By default whoever makes them makes ten a second, and those are to have
# had their turn before long.
FORESEEN: Final = 32
# Those of whom a round looks whether they wait still, and others that are planned before the next round of looking.
BATCH: Final = 16
# How long devices are kept for a claim that is yet to be made while no other is made from its template: a quota may be
# in the way.
MADE_WITHIN_S: Final = 10.0


@dataclass(slots=True)
class Underway:
    """Who is on the way, in the order in which they were sent. One writer."""

    belief: Belief
    planner: Planner
    now: Callable[[], float]
    _sent: dict[Uid, Sent] = field(default_factory=dict)
    _unmade: set[Uid] = field(default_factory=set)
    _looked: int = 0  # how many of those sent were seen to wait still since the first one was

    def __len__(self) -> int:
        return len(self._sent)

    def __iter__(self) -> Iterator[Sent]:
        return iter(self._sent.values())

    def get(self, pod: Uid) -> Sent | None:
        return self._sent.get(pod)

    def first(self, count: int) -> Iterator[Uid]:
        """Yield those that have been on the way for longest."""
        return islice(self._sent, count)

    @property
    def has_unmade(self) -> bool:
        """Whether any waits for its claims to be made."""
        return bool(self._unmade)

    @property
    def room(self) -> int:
        """How many more may be sent whose claims are yet to be made."""
        self._unmade = {uid for uid in self._unmade if uid in self._sent}
        return min(FORESEEN - len(self._unmade), MOST - len(self._sent))

    def put(self, sent: Sent) -> Sent:
        """Remember *sent* in place of what was known of its pod."""
        if sent.pod.uid not in self._sent and not are_named(sent.pod):
            self._unmade.add(sent.pod.uid)
        self._sent[sent.pod.uid] = sent
        return sent

    def pop(self, pod: Uid) -> Sent | None:
        """Forget a pod, as when it is asked about; return what was known of it."""
        return self._sent.pop(pod, None)

    def shown(self, pod: Pod) -> bool:
        """Take over what the watch shows; tell whether *pod* is to be written for again."""
        sent = self._sent.get(pod.uid)
        if sent is None:
            return False
        if are_named(pod):
            self._unmade.discard(pod.uid)
        self._sent[pod.uid] = sent.shown_as(pod)
        return sent.is_missed_by(pod)

    def forget_some(self) -> None:
        """Look at a few of those on their way: there are many rounds."""
        some = tuple(islice(self._sent, self._looked, self._looked + BATCH))
        gone = self.forget(some)
        self._looked = self._looked + BATCH - gone if len(some) == BATCH else 0

    def forget(self, pods: Iterable[Uid]) -> int:
        """Forget those of *pods* that wait no longer, or whose promise has run out; say how many."""
        before = len(self._sent)
        for uid in pods:
            promise, pod = self.belief.ledger.of_pod(uid), self.belief.pods.with_uid(uid)
            is_vain = pod is not None and uid in self._unmade and self._is_vain(pod, promise)
            if promise is None or promise.is_answer or promise.is_binding or pod is None or is_vain:
                del self._sent[uid]
            if promise is None or is_vain:
                # Nobody has asked, so it was not sent there in vain.
                self.planner.withdraw(uid)
        return before - len(self._sent)

    def _is_vain(self, pod: Pod, promise: Promise | None) -> bool:
        """Tell whether nobody makes the claims of *pod*; then those of others like it are not made, either."""
        sent, made = self._sent[pod.uid], self.belief.templates.last(pod)
        if all(made) and made != sent.made:
            self._sent[pod.uid] = sent = replace(sent, made=made, since=self.now())
        if promise is not None and (promise.is_answer or self.now() - sent.since < MADE_WITHIN_S):
            return False
        self.belief.templates.doubt(pod)
        return True
