"""A device as selectors see it."""

from collections.abc import Sequence
from typing import TypeVar

from extender.allocation.cel import DeviceValue, to_cel
from extender.model.device import Device
from extender.model.names import DriverName, split_qualified

V = TypeVar("V")


def sight_of(device: Device, driver: DriverName) -> DeviceValue:
    """Return the variable ``device``: attributes and capacities by domain; those without one are in the driver's."""
    shareable = device.traits.allow_multiple_allocations
    try:
        attributes = [(name, to_cel(attribute)) for name, attribute in device.attributes]
    except ValueError as error:
        return DeviceValue(driver=driver, allow_multiple_allocations=shareable, fault=str(error))
    return DeviceValue(
        driver=driver,
        allow_multiple_allocations=shareable,
        attributes=_by_domain(attributes, driver),
        capacity=_by_domain([(name, capacity.value) for name, capacity in device.capacity], driver),
    )


def is_qualified(entry: tuple[str, object]) -> bool:
    """Tell whether an entry's name has a domain. One that has wins over one that has not: it goes last."""
    return "/" in entry[0]


def _by_domain(entries: Sequence[tuple[str, V]], driver: DriverName) -> dict[str, dict[str, V]]:
    domains: dict[str, dict[str, V]] = {}
    for name, value in sorted(entries, key=is_qualified):
        domain, identifier = split_qualified(name, driver)
        domains.setdefault(domain, {})[identifier] = value
    return domains
