"""One node's devices in the order of the search, each with its taints."""

from collections.abc import Sequence
from dataclasses import dataclass

from extender.allocation.features import Features
from extender.allocation.pools import Pool, pools_of
from extender.allocation.tainting import Tainting
from extender.model.device import Device, ResourceSlice
from extender.model.names import DeviceKey
from extender.model.node import Node
from extender.model.taint import Taint


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device that the node can see; *pool* is an index. Solutions name it by its place among the candidates."""

    key: DeviceKey
    device: Device
    published: ResourceSlice
    pool: int
    taints: tuple[Taint, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """A node, the pools that it sees, and the devices of those that are usable. shareable: a bit for each candidate."""

    node: Node
    pools: tuple[Pool, ...]
    candidates: tuple[Candidate, ...]
    shareable: int


def board_of(node: Node, slices: Sequence[ResourceSlice], tainting: Tainting, features: Features) -> Board:
    """Lay out what *node* sees of *slices*; raise Unreadable for a node selector that cannot be evaluated."""
    pools = pools_of(node, slices, features)
    honours_rules = features.device_taints and features.device_taint_rules
    applied = tainting if honours_rules and tainting.rules else None
    candidates = tuple(
        _candidate(item, device, index, applied)
        for index, pool in enumerate(pools)
        for item in pool.here
        for device in item.devices
    )
    shareable = sum(
        1 << place for place, item in enumerate(candidates) if item.device.traits.allow_multiple_allocations
    )
    return Board(node, pools, candidates, shareable)


def _candidate(item: ResourceSlice, device: Device, pool: int, tainting: Tainting | None) -> Candidate:
    key = DeviceKey(item.driver, item.pool, device.name)
    added = tainting.taints(key, device) if tainting else ()
    return Candidate(key, device, item, pool, device.traits.taints + added)
