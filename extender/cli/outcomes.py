"""A selector's outcome on every device of some slices."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from extender.allocation.cel import Budget, DeviceValue, Outcome, Program, compile_selector, to_cel
from extender.model.device import Device, ResourceSlice
from extender.model.names import DeviceKey, DriverName

V = TypeVar("V")


def outcomes(text: str, slices: Iterable[ResourceSlice]) -> Iterator[tuple[DeviceKey, Outcome]]:
    """Compile *text* now, raising CompileError, and evaluate it while the result is read."""
    return _evaluations(compile_selector(text), slices)


def _evaluations(program: Program, slices: Iterable[ResourceSlice]) -> Iterator[tuple[DeviceKey, Outcome]]:
    budget = Budget()
    for published in slices:
        for device in published.devices:
            key = DeviceKey(published.driver, published.pool, device.name)
            yield key, program.evaluate(_value(device, published.driver), budget)


def _value(device: Device, driver: DriverName) -> DeviceValue:
    multiple = device.traits.allow_multiple_allocations
    try:
        attributes = {name: to_cel(attribute) for name, attribute in device.attributes}
    except ValueError as error:
        return DeviceValue(driver=driver, allow_multiple_allocations=multiple, fault=str(error))
    return DeviceValue(
        driver=driver,
        allow_multiple_allocations=multiple,
        attributes=_by_domain(attributes, driver),
        capacity=_by_domain({name: capacity.value for name, capacity in device.capacity}, driver),
    )


def _by_domain(values: Mapping[str, V], driver: DriverName) -> dict[str, dict[str, V]]:
    domains: dict[str, dict[str, V]] = {}
    for name, value in values.items():
        domain, slash, identifier = name.partition("/")
        inner = domains.setdefault(domain if slash else driver, {})
        inner[identifier if slash else name] = value
    return domains
