"""Allocations by others of what is ours.

An allocation is foreign that appears while we lead, holds devices of ours, and that we did not write. In a pool from
which somebody else allocates, what looks free may be promised already, in memory that nobody shows us: nothing is
given from there until the foreign claim is gone, or somebody who may patch it says that it is to be borne. Where even
the owner taint was missing, that holds for all pools of the driver.
"""

from collections.abc import Callable
from typing import Final

from extender.model.claim import ResourceClaim
from extender.model.frozen import dataclass
from extender.model.names import DeviceKey, DriverName, PoolKey, Uid
from extender.state.domain import Domain
from extender.state.ledger import ClaimHold

# With the claim's uid as its value, on the claim: its devices are to be borne, and its pools are open.
BORNE: Final = "dra-extender.x-k8s.io/foreign-allocation-accepted"

# What is closed: a driver, or one pool of it. The keys of its slices begin so.
Part = tuple[DriverName] | PoolKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A claim that somebody else has allocated. *writers* are the field managers that did so, as far as is known.

    *untainted*: the drivers whose owner taint was missing then, and which are closed as a whole.
    """

    claim: ResourceClaim
    devices: tuple[DeviceKey, ...]
    untainted: frozenset[DriverName]

    @property
    def writers(self) -> tuple[str, ...]:
        return self.claim.writers

    @property
    def pools(self) -> frozenset[PoolKey]:
        return frozenset(device.pool_key for device in self.devices)

    @property
    def parts(self) -> frozenset[Part]:
        return self.pools | {(driver,) for driver in self.untainted}


def is_ours(claim: ResourceClaim, hold: ClaimHold | None, waits: Callable[[Uid], bool], domain: Domain) -> bool:
    """Tell whether we wrote the allocation of *claim*, be it long ago, or before a restart, or as another replica.

    Its field manager says so. Where the API server keeps none, it holds what we have promised it, or it is reserved for
    a pod of our schedulers that *waits* for a node.
    """
    if claim.writers:
        return domain.writer in claim.writers
    if hold is not None and hold.devices:
        return [item.device for item in hold.devices] == _held(claim)
    return any(waits(consumer.uid) for consumer in claim.reserved_for)


def is_borne(claim: ResourceClaim) -> bool:
    """Tell whether somebody says that the foreign allocation of *claim* is to be borne.

    The value is the claim's uid, so that nobody can say so before the claim exists, in a template least of all.
    """
    return (BORNE, claim.uid) in claim.annotations


def _held(claim: ResourceClaim) -> list[DeviceKey]:
    given = claim.allocation.devices if claim.allocation else ()
    return [item.device for item in given if not item.admin_access]
