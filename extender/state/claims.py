"""Claims by name, and which of them a pod asks for."""

from collections.abc import Collection, Iterator
from typing import Final

from extender.model.claim import ResourceClaim
from extender.model.frozen import dataclass
from extender.model.names import ObjectKey, Uid
from extender.model.node import Pod, PodClaim, PodClaimStatus

# A namespace, and who has claims there: the owner of a claim, and who uses it, is always in the claim's namespace.
Owner = tuple[str, Uid]
# Nearly every owner has one: a dictionary for each would be the larger part of what is kept. Thousands, as of an owner
# that is no pod, would be gone through for each that comes or changes, where they are no dictionary.
Keys = tuple[ObjectKey, ...] | dict[ObjectKey, None]
FEW: Final = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """The claims of a pod in the order of the pod: those without an allocation, and those that have one."""

    pending: tuple[ResourceClaim, ...]
    allocated: tuple[ResourceClaim, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """The pod cannot be placed before something happens; *message* says what."""

    message: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """The pod asks in a way that is not known here, and must not be placed as if it did not ask."""

    message: str


class Claims:
    """Every claim of the cluster, in the order in which they came, however often they changed. One writer."""

    def __init__(self) -> None:
        self._by_key: dict[ObjectKey, ResourceClaim] = {}
        self._by_uid: dict[Uid, ObjectKey] = {}
        self._by_owner: dict[Owner, Keys] = {}
        self._leaving: dict[Owner, Keys] = {}

    def __iter__(self) -> Iterator[ResourceClaim]:
        return iter(self._by_key.values())

    def get(self, key: ObjectKey) -> ResourceClaim | None:
        return self._by_key.get(key)

    def with_uid(self, uid: Uid) -> ResourceClaim | None:
        """Return the claim with *uid*; one of the same name that was made later is another."""
        key = self._by_uid.get(uid)
        return None if key is None else self._by_key[key]

    def owned_by(self, pod: Pod) -> Iterator[ResourceClaim]:
        """Yield the claims that were made for *pod*; of another namespace none was, though anybody may say so."""
        return (self._by_key[key] for key in tuple(self._by_owner.get((pod.key.namespace, pod.uid), ())))

    def kept_by(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        """Return the claims that are being deleted and stay for as long as they are reserved for *pod*."""
        return tuple(self._by_key[key] for key in self._leaving.get((pod.key.namespace, pod.uid), ()))

    def keepers(self) -> tuple[Uid, ...]:
        """Name the pods that keep a claim from being deleted."""
        return tuple(uid for _, uid in self._leaving)

    def put(self, claim: ResourceClaim) -> None:
        """Take *claim* over, in place of the one of its name."""
        before = self._by_key.get(claim.key)
        if before is not None and before.uid == claim.uid:
            self._unlink(before)
        else:
            self.drop(claim.key)
        self._by_key[claim.key] = claim
        self._by_uid[claim.uid] = claim.key
        for owner in _controllers(claim):
            _put_in(claim.key, self._by_owner, owner)
        for keeper in _keepers(claim):
            _put_in(claim.key, self._leaving, keeper)

    def drop(self, key: ObjectKey) -> None:
        """Forget a claim; one that is not known changes nothing."""
        claim = self._by_key.pop(key, None)
        if claim is not None:
            self._unlink(claim)

    def _unlink(self, claim: ResourceClaim) -> None:
        """Forget by what else than its name *claim* is found."""
        self._by_uid.pop(claim.uid, None)
        for owner in _controllers(claim):
            _take_out(claim.key, self._by_owner, owner)
        for keeper in _keepers(claim):
            _take_out(claim.key, self._leaving, keeper)

    def lack(self, pod: Pod) -> bool:
        """Tell whether *pod* names a claim that is not known."""
        return any(key not in self._by_key for key in named_by(pod))

    def asked_by(self, pod: Pod, freed: Collection[Uid] = ()) -> Asked | Waiting | Unclear:
        """Find the claims of *pod*, as they will be once those *freed* have no devices any more."""
        found: dict[Uid, ResourceClaim] = {}
        made = {status.name: status for status in pod.claim_statuses}
        for entry in pod.claims:
            claim = self._resolved(pod, entry, made.get(entry.name))
            if isinstance(claim, Waiting | Unclear):
                return claim
            if claim is not None:
                # Two entries may name one claim: it is allocated once.
                found[claim.uid] = claim
        has = {uid: claim.allocation is not None and uid not in freed for uid, claim in found.items()}
        return Asked(
            tuple(claim for uid, claim in found.items() if not has[uid]),
            tuple(claim for uid, claim in found.items() if has[uid]),
        )

    def given_to(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        """Return the claims of *pod* that have devices; none where it is not known which claims it has."""
        asked = self.asked_by(pod)
        return asked.allocated if isinstance(asked, Asked) else ()

    def _resolved(
        self, pod: Pod, entry: PodClaim, status: PodClaimStatus | None
    ) -> ResourceClaim | Waiting | Unclear | None:
        """Find the claim behind an entry, of which *status* tells; None where none was needed."""
        if entry.unknown_fields or bool(entry.claim_name) == bool(entry.template_name):
            return Unclear(f"resourceClaims[{entry.name}] names neither a claim nor a template alone")
        if entry.claim_name:
            return self._usable(ObjectKey(pod.key.namespace, entry.claim_name))
        if status is None:
            return Waiting(f"the claim of resourceClaims[{entry.name}] has not been created yet")
        if not status.claim_name:
            return None
        claim = self._usable(ObjectKey(pod.key.namespace, status.claim_name))
        if isinstance(claim, ResourceClaim) and (pod.key.namespace, pod.uid) not in _controllers(claim):
            return Waiting(f"claim {claim.key.name} was not made for this pod")
        return claim

    def _usable(self, key: ObjectKey) -> ResourceClaim | Waiting | Unclear:
        claim = self._by_key.get(key)
        if claim is None:
            return Waiting(f"there is no claim {key.name}")
        if claim.problem is not None:
            return Unclear(f"claim {key.name} cannot be read: {claim.problem.path}: {claim.problem.message}")
        return Waiting(f"claim {key.name} is being deleted") if claim.is_deleting else claim


def named_by(pod: Pod) -> Iterator[ObjectKey]:
    """Yield all claims that *pod* names, and its status for it; one may be named twice."""
    direct, made = (entry.claim_name for entry in pod.claims), (status.claim_name for status in pod.claim_statuses)
    return (ObjectKey(pod.key.namespace, name) for name in (*direct, *made) if name)


def _controllers(claim: ResourceClaim) -> frozenset[Owner]:
    return frozenset((claim.key.namespace, owner.uid) for owner in claim.owners)


def _keepers(claim: ResourceClaim) -> frozenset[Owner]:
    users = claim.reserved_for if claim.is_deleting else ()
    return frozenset((claim.key.namespace, consumer.uid) for consumer in users)


def _put_in(key: ObjectKey, index: dict[Owner, Keys], owner: Owner) -> None:
    keys = index.get(owner, ())
    if isinstance(keys, dict):
        keys[key] = None
    else:
        index[owner] = (*keys, key) if len(keys) < FEW else dict.fromkeys((*keys, key))


def _take_out(key: ObjectKey, index: dict[Owner, Keys], owner: Owner) -> None:
    keys = index[owner]
    if isinstance(keys, dict):
        del keys[key]
    else:
        keys = index[owner] = tuple(other for other in keys if other != key)
    if not keys:
        del index[owner]
