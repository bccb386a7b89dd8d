"""What does not go together: the ledger, the snapshot, claims and pods, compared. What lasts is a finding.

Each of these is to be seen for a moment where one watch is ahead of another, and is wrong only where it stays.
"""

from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import field
from enum import StrEnum
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np

from extender.allocation.snapshot import Snapshot
from extender.allocation.usage import holds_of
from extender.model.claim import Consumer, ResourceClaim
from extender.model.frozen import dataclass
from extender.model.names import DeviceKey, ObjectKey, PoolKey, Uid
from extender.state.belief import Belief
from extender.state.ledger import ClaimHold, Promise

NOBODY: Final = Uid("")
LEFT: Final = "its devices are reserved for pods that are gone"
# How long devices may be left to a pod that is gone before something is done about it.
LEAK_S: Final = 15.0
# Claims that are looked at in one go.
PIECE: Final = 64
NOBODY_YET: Final = -1


class Kind(StrEnum):
    """What is wrong. People count by these words: they stay as they are."""

    GHOST = "ghost"  # something is held for what is gone, or looks taken and is nobody's
    DOUBLE = "double"  # a device is in two claims or does not suffice for them, or looks free and is somebody's
    LEAK = "leak"  # a claim has devices, and no pod has a use for them
    BARE = "bare"  # a pod is bound, and a claim of its has no devices for it


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong, with the claim and the pod as far as they are known."""

    kind: Kind
    detail: str
    claim: ObjectKey | None = None
    pod: ObjectKey | None = None
    uid: Uid = NOBODY


class Audit(NamedTuple):
    """What is wrong: all of it, and what was not told before; and the leaks that have lasted for long enough to act."""

    lasting: frozenset[Finding]
    fresh: frozenset[Finding]
    leaks: frozenset[Finding] = frozenset()


@dataclass(slots=True)
class Auditor:
    """Compares, again and again. patience_s: how long something may look wrong before it is told."""

    belief: Belief
    patience_s: float = 60.0
    _since: dict[Finding, float] = field(default_factory=dict)
    _told: frozenset[Finding] = frozenset()

    def audit(self, clock: Callable[[], float], bound_at: float = inf) -> Generator[None, None, Audit]:
        """Return all findings that have lasted, and those among them that were not returned before.

        Which pods are bound was last known at *bound_at*: who looks gone since may be bound. What is found is as of the
        end: whoever audits rests between two pieces, and what looks wrong in the last one may be so since a moment ago.
        Yields now and then: there are claims by the ten thousand, and others want to run meanwhile.
        """
        seen: list[Finding] = []
        for found in _compared(self.belief):
            if found is None:
                yield
            else:
                seen.append(found)
        now = clock()
        self._since = {found: self._since.get(found, now) for found in seen}
        sure = {found: at for found, at in self._since.items() if at <= bound_at or not _is_of_bound_pods(found)}
        lasting = frozenset(found for found, since in sure.items() if now - since >= self.patience_s)
        fresh, self._told = lasting - self._told, lasting
        leaks = {each for each, since in sure.items() if each.detail == LEFT and now - since >= LEAK_S}
        return Audit(lasting, fresh, frozenset(leaks))

    def forget(self) -> None:
        """Begin anew: what was seen so far has lasted for no time, and was not told."""
        self._since, self._told = {}, frozenset()


def _is_of_bound_pods(found: Finding) -> bool:
    """Tell whether *found* says which pods are bound, or that one is not."""
    return found.detail == LEFT or found.kind is Kind.BARE


def findings(belief: Belief) -> Iterator[Finding]:
    """Compare everything once; yield what looks wrong now."""
    return (found for found in _compared(belief) if found is not None)


def _compared(belief: Belief) -> Iterator[Finding | None]:
    """Compare everything once; None after each piece of the work."""
    claims = tuple(belief.cluster.claims)
    yield from _ghosts(belief)
    yield from _by_device(belief.cluster.snapshot, claims)
    yield from _overdrafts(belief)
    yield from _leaks(belief, claims)
    yield from _bare(belief)


def _ghosts(belief: Belief) -> Iterator[Finding]:
    for promise in belief.ledger:
        pod = belief.pods.with_uid(promise.pod)
        for hold in promise.claims:
            claim = belief.cluster.claims.with_uid(hold.claim)
            is_gone = claim is None and hold.is_of_shown_claim
            if pod is None or is_gone:
                gone = "the pod" if pod is None else "the claim"
                yield Finding(
                    kind=Kind.GHOST,
                    detail=f"{_told(hold, promise)}, and {gone} is gone",
                    claim=claim.key if claim else hold.unseen,
                    pod=pod.key if pod else None,
                    uid=promise.pod,
                )


def _told(hold: ClaimHold, promise: Promise) -> str:
    return f"{len(hold.devices)} devices on {promise.node} are held, {hold.phase.name.lower()}"


def _by_device(snapshot: Snapshot, claims: Sequence[ResourceClaim]) -> Iterator[Finding | None]:
    """Compare what claims hold with one another, and with what the snapshot of the same moment shows as taken."""
    taken = np.not_equal(snapshot.usage.codes, 0).tobytes()
    ghosts, holders = bytearray(taken), _Holders(len(taken))
    for number, claim in enumerate(claims):
        for hold in holds_of(claim.allocation) if claim.allocation else ():
            is_whole, rows = hold.usage.dedicated > 0, snapshot.inventory.rows_of(hold.device)
            first, was_whole = holders.first(hold.device, rows, number, is_whole=is_whole)
            if first != number and (is_whole or was_whole):
                yield _of_claim(Kind.DOUBLE, f"{'/'.join(hold.device)} is also in claim {claims[first].key}", claim)
            if not all(taken[row] for row in rows):
                yield _of_claim(Kind.DOUBLE, f"{'/'.join(hold.device)} is taken for free", claim)
            for row in rows:
                ghosts[row] = False
        if number % PIECE == 0:
            yield None
    for row in np.frombuffer(ghosts, np.bool_).nonzero()[0].tolist():
        yield Finding(kind=Kind.GHOST, detail=f"{'/'.join(snapshot.inventory.key(row))} is in no claim, and not free")


class _Holders:
    """Which claim, by number, has each device first, and whether as a whole.

    By rows, where there are any: what lies about for seconds, of forty thousand devices, is to be small.
    """

    def __init__(self, rows: int) -> None:
        self._first, self._is_whole = array("i", [NOBODY_YET]) * rows, bytearray(rows)
        self._unpublished: dict[DeviceKey, tuple[int, bool]] = {}

    def first(self, device: DeviceKey, rows: Sequence[int], number: int, *, is_whole: bool) -> tuple[int, bool]:
        """Return who has *device* first: claim *number*, unless another had it before."""
        if not rows:
            return self._unpublished.setdefault(device, (number, is_whole))
        row = rows[0]
        if self._first[row] == NOBODY_YET:
            self._first[row], self._is_whole[row] = number, is_whole
        return self._first[row], bool(self._is_whole[row])


def _overdrafts(belief: Belief) -> Iterator[Finding | None]:
    """Compare what is shared, and what partitions draw from, with what all claims together hold of it."""
    holders = (held for pool in _limited(belief.cluster.snapshot) for held in belief.overdrafts(pool))
    for number, (key, device) in enumerate(holders):
        claim = belief.cluster.claims.get(key)
        if device is not None and claim is not None:
            yield _of_claim(Kind.DOUBLE, f"{'/'.join(device)} does not suffice for it and earlier claims", claim)
        if number % PIECE == 0:
            yield None


def _limited(snapshot: Snapshot) -> Iterator[PoolKey]:
    """Yield the pools of which shares or partitions are taken: others need not be gone through."""
    usage, traits = snapshot.usage, snapshot.inventory.traits
    shares = usage.table(lambda held: held.shares)[usage.codes]
    draws = traits.table(lambda item: len(item.consumes_counters))[traits.codes]
    rows = np.flatnonzero((shares > 0) | ((draws > 0) & (usage.codes > 0)))
    slices = np.unique(np.searchsorted(snapshot.inventory.starts, rows, "right") - 1)
    # The slices of a pool follow one another.
    places = (snapshot.inventory.keys[index] for index in slices.tolist())
    return (PoolKey(*pool) for pool, _ in groupby(places, itemgetter(0, 1)))


def _leaks(belief: Belief, claims: Sequence[ResourceClaim]) -> Iterator[Finding | None]:
    wanted = set[Uid]()
    for number, pod in enumerate(tuple(belief.pods)):
        wanted |= {claim.uid for claim in belief.cluster.claims.given_to(pod)}
        if number % PIECE == 0:
            yield None
    for number, claim in enumerate(claims):
        if claim.allocation is not None and claim.uid not in wanted and (detail := _unused(claim, belief)):
            yield _of_claim(Kind.LEAK, detail, claim)
        if number % PIECE == 0:
            yield None


def _unused(claim: ResourceClaim, belief: Belief) -> str:
    """Say why *claim*, which no waiting pod of ours asks for, is of use to nobody; nothing where it may be."""
    if not claim.reserved_for:
        return "" if _is_of_others(claim, belief) else "its devices are reserved for nobody"
    return "" if any(_is_there(user, claim, belief) for user in claim.reserved_for) else LEFT


def _is_of_others(claim: ResourceClaim, belief: Belief) -> bool:
    """Tell whether somebody else has allocated *claim*: a pod of theirs may ask for it, and it is not known which."""
    return bool(claim.writers) and belief.ownership.domain.writer not in claim.writers


def _is_there(user: Consumer, claim: ResourceClaim, belief: Belief) -> bool:
    """Tell whether the pod that *claim* is reserved for is there, as far as anybody here knows."""
    key = ObjectKey(claim.key.namespace, user.name)
    is_elsewhere = user.resource != "pods" or not belief.loads.is_known or belief.unread.has(key)
    return is_elsewhere or belief.pods.waits(key, user.uid) or belief.loads.has(key, user.uid)


def leavers(belief: Belief) -> Iterator[tuple[Uid, ResourceClaim]]:
    """Yield the pods that are gone, as far as anybody here knows, and the claims with devices reserved for them yet."""
    bound = belief.loads.bound
    for claim in belief.cluster.claims:
        # Of tens of thousands hardly any is not that of a bound pod: a preemption waits while all are looked at.
        for user in claim.reserved_for if claim.allocation else ():
            if user.uid not in bound and not _is_there(user, claim, belief):
                yield user.uid, claim


def _bare(belief: Belief) -> Iterator[Finding | None]:
    """Look whether bound pods of ours have what they were bound with: somebody may have emptied their claims."""
    unread = {found.key for found in belief.cluster.problems if found.kind == ResourceClaim.__name__}
    for number, pod in enumerate(tuple(belief.loads) if belief.knows_claims else ()):
        for name in pod.claims.split() if belief.pods.has_scheduler(pod.scheduler) else ():
            key = ObjectKey(pod.key.namespace, name)
            detail = "" if key in unread else _lacking(belief.cluster.claims.get(key), pod.uid)
            if detail:
                yield Finding(kind=Kind.BARE, detail=detail, claim=key, pod=pod.key, uid=pod.uid)
        if number % PIECE == 0:
            yield None


def _lacking(claim: ResourceClaim | None, pod: Uid) -> str:
    """Say what *claim* lacks that a bound pod names; nothing where it is reserved for it, or for a group of pods."""
    if claim is None:
        return "there is no such claim, and the pod is bound with it"
    if claim.allocation is None:
        return "it has no devices, and the pod is bound with it"
    is_had = any(user.uid == pod or user.resource != "pods" for user in claim.reserved_for)
    return "" if is_had else "it is not reserved for the pod, which is bound with it"


def _of_claim(kind: Kind, detail: str, claim: ResourceClaim) -> Finding:
    user = next((item for item in claim.reserved_for if item.resource == "pods"), None)
    pod = ObjectKey(claim.key.namespace, user.name) if user else None
    return Finding(kind=kind, detail=detail, claim=claim.key, pod=pod, uid=user.uid if user else NOBODY)
