"""The pods that have yet to be sent ahead, in the order in which the scheduler takes them."""

from collections import OrderedDict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeVar

from extender.model.names import Uid
from extender.model.node import Pod

# Pods of which it is remembered when they came, and pods of which it is that they had their turn.
REMEMBERED: Final = 10_000
V = TypeVar("V")


class Place(NamedTuple):
    """Where a pod stands: by priority, then by age in whole seconds, then by when it came."""

    rank: int
    created: str
    came: int
    pod: Uid


@dataclass(slots=True)
class Line:
    """Of equals the scheduler takes first whom it has seen first, however late claims or gates let that one through.

    It sees pods come in the order in which we do. Each has one turn.
    """

    _waiting: list[Place] = field(default_factory=list)
    _came: OrderedDict[Uid, int] = field(default_factory=OrderedDict)
    _had: OrderedDict[Uid, bool] = field(default_factory=OrderedDict)
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

    def put_back(self, place: Place) -> None:
        """Let one that was taken stand where it stood."""
        heappush(self._waiting, place)

    def asked(self, pod: Uid) -> None:
        """Take note that the scheduler has taken *pod*."""
        self._came.pop(pod, None)
        _remember(self._had, pod, value=True)

    def has_had(self, pod: Uid) -> bool:
        """Tell whether *pod* is in line, or had its turn."""
        return pod in self._had

    def was_asked(self, pod: Uid) -> bool:
        """Tell whether the scheduler has taken *pod*."""
        return self._had.get(pod, False)


def _remember(kept: OrderedDict[Uid, V], pod: Uid, value: V) -> None:
    kept[pod] = value
    if len(kept) > REMEMBERED:
        kept.popitem(last=False)
