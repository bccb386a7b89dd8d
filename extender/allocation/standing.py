"""What a slice means to its pool, whatever it is called: nodes whose slices stand alike can be answered alike."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from extender.model.device import CounterSet, ResourceSlice, Seal
from extender.model.frozen import dataclass
from extender.model.names import DriverName, PoolKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One slice in its pool. *age* counts how many generations of the pool are newer.

    *is_plain*: the pool is whole, its node's own, and has neither partitions nor anything out of the ordinary.
    *shared_pool* names the pool where its slices are not all local to one node; what a node has to itself needs none.
    *opens_pool* tells one pool of two slices from two pools of which each lacks one.
    """

    driver: DriverName
    shared_pool: PoolKey | None
    opens_pool: bool
    age: int
    slice_count: int
    devices: tuple[str, ...] | int
    shared_counters: tuple[CounterSet, ...]
    skip_node_operations: tuple[str, ...]
    unknown_fields: tuple[str, ...]
    seal: Seal | None
    has_groups: bool
    is_plain: bool


def standings(slices: Iterable[ResourceSlice]) -> list[Standing]:
    """Describe slices that are sorted by pool."""
    return [
        standing
        for _, pool in groupby(slices, key=lambda item: item.pool_key)
        for standing in _pool_standings(tuple(pool))
    ]


def _pool_standings(pool: Sequence[ResourceSlice]) -> list[Standing]:
    shared = None if _is_private(pool) else pool[0].pool_key
    generations = sorted({item.generation for item in pool}, reverse=True)
    repeats = _repeats_names(pool)
    plain = shared is None and not repeats and _is_plain(pool)
    return [
        Standing(
            driver=item.driver,
            shared_pool=shared,
            opens_pool=index == 0,
            age=generations.index(item.generation),
            slice_count=item.slice_count,
            devices=tuple(device.name for device in item.devices) if repeats else len(item.devices),
            shared_counters=item.shared_counters,
            skip_node_operations=item.skip_node_operations,
            unknown_fields=item.unknown_fields,
            seal=item.seal,
            has_groups=not plain and has_groups(item),
            is_plain=plain,
        )
        for index, item in enumerate(pool)
    ]


def has_groups(item: ResourceSlice) -> bool:
    """Tell whether a device of *item* goes only with others of its groups."""
    return any(
        consumption.compatibility_groups for device in item.devices for consumption in device.traits.consumes_counters
    )


def _is_private(pool: Sequence[ResourceSlice]) -> bool:
    """Tell whether all of *pool* is local to one and the same node."""
    selection = pool[0].selection
    return (
        selection is not None and selection.node_name is not None and all(item.selection == selection for item in pool)
    )


def _repeats_names(pool: Sequence[ResourceSlice]) -> bool:
    """Tell whether two devices have one name: only then do names decide what a pool is worth."""
    return len({device.name for item in pool for device in item.devices}) < sum(len(item.devices) for item in pool)


def _is_plain(pool: Sequence[ResourceSlice]) -> bool:
    """Tell whether every slice is there, of one generation, and only has devices that stand for themselves."""
    return all(
        item.slice_count == len(pool)
        and item.generation == pool[0].generation
        and not (item.shared_counters or item.skip_node_operations or item.unknown_fields or item.seal)
        and not any(device.traits.consumes_counters for device in item.devices)
        for item in pool
    )
