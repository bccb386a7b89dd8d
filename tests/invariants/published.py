"""Devices as their drivers publish them: the newest generation of each pool."""

from collections.abc import Iterable
from fractions import Fraction

from tests.invariants.reading import Device, Json, quantity, selects

Pool = tuple[str, str]
Counter = tuple[str, str, str, str]


class Published:
    """All devices, and the counters that those of a pool share."""

    def __init__(self, slices: Iterable[Json]) -> None:
        self.devices: dict[Device, Json] = {}
        self.counters: dict[Counter, Fraction] = {}
        self._specs: dict[Device, Json] = {}
        for spec in _newest([item["spec"] for item in slices]):
            self._add(spec)

    def _add(self, spec: Json) -> None:
        driver, pool = spec["driver"], spec["pool"]["name"]
        for each in spec.get("devices") or ():
            key = Device(driver, pool, each["name"])
            self.devices[key], self._specs[key] = each, spec
        for group in spec.get("sharedCounters") or ():
            for counter, value in group["counters"].items():
                self.counters[driver, pool, group["name"], counter] = quantity(value["value"])

    def is_on(self, device: Device, node: Json) -> bool:
        """Tell whether *device* can be used on *node*."""
        spec = self._specs.get(device)
        if spec is None:
            return False
        place = self.devices[device] if spec.get("perDeviceNodeSelection") else spec
        if place.get("allNodes"):
            return True
        if place.get("nodeSelector"):
            return selects(place["nodeSelector"], node)
        return bool(place.get("nodeName") == node["metadata"]["name"])

    def is_shared(self, device: Device) -> bool:
        return bool(self.devices.get(device, {}).get("allowMultipleAllocations"))

    def capacity(self, device: Device) -> dict[str, Fraction]:
        given = self.devices[device].get("capacity") or {}
        return {key: quantity(value["value"]) for key, value in given.items()}

    def drawn(self, device: Device) -> dict[Counter, Fraction]:
        """Return what *device*, once taken, takes from the counters of its pool."""
        return {
            (device.driver, device.pool, group["counterSet"], counter): quantity(value["value"])
            for group in self.devices.get(device, {}).get("consumesCounters") or ()
            for counter, value in group["counters"].items()
        }

    def attribute(self, device: Device, wish: str) -> tuple[str, object] | None:
        """Return type and value of an attribute by its full name; a bare name is of the driver's domain."""
        given = self.devices[device].get("attributes") or {}
        domain, _, short = wish.partition("/")
        found = given.get(wish) or (given.get(short) if domain == device.driver else None)
        return next(iter(found.items())) if found else None


def _newest(specs: list[Json]) -> list[Json]:
    newest: dict[Pool, int] = {}
    for spec in specs:
        newest[_pool(spec)] = max(newest.get(_pool(spec), 0), spec["pool"]["generation"])
    return [spec for spec in specs if spec["pool"]["generation"] == newest[_pool(spec)]]


def _pool(spec: Json) -> Pool:
    return spec["driver"], spec["pool"]["name"]
