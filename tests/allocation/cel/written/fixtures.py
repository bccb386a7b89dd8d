"""Devices that the written cases are asked about, as slices publish them."""

from typing import Any

from extender.allocation.cel import DeviceValue
from extender.allocation.sight import sight_of
from extender.model.device import ResourceSlice
from extender.model.names import DriverName
from extender.model.parse import parse_slice

DRIVER = "dra.example.com"
DEVICES: dict[str, dict[str, Any]] = {
    "bare": {},
    "gpu": {
        "attributes": {
            "model": {"string": "A100"},
            "index": {"int": 3},
            "negative": {"int": -9223372036854775808},
            "mig": {"bool": True},
            "off": {"bool": False},
            "empty": {"string": ""},
            "driverVersion": {"version": "550.54.15"},
            "preview": {"version": "1.0.0-rc.1+build5"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:17"},
            "other.example.com/model": {"string": "B"},
        },
        "capacity": {
            "memory": {"value": "40Gi"},
            "cores": {"value": "1500m"},
            "other.example.com/memory": {"value": "1e3"},
            "zero": {"value": "0"},
        },
        "allowMultipleAllocations": True,
    },
    "lists": {
        "attributes": {
            "ints": {"ints": [3, 1, 2, 2]},
            "bools": {"bools": [True, False]},
            "strings": {"strings": ["b", "a"]},
            "versions": {"versions": ["1.2.3", "1.10.0"]},
            "scalar": {"int": 7},
        },
        "capacity": {"slices": {"value": "7"}},
    },
}
# Everything that the others have.
DEVICES["full"] = {
    "attributes": DEVICES["gpu"]["attributes"] | DEVICES["lists"]["attributes"],
    "capacity": DEVICES["gpu"]["capacity"],
    "allowMultipleAllocations": True,
}


def asked(name: str, expression: str) -> dict[str, Any]:
    """Spell a case as a question to the oracle."""
    return {"mode": "value", "expression": expression, "driver": DRIVER, "device": {"name": name, **DEVICES[name]}}


def sight(name: str) -> DeviceValue:
    """Return a device as our selectors see it."""
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "allNodes": True, "devices": [{"name": name, **DEVICES[name]}]}
    published = parse_slice({"metadata": {"name": "s"}, "spec": spec})
    assert isinstance(published, ResourceSlice)
    return sight_of(published.devices[0], DriverName(DRIVER))
