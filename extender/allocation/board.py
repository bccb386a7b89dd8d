"""One node's devices in the order of the search, each with its taints."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final

from extender.allocation.features import Features
from extender.allocation.pools import Pool, pools_of
from extender.allocation.tainting import Tainting
from extender.model.device import PLAIN, Device, NodeSelection, ResourceSlice
from extender.model.frozen import dataclass
from extender.model.names import DeviceKey
from extender.model.node import Node
from extender.model.taint import Taint, evicts

NOWHERE: Final = NodeSelection()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A device that the node can see; *pool* is an index. Solutions name it by its place among the candidates."""

    key: DeviceKey
    device: Device
    published: ResourceSlice
    pool: int
    taints: tuple[Taint, ...]

    @property
    def selection(self) -> NodeSelection:
        """From which nodes it can be reached."""
        return self.published.selection or self.device.traits.selection or NOWHERE

    @property
    def is_plain(self) -> bool:
        """Whether nothing about it may keep it from who asks for what it is."""
        published = self.published
        is_odd = published.skip_node_operations or published.unknown_fields or published.seal or self.taints
        return self.device.traits is PLAIN and published.selection is not None and not is_odd

    @property
    def is_whole(self) -> bool:
        """Whether its capacities say nothing about giving it: it is large enough for itself."""
        if self.device.traits.allow_multiple_allocations:
            return False
        # A generator takes twice the time.
        for _, capacity in self.device.capacity:
            if capacity.policy is not None or capacity.value.nanos < 0:
                return False
        return True


@dataclass(frozen=True, slots=True)
class Board:
    """A node, the pools that it sees, and the devices of those that are usable.

    shareable, unready, evicting, several: a bit for each candidate, of those that many can have, those that are made
    ready for a pod, those with taints for which pods are evicted, and those that nodes of several terms can reach,
    which no allocation can say. plain, whole: of those that *is_plain* and *is_whole* say so of: each search asks.
    pending: devices of pools that are incomplete, which have the places after those of the candidates.
    """

    node: Node
    pools: tuple[Pool, ...]
    candidates: tuple[Candidate, ...]
    shareable: int
    pending: tuple[Candidate, ...]
    unready: int
    evicting: int
    several: int
    plain: int
    whole: int


# The candidates of slices that several nodes may see, by the slice's identity and the index of its pool.
Shared = dict[tuple[int, int], tuple[Candidate, ...]]


def board_of(
    node: Node, slices: Sequence[ResourceSlice], tainting: Tainting, features: Features, shared: Shared | None = None
) -> Board:
    """Lay out what *node* sees of *slices*; raise Unreadable for a node selector that cannot be evaluated.

    *shared*: what other boards of the same taints and features have, and what this one adds.
    """
    pools = pools_of(node, slices, features)
    honours_rules = features.device_taints and features.device_taint_rules
    applied = tainting if honours_rules and tainting.rules else None
    known: Shared = {} if shared is None else shared
    here = (_candidates(item, index, applied, known) for index, pool in enumerate(pools) for item in pool.here)
    updating = (_candidates(item, index, applied, known) for index, pool in enumerate(pools) for item in pool.pending)
    candidates, pending = tuple(chain.from_iterable(here)), tuple(chain.from_iterable(updating))

    def those(has: Callable[[Candidate], object]) -> int:
        # Mostly all of them have it, and to add up a mask for each takes time by the square of how many there are.
        return int("".join(["1" if has(candidate) else "0" for candidate in reversed(candidates)]) or "0", 2)

    return Board(
        node=node,
        pools=pools,
        candidates=candidates,
        shareable=those(lambda each: each.device.traits.allow_multiple_allocations),
        pending=pending,
        unready=those(lambda each: each.device.traits.binding_conditions),
        evicting=those(lambda each: each.taints and features.device_taints and evicts(each.taints, ())),
        several=those(lambda each: len(each.selection.terms) > 1),
        plain=those(lambda each: each.is_plain),
        whole=those(lambda each: each.is_whole),
    )


def is_local(item: ResourceSlice) -> bool:
    """Tell whether no other node sees the slice."""
    return item.selection is not None and item.selection.node_name is not None


def _candidates(item: ResourceSlice, pool: int, tainting: Tainting | None, shared: Shared) -> tuple[Candidate, ...]:
    # A candidate keeps its slice, so that the identity stays that slice's; of one without devices nothing is kept.
    made = None if is_local(item) else shared.get((id(item), pool))
    if made is None:
        near = tainting.about(item.pool_key) if tainting else None
        made = tuple(_candidate(item, device, pool, near) for device in item.devices)
        if made and not is_local(item):
            shared[id(item), pool] = made
    return made


def _candidate(item: ResourceSlice, device: Device, pool: int, tainting: Tainting | None) -> Candidate:
    key = DeviceKey(item.driver, item.pool, device.name)
    added = tainting.taints(key, device) if tainting else ()
    return Candidate(key, device, item, pool, device.traits.taints + added)
