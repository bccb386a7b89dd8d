"""Choices that follow from a seed alone, and the names from which drawn clusters are made."""

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")
Json = dict[str, Any]

GPU, NIC = "gpu.example.com", "nic.example.com"
DRIVERS = (GPU, NIC)
ROOT = "topology.example.com/root"

GATES = (
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADerivedAttributes",
    "DRADeviceBindingConditions+DRAResourceClaimDeviceStatus",
    "DRADeviceCompatibilityGroups",
    "DRADeviceTaintRules",
    "DRADeviceTaints",
    "DRAFractionalCapacityRange",
    "DRAListTypeAttributes",
    "DRAOptionalNodeOperations",
    "DRAPartitionableDevices",
    "DRAPrioritizedList",
)


class Draw:
    """A source of choices."""

    def __init__(self, seed: object) -> None:
        self._random = Random(f"allocation {seed}")  # noqa: S311 - drawn for tests, not for secrets

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        return items[self._random.randrange(len(items))]

    def between(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def some(self, items: Sequence[T], probability: float) -> list[T]:
        return [item for item in items if self.chance(probability)]

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        return self._random.sample(list(items), min(count, len(items)))

    def shuffled(self, items: Sequence[T]) -> list[T]:
        return self.sample(items, len(items))
