"""What was decided about a pod and why: records for people and programs."""

from enum import StrEnum

from extender.model.frozen import dataclass
from extender.model.names import DeviceKey, NodeName, ObjectKey, Uid
from extender.scheduling.tally import Tally
from extender.topology.appraisal import NO_BASIS, Basis, Part


class Decided(StrEnum):
    """What was decided about a pod, or what came of that. People count by these words: they stay as they are."""

    OFFERED = "Offered"
    REJECTED = "Rejected"
    BOUND = "Bound"
    FAILED = "Failed"
    WAITING = "Waiting"


@dataclass(frozen=True, slots=True)
class Given:
    """Devices that a request of a claim is given."""

    claim: str
    request: str
    device: DeviceKey


@dataclass(frozen=True, slots=True)
class Ranked:
    """A node with its score and what that is made of: *value* is of a million, *parts* are where they are known.

    *free_devices* are counted of those that only this node has: None where the pod is given devices that others have,
    and where these are partitions.
    """

    node: NodeName
    score: int
    free_devices: int | None
    value: int = 0
    parts: tuple[Part, ...] = ()

    @property
    def words(self) -> str:
        """Say why in plain units."""
        parts = [part.text for part in self.parts if part.text]
        if self.free_devices is not None:
            parts.append("1 device was free" if self.free_devices == 1 else f"{self.free_devices} devices were free")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One decision about one pod, made from *generation* of the cluster at the time *at*.

    *reason*: of a rejection, a word of the vocabulary; of a fit ``Fits`` or ``Advised``; of a bind its ending:
    ``DevicesAllocated``, ``BindFailed``, ``BindingConditionsPending`` (the devices are being made ready),
    ``BindingConditionsFailed`` (they cannot be) or ``BindOutcomeUnknown`` (nobody knows whether the pod is bound: it
    keeps its devices).
    """

    pod: ObjectKey
    uid: Uid
    at: float
    generation: int
    outcome: Decided
    reason: str
    detail: str = ""
    node: NodeName | None = None
    given: tuple[Given, ...] = ()
    best: tuple[Ranked, ...] = ()
    basis: Basis = NO_BASIS
    fitting: int = 0
    offered: int = 0
    rejected: tuple[Tally, ...] = ()

    @property
    def says(self) -> tuple[object, ...]:
        """All but the time and the generation: what makes it another decision than the last."""
        return self.outcome, self.reason, self.detail, self.node, self.given
