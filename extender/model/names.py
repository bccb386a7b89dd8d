"""Identifiers. Distinct types, so that a pool's name cannot be passed where a node's is meant."""

from typing import NamedTuple, NewType

NodeName = NewType("NodeName", str)
DriverName = NewType("DriverName", str)
PoolName = NewType("PoolName", str)
DeviceName = NewType("DeviceName", str)
ClassName = NewType("ClassName", str)
Uid = NewType("Uid", str)


class PoolKey(NamedTuple):
    """What identifies a pool: two drivers may both name a pool after the node."""

    driver: DriverName
    pool: PoolName


class DeviceKey(NamedTuple):
    """What identifies a device; the slice that publishes it may change."""

    driver: DriverName
    pool: PoolName
    device: DeviceName

    @property
    def pool_key(self) -> PoolKey:
        return PoolKey(self.driver, self.pool)


class ObjectKey(NamedTuple):
    """Namespace and name; the namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
