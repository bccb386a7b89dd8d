"""The pods that were sent to a node and were not asked about yet, and what is promised to those that were."""

from collections.abc import Callable, Iterator
from itertools import islice

from extender.model.frozen import dataclass
from extender.model.names import NodeName, Uid
from extender.model.node import Pod
from extender.scheduling.promised import Promised
from extender.scheduling.recall import World


@dataclass(frozen=True, slots=True)
class Sent:
    """A pod on its way: where to, by which view of that node, and the *version* that it got when that was written."""

    pod: Pod
    node: NodeName
    seen: World
    version: str = ""

    @property
    def is_written(self) -> bool:
        return bool(self.version)

    def is_known_by(self, shown: Pod) -> bool:
        """Tell whether who shows the pod so has heard of its node."""
        return shown.nominated_node == self.node or (self.is_written and shown.resource_version == self.version)


class Travelling:
    """All that were not asked about yet, the first that was sent first. One writer.

    *promised*: what they need of nodes, and those of whom the scheduler was told: until these are shown to be bound,
    no load is theirs.
    """

    def __init__(self) -> None:
        self._sent: dict[Uid, Sent] = {}
        # Whose turn it is to be looked at comes first.
        self._answered: dict[Uid, tuple[Pod, NodeName]] = {}
        self.promised = Promised()

    def __len__(self) -> int:
        return len(self._sent)

    def __iter__(self) -> Iterator[Sent]:
        return iter(self._sent.values())

    def get(self, pod: Uid) -> Sent | None:
        return self._sent.get(pod)

    def put(self, sent: Sent) -> Sent:
        """Remember one that is sent; it stays where it stands if it was before."""
        self._count(self._sent.get(sent.pod.uid), -1)
        self._sent[sent.pod.uid] = sent
        self._count(sent, 1)
        return sent

    def drop(self, pod: Uid) -> Sent | None:
        """Forget a pod; return how it was sent, if it was."""
        sent = self._sent.pop(pod, None)
        self._count(sent, -1)
        return sent

    def answered(self, pod: Pod, node: NodeName) -> None:
        """Take note that the scheduler was told of *node* for *pod*."""
        self.over(pod.uid)
        self._answered[pod.uid] = pod, node
        self.promised.add(node, pod.terms.amounts)

    def over(self, pod: Uid) -> None:
        """Take note that *pod* is on its way no longer: it is bound or gone, or the scheduler asks anew."""
        if pod in self._answered:
            known, node = self._answered.pop(pod)
            self.promised.add(node, known.terms.amounts, -1)

    def look(self, most: int, is_on_its_way: Callable[[Uid], bool]) -> None:
        """Look at *most* of those whom the scheduler was told of, and forget who came to nothing."""
        for pod in tuple(islice(self._answered, most)):
            if is_on_its_way(pod):
                self._answered[pod] = self._answered.pop(pod)
            else:
                self.over(pod)

    def _count(self, sent: Sent | None, number: int) -> None:
        if sent is not None:
            self.promised.add(sent.node, sent.pod.terms.amounts, number)
