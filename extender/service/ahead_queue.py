"""The pods that have yet to be sent ahead, in the order in which the scheduler takes them."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeVar

from extender.model.names import ObjectKey, Uid
from extender.model.node import Pod

# Pods of which it is remembered when they came, pods of which it is that they had their turn, and claims that pods wait
# for: those before them go the usual way.
REMEMBERED: Final = 10_000
# Pods of which it is that they wait for one claim, the last to do so: no more can use it.
CROWD: Final = 256
K = TypeVar("K")
V = TypeVar("V")


class Place(NamedTuple):
    """Where a pod stands: by priority, then by age in whole seconds, then by when it came."""

    rank: int
    created: str
    came: int
    pod: Uid


@dataclass(slots=True)
class AheadQueue:
    """Of equals the scheduler takes first whom it has seen first, however late claims or gates let that one through.

    It sees pods come in the order in which we do. Each has one turn.
    """

    _waiting: list[Place] = field(default_factory=list)
    _came: OrderedDict[Uid, int] = field(default_factory=OrderedDict)
    _had: OrderedDict[Uid, bool] = field(default_factory=OrderedDict)
    _outside: OrderedDict[ObjectKey, tuple[Uid, ...]] = field(default_factory=OrderedDict)
    _count: int = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def came(self, pod: Uid) -> None:
        """Remember that *pod* was seen, unless it was before."""
        if pod not in self._came:
            self._count += 1
            _remember(self._came, pod, self._count)

    def join(self, pod: Pod) -> None:
        """Put a pod that came in its place; it may be taken from now on."""
        _remember(self._had, pod.uid, value=False)
        heappush(self._waiting, Place(-pod.priority, pod.created, self._came.pop(pod.uid), pod.uid))

    def take(self) -> Place:
        """Take whoever is first."""
        return heappop(self._waiting)

    def leave(self, place: Place, claims: Iterable[ObjectKey]) -> None:
        """Let one that was taken wait for any of *claims*; it may join again where it stood, if it was not asked about.

        Whoever queued for what never comes would be looked at again and again.
        """
        if self.was_asked(place.pod):
            return
        self._had.pop(place.pod, None)
        _remember(self._came, place.pod, place.came)
        for claim in claims:
            others = tuple(pod for pod in self._outside.get(claim, ()) if pod != place.pod)
            _remember(self._outside, claim, (*others, place.pod)[-CROWD:])

    def back(self, claim: ObjectKey) -> tuple[Uid, ...]:
        """Name those that waited for *claim*; for this one they do no longer."""
        return self._outside.pop(claim, ())

    def forget(self, pod: Uid) -> None:
        """Forget a pod that waits no longer."""
        self._came.pop(pod, None)
        self._had.pop(pod, None)

    def asked(self, pod: Uid) -> None:
        """Take note that the scheduler has taken *pod*."""
        self._came.pop(pod, None)
        _remember(self._had, pod, value=True)

    def has_had(self, pod: Uid) -> bool:
        """Tell whether *pod* is in the queue, or had its turn."""
        return pod in self._had

    def was_asked(self, pod: Uid) -> bool:
        """Tell whether the scheduler has taken *pod*."""
        return self._had.get(pod, False)


def _remember(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    if len(kept) > REMEMBERED:
        kept.popitem(last=False)
