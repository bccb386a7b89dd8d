"""What a binding asks of the world, one step at a time, and how a step can end."""

from enum import Enum
from typing import Final, TypeGuard

from extender.allocation.extended import Hidden
from extender.model.claim import Allocation, Consumer, ResourceClaim
from extender.model.frozen import dataclass
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Pod


@dataclass(frozen=True, slots=True)
class ReadClaim:
    """Read a claim as the API server has it now."""

    key: ObjectKey


@dataclass(frozen=True, slots=True)
class ReadPod:
    """Read a pod as the API server has it now."""

    key: ObjectKey


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Keep a claim from going while it is in use."""

    claim: ResourceClaim


@dataclass(frozen=True, slots=True)
class WriteAllocation:
    """Give a claim its devices and reserve it, both or neither."""

    claim: ResourceClaim
    allocation: Allocation
    consumer: Consumer


@dataclass(frozen=True, slots=True)
class Reserve:
    """Reserve an allocated claim for one more pod."""

    claim: ResourceClaim
    consumer: Consumer


@dataclass(frozen=True, slots=True)
class Release:
    """Take a reservation back, and the allocation too if *deallocate*."""

    claim: ResourceClaim
    pod: Uid
    deallocate: bool


@dataclass(frozen=True, slots=True)
class TouchClaim:
    """Move a claim's version on, so that no earlier write can land."""

    claim: ResourceClaim


@dataclass(frozen=True, slots=True)
class TouchPod:
    """Move a pod's version on, so that no earlier Binding can land."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class CreateClaim:
    """Make the claim for a pod's extended resources."""

    pod: Pod
    hidden: Hidden


@dataclass(frozen=True, slots=True)
class MapExtended:
    """Tell in the pod's status which claim has its extended resources."""

    pod: Pod
    claim: str
    hidden: Hidden | None


@dataclass(frozen=True, slots=True)
class DeleteClaim:
    """Delete a claim that we made, as it was read."""

    claim: ResourceClaim


@dataclass(frozen=True, slots=True)
class BindPod:
    """Bind a pod, as it was read, to a node."""

    pod: Pod
    node: NodeName


@dataclass(frozen=True, slots=True)
class AwaitShown:
    """Wait until the watch has shown a claim in *version* or later, or that it is gone."""

    claim: Uid
    version: int


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait, because the API server said so, *before* a step is taken again; REFUSED where there is no time left."""

    seconds: float
    before: "Step"


Step = (
    ReadClaim
    | ReadPod
    | AddFinalizer
    | WriteAllocation
    | Reserve
    | Release
    | TouchClaim
    | TouchPod
    | CreateClaim
    | MapExtended
    | DeleteClaim
    | BindPod
    | AwaitShown
    | Pause
)


class Refusal(Enum):
    """Why nothing was written."""

    CONFLICT = "conflict"  # 409: the object has moved on, or a precondition does not hold
    EXISTS = "exists"  # 409: an object of this name is there
    NOT_FOUND = "not found"  # 404
    INVALID = "invalid"  # 422
    FORBIDDEN = "forbidden"  # 401, 403
    REJECTED = "rejected"  # any other 3xx or 4xx, but 408
    IN_VAIN = "in vain"  # 2xx, and the object has not moved on: something takes away what was written
    UNSENT = "unsent"  # no connection, or no time left: the request never left


# What is refused for one of these may be refused for good: others say that it is to be tried again, or that it is over.
LASTING: Final = (Refusal.FORBIDDEN, Refusal.INVALID, Refusal.REJECTED, Refusal.IN_VAIN)


@dataclass(frozen=True, slots=True)
class Done:
    """The step succeeded; *what* is what the API server answered, where that is a pod or a claim."""

    what: ResourceClaim | Pod | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The step did not happen and will not. *status* and *reason* are those of the API server, where it has spoken."""

    kind: Refusal
    message: str = ""
    status: int = 0
    reason: str = ""

    def __str__(self) -> str:
        """Say for people what was answered."""
        told = " ".join(filter(None, (str(self.status or ""), self.reason)))
        return f"{told}: {self.message}" if told else self.message


@dataclass(frozen=True, slots=True)
class Later:
    """The API server is busy and did not look at it."""

    seconds: float
    message: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have happened, and may happen yet: no answer, a 5xx, a 408, or a success that cannot be read.

    *is_answered*: the API server has said something.
    """

    why: str = ""
    is_answered: bool = False

    def __str__(self) -> str:
        """Say for people why nobody knows."""
        return self.why


Outcome = Done | Refused | Later | Unknown


def is_refused(outcome: object, *kinds: Refusal) -> TypeGuard[Refused]:
    """Tell whether the step was refused for one of these reasons."""
    return isinstance(outcome, Refused) and outcome.kind in kinds


def pod_in(outcome: Outcome) -> Pod | None:
    """Return the pod that a step was answered with; None where the answer is none."""
    return outcome.what if isinstance(outcome, Done) and isinstance(outcome.what, Pod) else None


def told_by(outcome: Outcome) -> str:
    """Say for people why a step did not succeed."""
    match outcome:
        case Refused(kind, message):
            return message or kind.value
        case Unknown(why):
            return why or "no answer"
        case Later(_, message):
            return message or "the API server is busy"
    return "the answer cannot be read"


def told_after(before: Outcome, outcome: Outcome) -> str:
    """Say why a step did not succeed; where it was not sent, how the attempt *before* had ended, which took time."""
    is_late = isinstance(before, Later | Unknown) and is_refused(outcome, Refusal.UNSENT)
    return told_by(before if is_late else outcome)


def vain(subject: str, outcome: Outcome) -> str:
    """Say why *subject* was not written, often as it was tried. Of conflicts all tell that others were there first.

    So does what was done last, as to add a finalizer that others take away.
    """
    is_done = isinstance(outcome, Done) and outcome.what is not None
    is_changing = is_done or is_refused(outcome, Refusal.CONFLICT)
    return f"{subject} kept changing" if is_changing else f"{subject}: {told_by(outcome)}"
