"""The status of a claim: what it was given, who may use it, and what drivers say of it."""

from collections.abc import Iterator
from typing import Final

from extender.model.claim import AllocatedDevice, Allocation, Consumer, DeviceCondition, DeviceConfig
from extender.model.names import DeviceKey, DeviceName, DriverName, PoolName, Uid
from extender.model.parse.alike import alike
from extender.model.parse.fields import Fields, Malformed, shared_name, shared_place, shared_soon
from extender.model.parse.opaque import flaw_in
from extender.model.parse.selection import selector_of, toleration_of

USUAL: Final = frozenset(("request", "driver", "pool", "device"))
CONSUMERS: Final = "reservedFor"
CONSUMER: Final = frozenset(("apiGroup", "resource", "name", "uid"))
# Who is not known, and none of those that are: what it uses is freed for nobody.
SOMEBODY: Final = Consumer(resource="", name="", uid=Uid(""))


def allocation_of(fields: Fields) -> Allocation:
    """Read an allocation, which is shown again with whatever else happens to its claim."""
    return _allocations(fields, "")


def devices_of(fields: Fields) -> Allocation:
    """Read of an allocation at least which devices it is of, each as a whole; raise Malformed where nobody can say."""
    try:
        return allocation_of(fields)
    except Malformed:
        results = fields.child("devices").objects("results")
        return Allocation(devices=tuple(_taken(entry) for entry in results))


def _taken(fields: Fields) -> AllocatedDevice:
    return AllocatedDevice(request="", device=_device(fields), admin_access=fields.raw.get("adminAccess") is True)


def _allocation_of(fields: Fields, _version: str) -> Allocation:
    devices = fields.child("devices")
    return Allocation(
        devices=tuple(_result(entry) for entry in devices.objects("results")),
        config=tuple(config_of(entry) for entry in devices.objects("config")),
        node_selector=selector_of(fields.child("nodeSelector")) if fields.has("nodeSelector") else None,
        timestamp=fields.text("allocationTimestamp") or None,
    )


_allocations: Final = alike(_allocation_of, 512)


def _result(fields: Fields) -> AllocatedDevice:
    if fields.raw.keys() <= USUAL:
        return AllocatedDevice(request=shared_name(fields.text("request")), device=_device(fields))
    return AllocatedDevice(
        request=shared_name(fields.text("request")),
        device=_device(fields),
        admin_access=fields.flag("adminAccess"),
        tolerations=tuple(toleration_of(entry) for entry in fields.objects("tolerations")),
        binding_conditions=fields.texts("bindingConditions"),
        binding_failure_conditions=fields.texts("bindingFailureConditions"),
        share_id=fields.text("shareID") or None,
        consumed_capacity=fields.quantities("consumedCapacity"),
        skip_node_operations=fields.texts("skipNodeOperations"),
    )


def _device(fields: Fields) -> DeviceKey:
    return DeviceKey(
        DriverName(shared_name(fields.required("driver"))),
        PoolName(shared_place(fields.required("pool"))),
        DeviceName(shared_name(fields.required("device"))),
    )


def config_of(fields: Fields) -> DeviceConfig:
    """Read configuration for a driver."""
    opaque = fields.child("opaque").raw if fields.has("opaque") else None
    flaw = flaw_in(opaque)
    return DeviceConfig(
        requests=fields.texts("requests"), opaque=None if flaw else opaque, source=fields.text("source"), flaw=flaw
    )


def consumers_of(status: Fields) -> tuple[Consumer, ...]:
    """Read who may use a claim."""
    return _consumers(status, "") if status.has(CONSUMERS) else ()


def users_of(status: Fields) -> tuple[Consumer, ...]:
    """Read who may use a claim; where that makes no sense, say that somebody does."""
    try:
        return consumers_of(status)
    except Malformed:
        return (SOMEBODY,)


def _consumer_of(fields: Fields) -> Consumer:
    return Consumer(
        resource=shared_soon(fields.text("resource")),
        name=shared_soon(fields.text("name")),
        uid=Uid(shared_soon(fields.text("uid"))),
        api_group=fields.text("apiGroup"),
        more=tuple((name, fields.raw[name]) for name in fields.unknown(CONSUMER)),
    )


_consumers: Final = alike(
    lambda status, _version: tuple(_consumer_of(entry) for entry in status.objects(CONSUMERS)),
    512,
    lambda status: status.raw[CONSUMERS],
)


def conditions_of(fields: Fields) -> Iterator[DeviceCondition]:
    """Yield the conditions that a driver reports on one device."""
    for entry in fields.objects("conditions"):
        yield DeviceCondition(
            device=_device(fields),
            share_id=fields.text("shareID") or None,
            type=entry.text("type"),
            status=entry.text("status"),
        )
