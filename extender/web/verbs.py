"""What the scheduler asks and what it is answered, as values, and who answers.

Nothing here knows of bytes or sockets.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from extender.model.frozen import dataclass
from extender.model.names import ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.endings import Order


@dataclass(frozen=True, slots=True)
class Victims:
    """Pods on one node that would be evicted, by UID, and how many disruption budgets that would break."""

    pods: tuple[Uid, ...]
    violations: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """Which nodes passed, all of them names of the request.

    *text* is why none did, the one reason of all nodes of the reply: two reasons, or one with a number in it, wake the
    pod that they reject. Where *error* says something, the scheduler tries again later, and the rest is not sent; if it
    *goes_on*, who asks again is answered after more of the same work.
    """

    names: Sequence[str] = ()
    text: str = ""
    error: str = ""
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no answer now. The scheduler gives this preemption up."""

    text: str


@dataclass(frozen=True, slots=True)
class Written:
    """The answer to prioritize, as it was written before it was asked for."""

    json: bytes


# A score for each name of the request, in its order; none at all where there is no opinion.
Scores = Sequence[int] | Written | None


class Verbs(Protocol):
    """Answers the scheduler. What it raises is a bug: it is answered by an error with an id that the log carries.

    A pod that cannot be read is answered before it gets here. Names may be a view of the request's bytes.
    """

    async def hear(self, pod: Pod) -> None:
        """Wait a moment for what the scheduler may have heard of *pod* before us: filter asks with that."""

    def filter(self, pod: Pod, names: Sequence[str]) -> Filtered:
        """Say which of the named nodes can take the pod."""

    def prioritize(self, pod: Pod, names: Sequence[str]) -> Scores:
        """Score the named nodes for the pod."""

    def preempt(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims] | Failed:
        """Say on which of these nodes evicting these pods helps; a node that is left out is vetoed."""

    async def bind(self, order: Order) -> str:
        """Bind the pod; return what went wrong, nothing where it is bound."""


class Decisions(Protocol):
    """What was decided, for people who ask."""

    def of(self, pod: ObjectKey) -> object | None:
        """Return all that is remembered of the pod as JSON values, None where that is nothing."""

    def unasked(self, pod: ObjectKey) -> str:
        """Say what else is known of a pod of which nothing is remembered."""


class Health(Protocol):
    """What probes ask: whether a restart would help, and what is missing until we are ready."""

    def is_alive(self) -> bool:
        """Tell whether a restart would not help."""

    def lost(self, task: asyncio.Task[None]) -> None:
        """Note that a task has ended that goes on for ever."""

    def missing(self) -> Sequence[str]:
        """Say what is still missing until we are ready; nothing where we are."""

    def warnings(self) -> Sequence[str]:
        """Say what is not as it should be, though we are ready."""
