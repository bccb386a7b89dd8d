"""What was promised and is not yet to be seen in the cluster: holds, found by pod and by claim. One writer, no clock.

Once a write may have been sent, only what the API server shows ends a hold. Neither time nor the end of its pod does.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from extender.allocation.snapshot import Snapshot
from extender.allocation.usage import Hold, subtract
from extender.model.frozen import dataclass
from extender.model.names import DeviceKey, NodeName, ObjectKey, Uid
from extender.state.taken import Taken


class Phase(Enum):
    """How far a hold has come."""

    OFFERED = auto()  # filter answered with its node
    RESERVED = auto()  # bind has begun: a write may be on its way
    WRITTEN = auto()  # the API server said yes
    UNKNOWN = auto()  # nobody can say whether the write arrived


class Event(Enum):
    """What happens to a hold."""

    BIND = auto()  # the scheduler binds the pod
    ACCEPTED = auto()  # the write was answered with yes
    REFUSED = auto()  # the write was answered with no
    UNANSWERED = auto()  # the write has no known outcome
    SHOWN = auto()  # the watch shows the allocation
    OUTDATED = auto()  # the claim is gone, or moved on without our allocation: the write can no longer succeed
    RESUMED = auto()  # the write that had no known outcome can no longer succeed, and is begun anew
    POD_GONE = auto()
    EXPIRED = auto()


# Where an event leads; None ends the hold. An event that a phase does not list changes nothing.
TRANSITIONS: Final[Mapping[Phase, Mapping[Event, Phase | None]]] = MappingProxyType(
    {
        Phase.OFFERED: {
            Event.BIND: Phase.RESERVED,
            Event.SHOWN: None,
            Event.OUTDATED: None,
            Event.POD_GONE: None,
            Event.EXPIRED: None,
        },
        Phase.RESERVED: {
            Event.ACCEPTED: Phase.WRITTEN,
            Event.REFUSED: None,
            Event.UNANSWERED: Phase.UNKNOWN,
            Event.SHOWN: None,
        },
        Phase.WRITTEN: {Event.SHOWN: None, Event.OUTDATED: None},
        Phase.UNKNOWN: {
            Event.SHOWN: None,
            Event.OUTDATED: None,
            Event.ACCEPTED: Phase.WRITTEN,
            Event.RESUMED: Phase.RESERVED,
        },
    }
)
# From here on a write may have been sent.
BINDING: Final = frozenset((Phase.RESERVED, Phase.WRITTEN, Phase.UNKNOWN))
# What the identity of a claim begins with that does not exist yet.
UNMADE: Final = "unmade:"


@dataclass(frozen=True, slots=True)
class ClaimHold:
    """What one claim was promised, and how far that has come. A write is based on *version* of the claim.

    *unseen* names a claim that we made ourselves, as long as the watch has not shown that it exists.
    """

    claim: Uid
    devices: tuple[Hold, ...]
    phase: Phase = Phase.OFFERED
    version: int = 0
    unseen: ObjectKey | None = None

    @property
    def is_of_shown_claim(self) -> bool:
        """Whether the watch has shown the claim, which is gone where it is not known: one that we make may come yet."""
        return self.unseen is None and not self.claim.startswith(UNMADE)


@dataclass(frozen=True, slots=True)
class Promise:
    """What a pod was promised: one node, and devices for each claim that had none.

    *is_answer*: the scheduler was told; otherwise the pod has only been woken for it.
    """

    pod: Uid
    node: NodeName
    claims: tuple[ClaimHold, ...]
    since: float = 0.0
    is_answer: bool = True

    @property
    def is_binding(self) -> bool:
        """Whether a write may have been sent for any of its claims."""
        return any(claim.phase in BINDING for claim in self.claims)

    @property
    def under_way(self) -> str:
        """Say what of it is, where it *is_binding*."""
        if any(claim.phase is Phase.UNKNOWN for claim in self.claims):
            return (
                f"claims of the pod were written for node {self.node}, and nobody knows yet whether they were changed"
            )
        return f"claims of the pod are being written for node {self.node}"


class Ledger:
    """Every promise; one for each pod, and one pod for each claim."""

    def __init__(self) -> None:
        self._promises: dict[Uid, Promise] = {}
        self._pod_of_claim: dict[Uid, Uid] = {}
        self._taken = Taken()

    def __iter__(self) -> Iterator[Promise]:
        return iter(self._promises.values())

    def of_pod(self, pod: Uid) -> Promise | None:
        """Return what *pod* was promised."""
        return self._promises.get(pod)

    def of_claim(self, claim: Uid) -> Promise | None:
        """Return the promise that *claim* is part of: a second pod of that claim shares it, or waits."""
        pod = self._pod_of_claim.get(claim)
        return None if pod is None else self._promises[pod]

    def hold_of(self, claim: Uid) -> ClaimHold | None:
        """Return what *claim* was promised."""
        promise = self.of_claim(claim)
        return next((hold for hold in promise.claims if hold.claim == claim), None) if promise else None

    def is_reserved(self, claim: Uid, pod: Uid) -> bool:
        """Tell whether a write for *claim* may be sent: its devices are kept for *pod*, and none other is under way.

        Of a claim that is shared they may be kept for another pod by now: others, which that one is about to write.
        """
        hold = self.hold_of(claim) if self._pod_of_claim.get(claim) == pod else None
        return hold is not None and hold.phase is Phase.RESERVED

    def rename(self, claim: Uid, to: Uid, unseen: ObjectKey | None) -> None:
        """Remember that *claim*, which we had to make, is made and has an identity now."""
        self._change(claim, lambda hold: replace(hold, claim=to, unseen=unseen))

    def saw(self, claim: Uid) -> None:
        """Remember that the watch shows *claim*, whatever it says of it."""
        hold = self.hold_of(claim)
        if hold is not None and hold.unseen is not None:
            self._change(claim, lambda hold: replace(hold, unseen=None))

    def offer(self, promise: Promise) -> bool:
        """Remember what filter answered, in place of what it answered before; False where that is out of its hands.

        A promise that is being written stays, and so does a claim that another pod was promised.
        """
        before = self._promises.get(promise.pod)
        if before is not None and before.is_binding:
            return False
        if any(self._pod_of_claim.get(hold.claim, promise.pod) != promise.pod for hold in promise.claims):
            return False
        self._replace(promise.pod, promise if promise.claims else None)
        return True

    def reserve(self, promise: Promise) -> bool:
        """Remember that bind begins to write *promise*, in place of what was offered; False where it must not.

        A claim that is being written for anybody, this pod included, is not written a second time.
        """
        own = self._promises.get(promise.pod)
        others = (self._promises.get(self._pod_of_claim.get(hold.claim, promise.pod)) for hold in promise.claims)
        if any(other.is_binding for other in (own, *others) if other):
            return False
        for hold in promise.claims:
            if self._pod_of_claim.get(hold.claim) != promise.pod:
                self.tell_claim(hold.claim, Event.EXPIRED)
        reserved = tuple(replace(hold, phase=Phase.RESERVED) for hold in promise.claims)
        self._replace(promise.pod, replace(promise, claims=reserved) if reserved else None)
        return True

    def rebase(self, claim: Uid, version: int) -> None:
        """Remember that what is being written for *claim* is based on *version* of it."""
        self._change(claim, lambda hold: replace(hold, version=version))

    def tell(self, pod: Uid, event: Event, claim: Uid | None = None) -> Promise | None:
        """Tell of an *event* about one claim of *pod*, or about all; return what is left of the promise."""
        promise = self._promises.get(pod)
        if promise is None:
            return None
        left = tuple(
            after
            for hold in promise.claims
            if (after := _after(hold, event) if claim in (None, hold.claim) else hold) is not None
        )
        if left != promise.claims:
            self._replace(pod, replace(promise, claims=left) if left else None)
        return self._promises.get(pod)

    def tell_claim(self, claim: Uid, event: Event) -> None:
        """Tell of an *event* about *claim*, whichever pod it was promised to."""
        pod = self._pod_of_claim.get(claim)
        if pod is not None:
            self.tell(pod, event, claim)

    def overlay(self, snapshot: Snapshot, *, without: Uid | None = None) -> Snapshot:
        """Return *snapshot* with everything taken that was promised; the same object as long as nothing changes."""
        if without is None or without not in self._promises:
            return self._taken.over(snapshot)
        return self._taken.without(snapshot, self.offered(without))

    def is_left_to(self, pod: Uid, device: DeviceKey) -> bool:
        """Tell whether nothing of *device* was promised to anybody, but for what was merely offered to *pod*."""
        usage = self._taken.of(device)
        for hold in self.offered(pod):
            if hold.device == device:
                usage = subtract(usage, hold.usage)
        return not usage.is_held

    def offered(self, pod: Uid) -> tuple[Hold, ...]:
        """Return what *pod* was merely offered."""
        promise = self._promises.get(pod)
        return _devices(hold for hold in promise.claims if hold.phase not in BINDING) if promise else ()

    def _change(self, claim: Uid, change: Callable[[ClaimHold], ClaimHold]) -> None:
        """Change what is remembered of the hold on *claim*, and not what it takes."""
        pod = self._pod_of_claim.pop(claim, None)
        if pod is not None:
            promise = self._promises[pod]
            holds = tuple(change(hold) if hold.claim == claim else hold for hold in promise.claims)
            self._promises[pod] = replace(promise, claims=holds)
            self._pod_of_claim |= {hold.claim: pod for hold in holds}

    def _replace(self, pod: Uid, promise: Promise | None) -> None:
        before = self._promises.pop(pod, None)
        left, taken = _devices(before.claims if before else ()), _devices(promise.claims if promise else ())
        if left != taken:
            self._taken.change(left, taken)
        for hold in before.claims if before else ():
            del self._pod_of_claim[hold.claim]
        if promise is not None:
            self._promises[pod] = promise
            self._pod_of_claim |= dict.fromkeys((hold.claim for hold in promise.claims), pod)


def _devices(claims: Iterable[ClaimHold]) -> tuple[Hold, ...]:
    return tuple(device for claim in claims for device in claim.devices)


def _after(hold: ClaimHold, event: Event) -> ClaimHold | None:
    step = TRANSITIONS[hold.phase]
    if event not in step:
        return hold
    phase = step[event]
    return None if phase is None else replace(hold, phase=phase)
