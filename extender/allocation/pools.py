"""The pools that a node can see: which generation of each counts, whether it is whole, and whether it makes sense."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from extender.allocation.features import Features
from extender.allocation.inventory import Inventory
from extender.allocation.standing import has_groups
from extender.model.device import Device, NodeSelection, ResourceSlice
from extender.model.frozen import dataclass
from extender.model.names import PoolKey
from extender.model.node import Node
from extender.model.node_selector import matches, problem_of

# A counter of a pool: the name of its set, and its own.
CounterKey = tuple[str, str]


class Unreadable(ValueError):  # noqa: N818 - an answer to the pod: nobody can tell which nodes a selector means
    """A published node selector that cannot be evaluated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A pool as one node sees it. *here* are the slices with devices for the node, *elsewhere* those for others.

    An incomplete or an invalid pool offers nothing; *problem* says what is wrong with an invalid one, *pending* what
    there is already of an incomplete one, and *slices* how many of how many it has, for all nodes.
    """

    key: PoolKey
    is_incomplete: bool = False
    problem: str = ""
    here: tuple[ResourceSlice, ...] = ()
    pending: tuple[ResourceSlice, ...] = ()
    slices: tuple[int, int] = (0, 0)
    elsewhere: tuple[ResourceSlice, ...] = ()
    counters: tuple[tuple[CounterKey, int], ...] = ()

    @property
    def is_usable(self) -> bool:
        return not self.is_incomplete and not self.problem

    @property
    def needs_binding(self) -> bool:
        """Whether a device has to be prepared after its allocation; such pools come last."""
        return any(device.traits.binding_conditions for item in self.here for device in item.devices)


def pools_of(node: Node, slices: Sequence[ResourceSlice], features: Features) -> tuple[Pool, ...]:
    """Gather the pools that *node* can see out of all *slices*, in the order of the search."""
    newest: dict[PoolKey, list[ResourceSlice]] = {}
    for item in _candidates(node, _readable(slices, features)):
        if _is_understood(item, features) and _is_relevant(node, item):
            _keep_newest(newest.setdefault(item.pool_key, []), item)
    everywhere = _by_pool(slices)
    found = [_pool(key, here, everywhere[key], features) for key, here in newest.items()]
    return tuple(sorted((pool for pool in found if pool), key=lambda pool: (pool.needs_binding, pool.key)))


def incomplete(inventory: Inventory, features: Features) -> frozenset[PoolKey]:
    """Return the pools of whose newest generation there are not as many slices as these say."""
    standing = inventory.standing
    pools = np.cumsum(standing.table(lambda item: item.opens_pool)[standing.codes])
    is_newest = standing.table(lambda item: item.age)[standing.codes] == 0
    is_grouped = standing.table(lambda item: item.has_groups)[standing.codes] != 0
    counts = is_newest if features.device_compatibility_groups else is_newest & ~is_grouped
    there = np.bincount(pools[counts], minlength=len(pools) + 1)
    is_short = is_newest & (standing.table(lambda item: item.slice_count)[standing.codes] != there[pools])
    return frozenset(inventory.slices[index].pool_key for index in np.flatnonzero(is_short).tolist())


def _readable(slices: Sequence[ResourceSlice], features: Features) -> Sequence[ResourceSlice]:
    """Leave out the slices with compatibility groups where these are not understood: their pools are incomplete."""
    return slices if features.device_compatibility_groups else [item for item in slices if not has_groups(item)]


def _is_understood(item: ResourceSlice, features: Features) -> bool:
    """Tell whether devices may be taken out of *item*; it counts for its pool in any case."""
    return features.partitionable_devices or (item.selection is not None and not item.shared_counters)


def _candidates(node: Node, slices: Iterable[ResourceSlice]) -> Iterator[ResourceSlice]:
    """Yield the slices local to *node*, then those of no single node."""
    pending = []
    for item in slices:
        home = item.selection.node_name if item.selection else None
        if home is None:
            pending.append(item)
        elif home == node.name:
            yield item
    yield from pending


def _is_relevant(node: Node, item: ResourceSlice) -> bool:
    if item.selection is not None:
        return reaches(item.selection, node)
    return any(device.traits.selection and reaches(device.traits.selection, node) for device in item.devices)


def reaches(selection: NodeSelection, node: Node, *, is_sound: bool = False) -> bool:
    """Tell whether devices with *selection* can be reached from *node*; *is_sound*: its selector was checked before."""
    if selection.node_name is not None:
        return selection.node_name == node.name
    if selection.all_nodes or selection.selector is None:
        return selection.all_nodes
    problem = None if is_sound else problem_of(selection.selector)
    if problem:
        raise Unreadable(f"nodeSelector: {problem}")
    return matches(selection.selector, node.name, dict(node.labels))


def _by_pool(slices: Iterable[ResourceSlice]) -> dict[PoolKey, list[ResourceSlice]]:
    found: dict[PoolKey, list[ResourceSlice]] = {}
    for item in slices:
        found.setdefault(item.pool_key, []).append(item)
    return found


def _keep_newest(kept: list[ResourceSlice], item: ResourceSlice) -> None:
    if kept and item.generation > kept[0].generation:
        kept.clear()
    if not kept or item.generation == kept[0].generation:
        kept.append(item)


def _pool(
    key: PoolKey, here: Sequence[ResourceSlice], slices: Sequence[ResourceSlice], features: Features
) -> Pool | None:
    """Judge a pool by what the node sees of it; None where a newer generation is about to replace it.

    *slices* are all of the pool, of any generation and node.
    """
    wanted, everywhere = here[0].slice_count, here
    if len(here) != wanted:
        # Slices for other nodes count too; newer ones even where it is not understood what they say.
        if any(item.generation > here[0].generation for item in slices):
            return None
        same = [item for item in slices if item.generation == here[0].generation]
        everywhere = _readable(same, features)
    if len(everywhere) != wanted:
        return Pool(key=key, is_incomplete=True, pending=tuple(here), slices=(len(everywhere), wanted))
    seen = {id(item) for item in here}
    return _judged(
        key,
        sorted(here, key=lambda item: item.name),
        [item for item in everywhere if id(item) not in seen],
        features,
    )


def _judged(
    key: PoolKey, here: Sequence[ResourceSlice], elsewhere: Sequence[ResourceSlice], features: Features
) -> Pool:
    # Kubernetes 1.34 has devices beside their counters; later ones let no such slice in, and pass its devices over.
    offered = tuple(item for item in here if item.devices)
    problem = _repeated_name(device.name for item in offered for device in item.devices)
    if problem:
        return Pool(key=key, problem=f"two devices are named {problem}")
    if not features.partitionable_devices:
        return Pool(key=key, here=offered)
    sets = [counters for item in chain(here, elsewhere) for counters in item.shared_counters]
    problem = _repeated_name(counters.name for counters in sets)
    if problem:
        return Pool(key=key, problem=f"two counter sets are named {problem}")
    declared = {
        (counters.name, counter.name): counter.value.nanos for counters in sets for counter in counters.counters
    }
    names = {counters.name for counters in sets}
    devices = (device for item in chain(here, elsewhere) for device in item.devices)
    problem = next((found for device in devices if (found := _undeclared(device, names, declared))), "")
    if problem:
        return Pool(key=key, problem=problem)
    return Pool(key=key, here=offered, elsewhere=tuple(elsewhere), counters=tuple(declared.items()))


def _repeated_name(names: Iterable[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return ""


def _undeclared(device: Device, names: set[str], declared: dict[CounterKey, int]) -> str:
    for consumption in device.traits.consumes_counters:
        if consumption.counter_set not in names:
            return f"device {device.name} consumes from counter set {consumption.counter_set}, which the pool lacks"
        for counter in consumption.counters:
            if (consumption.counter_set, counter.name) not in declared:
                place = f"{consumption.counter_set}/{counter.name}"
                return f"device {device.name} consumes counter {place}, which the pool lacks"
    return ""
