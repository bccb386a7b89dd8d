"""What the scheduler wants bound, and how that can end."""

from dataclasses import dataclass

from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod
from extender.scheduling.placement import Placement


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
    """

    message: str
    is_waiting: bool = False
    is_open: bool = False


Result = Bound | NotBound
