"""Nouns that say the same in the same words. Equality speaks of amounts alone: 1Gi equals 1073741824."""

from extender.model.device import Capacity, CounterConsumption, CounterSet, Device, RequestPolicy, ResourceSlice
from extender.model.node import Node
from extender.model.quantity import Quantity


def is_spelled_alike(left: ResourceSlice, right: ResourceSlice) -> bool:
    """Tell whether two slices that are equal spell all of their amounts alike."""
    return all(map(_device_is_spelled_alike, left.devices, right.devices)) and all(
        map(_counters_are_spelled_alike, left.shared_counters, right.shared_counters)
    )


def node_is_spelled_alike(left: Node, right: Node) -> bool:
    """Tell whether two nodes that are equal spell all of their amounts alike."""
    return all(_are_alike(one, other) for (_, one), (_, other) in zip(left.allocatable, right.allocatable, strict=True))


def _device_is_spelled_alike(left: Device, right: Device) -> bool:
    capacities = zip(left.capacity, right.capacity, strict=True)
    if not all(_capacity_is_spelled_alike(one, other) for (_, one), (_, other) in capacities):
        return False
    return left.traits is right.traits or all(
        map(_counters_are_spelled_alike, left.traits.consumes_counters, right.traits.consumes_counters)
    )


def _counters_are_spelled_alike(left: CounterSet | CounterConsumption, right: CounterSet | CounterConsumption) -> bool:
    return all(_are_alike(one.value, other.value) for one, other in zip(left.counters, right.counters, strict=True))


def _capacity_is_spelled_alike(left: Capacity, right: Capacity) -> bool:
    if not _are_alike(left.value, right.value):
        return False
    if left.policy is right.policy or left.policy is None or right.policy is None:
        return True
    return all(map(_are_alike, _amounts(left.policy), _amounts(right.policy)))


def _amounts(policy: RequestPolicy) -> tuple[Quantity | None, ...]:
    limits = policy.valid_range
    ranged = (limits.minimum, limits.maximum, limits.step) if limits else ()
    return (policy.default, *policy.valid_values, *ranged)


def _are_alike(left: Quantity | None, right: Quantity | None) -> bool:
    return left is right or (left is not None and right is not None and left.spelling == right.spelling)
