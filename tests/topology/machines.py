"""The sample machines of tests/topology/fixtures, parsed as the API server lists them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from extender.model.device import Attribute, Device, ResourceSlice
from extender.model.names import DeviceKey, DeviceName, DriverName, NodeName, PoolName
from extender.model.node import Node
from extender.model.parse import parse_node, parse_slice
from extender.topology.aliases import Member

FIXTURES = Path(__file__).parent / "fixtures"
DRIVER = DriverName("gpu.nvidia.com")
STANDARD = {"bus": "pciBusID", "root": "pcieRoot", "numa": "numaNode"}


def machine(name: str, driver: str = "gpu.nvidia.com") -> tuple[Node, list[Member]]:
    """Return a node and the devices of one driver on it."""
    raw = json.loads((FIXTURES / f"{name}.json").read_text())
    node = parse_node(raw["node"])
    slices = [parse_slice(published) for published in raw["slices"]]
    assert isinstance(node, Node)
    assert all(isinstance(published, ResourceSlice) for published in slices)
    listed = [published for published in slices if isinstance(published, ResourceSlice) and published.driver == driver]
    return node, [
        Member(DeviceKey(published.driver, published.pool, device.name), device)
        for published in listed
        for device in published.devices
    ]


def attribute(value: Any) -> Attribute:
    kinds: dict[type, Any] = {int: "int", str: "string", bool: "bool"}
    if isinstance(value, tuple):
        return Attribute(f"{kinds[type(value[0])]}s", value)  # type: ignore[arg-type]  # one of the list kinds
    return Attribute(kinds[type(value)], value)


def member(name: str, driver: DriverName = DRIVER, **values: Any) -> Member:
    """Make a device; attributes of the standard domain go by their short names."""
    named = tuple(sorted((_published(key), attribute(value)) for key, value in values.items()))
    return Member(DeviceKey(driver, PoolName("node-1"), DeviceName(name)), Device(DeviceName(name), named))


def _published(key: str) -> str:
    return f"resource.kubernetes.io/{STANDARD[key]}" if key in STANDARD else key


def with_values(one: Member, values: Mapping[str, Any]) -> Member:
    """Give *one* more attributes, by their published names."""
    attributes = dict(one.device.attributes) | {name: attribute(value) for name, value in values.items()}
    return Member(one.key, replace(one.device, attributes=tuple(sorted(attributes.items()))))


def gpus(count: int, **values: Any) -> list[Member]:
    """Make devices on PCI buses of their own."""
    return [member(f"gpu-{index}", bus=f"0000:{index + 16:02x}:00.0", **values) for index in range(count)]


def bare(name: str = "node-1", labels: Sequence[tuple[str, str]] = (), **annotations: str) -> Node:
    named = tuple(sorted((f"hami.io/{key.replace('_', '-')}", text) for key, text in annotations.items()))
    return Node(name=NodeName(name), labels=tuple(sorted(labels)), annotations=named)
