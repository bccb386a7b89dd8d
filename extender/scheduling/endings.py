"""What the scheduler wants bound, and how that can end."""

from enum import StrEnum

from extender.model.frozen import dataclass
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.placement import Placement


class Ending(StrEnum):
    """How a bind ended. People count by these words: they stay as they are."""

    ALLOCATED = "DevicesAllocated"
    FAILED = "BindFailed"
    CONDITIONS_FAILED = "BindingConditionsFailed"
    CONDITIONS_PENDING = "BindingConditionsPending"
    UNKNOWN = "BindOutcomeUnknown"


@dataclass(frozen=True, slots=True)
class Order:
    """What the scheduler wants bound."""

    pod: ObjectKey
    uid: Uid
    node: NodeName


@dataclass(frozen=True, slots=True)
class Bound:
    """The pod is on its node, with what it was given there."""

    pod: Pod
    placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class NotBound:
    """The pod is not bound; *is_waiting*: it may be yet, once its devices are ready.

    *is_open*: nobody knows whether it is bound already, or will be: what it was given is left to it.
    *placement* is what it was given, as far as it keeps that. *is_unready*: its devices cannot be made ready.
    *is_unbegun*: nothing was looked at, so that what was known of an earlier attempt is so still.
    """

    message: str
    is_waiting: bool = False
    is_open: bool = False
    placement: Placement | None = None
    is_unready: bool = False
    is_unbegun: bool = False

    @property
    def ending(self) -> Ending:
        """Name why the pod is not bound: it waits for its devices, or in vain, or nobody knows whether it is bound."""
        if self.is_open:
            return Ending.UNKNOWN
        if self.is_waiting:
            return Ending.CONDITIONS_PENDING
        return Ending.CONDITIONS_FAILED if self.is_unready else Ending.FAILED


Result = Bound | NotBound
