"""The words in which pods are refused: few, without numbers, always the same.

kube-scheduler writes the text into the pod's condition and wakes the pod whenever that changes: a text that counts
would keep it busy for ever. Numbers and names are in the decision's record and in the event.
"""

from enum import StrEnum
from typing import Final


class Word(StrEnum):
    """Why a pod was not placed. People count by these words: they stay as they are."""

    NO_DEVICES = "NoDevices"
    NO_MATCH = "NoMatch"
    IN_USE = "InUse"
    OBSTACLE = "Obstacle"
    CAPACITY = "Capacity"
    COUNTERS = "Counters"
    CONSTRAINT = "Constraint"
    TOGETHER = "Together"
    POOL_UPDATING = "PoolUpdating"
    POOL_CLOSED = "PoolClosed"
    NOT_OURS = "NotOurs"
    NODE_ERROR = "NodeError"
    GIVEN_UP = "SearchGivenUp"
    QUESTION = "InvalidRequest"
    UNKNOWN_FIELD = "UnknownField"
    GANG = "SchedulingGroup"
    CLAIM_WAITING = "ClaimNotReady"
    CLAIM_IN_FLIGHT = "ClaimInFlight"
    CLAIM_FULL = "ClaimFull"
    CLAIM_TAINTED = "ClaimTainted"
    CLAIM_ELSEWHERE = "ClaimAllocatedElsewhere"
    CLAIM_GONE = "ClaimGone"
    CLAIM_CONTESTED = "ClaimContested"
    CLAIM_STALE = "ClaimStale"
    FOREIGN_SCHEDULER = "ForeignScheduler"
    NOT_OFFERED = "OnlyOtherNodes"
    POLICY = "PlacementPolicy"
    POLICY_REFUSED = "PolicyNotAllowed"


TEXTS: Final = {
    Word.NO_DEVICES: "no devices are published for the node",
    Word.NO_MATCH: "too few devices match the claim's requests",
    Word.IN_USE: "too few matching devices are free",
    Word.OBSTACLE: "matching devices are tainted or cannot be used on the node",
    Word.CAPACITY: "too few matching devices have enough capacity left",
    Word.COUNTERS: "the counters of the devices' pool do not suffice",
    Word.CONSTRAINT: "no set of free devices fulfils the claim's constraints",
    Word.TOGETHER: "the claim's requests cannot be satisfied together",
    Word.POOL_UPDATING: "a pool of devices is being updated",
    Word.POOL_CLOSED: "matching devices are in a pool that is closed, for somebody else has allocated from it",
    Word.NOT_OURS: "what the pod asks for is not ours to allocate",
    Word.NODE_ERROR: "a device or a pool of the node cannot be evaluated",
    Word.GIVEN_UP: "the search for devices was given up before it was known whether they suffice",
    Word.QUESTION: "the claim's request cannot be answered as it is written",
    Word.UNKNOWN_FIELD: "the claim or its class says something that this version does not know",
    Word.GANG: "pods of a scheduling group are not supported",
    Word.CLAIM_WAITING: "a claim of the pod is not there yet",
    Word.CLAIM_IN_FLIGHT: "a claim of the pod is being allocated for another pod",
    Word.CLAIM_FULL: "a claim of the pod is reserved for as many pods as it can be",
    Word.CLAIM_TAINTED: "a claim of the pod has devices for whose taints pods are evicted",
    Word.CLAIM_ELSEWHERE: "a claim of the pod is allocated on another node",
    Word.CLAIM_GONE: "the pod's status names a claim for its extended resources that is gone",
    Word.CLAIM_CONTESTED: "a claim of the pod holds devices that do not suffice for it and earlier claims",
    Word.CLAIM_STALE: "the claim of an earlier attempt is being removed",
    Word.FOREIGN_SCHEDULER: "the pod's scheduler is not served by this extender",
    Word.POLICY: "no set of free devices is as the claim's placement policy wants it",
    Word.POLICY_REFUSED: "the claim names a placement policy that it may not use",
    Word.NOT_OFFERED: "devices are free on nodes that were not looked at in this attempt",
}


def is_told(message: str) -> bool:
    """Tell whether *message*, which kube-scheduler wrote, has a refusal of ours in it."""
    return any(text in message for text in TEXTS.values())


# The nearest to a success first: what a pod is told is what its best nodes were short of.
NEARNESS: Final = (
    Word.POLICY,
    Word.GIVEN_UP,
    Word.TOGETHER,
    Word.CONSTRAINT,
    Word.COUNTERS,
    Word.CAPACITY,
    Word.POOL_CLOSED,
    Word.IN_USE,
    Word.POOL_UPDATING,
    Word.OBSTACLE,
    Word.NODE_ERROR,
    Word.NOT_OURS,
    Word.NO_MATCH,
    Word.NO_DEVICES,
)
