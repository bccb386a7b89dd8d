"""Attributes under their several names: where a device is. What is not published is unknown, never node 0."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from extender.model.device import Attribute, Device, Scalar
from extender.model.frozen import dataclass
from extender.model.names import DeviceKey, DriverName, split_qualified

Aliases = Mapping[str, tuple[str, ...]]
Address = tuple[int, int, int, int]
_ADDRESS: Final = re.compile(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})\.([0-7])")


class Member(NamedTuple):
    """A device of a node, by its full name."""

    key: DeviceKey
    device: Device


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a device is, as far as it is published; sets are empty where nothing is."""

    first_numa: int | None = None
    numa: frozenset[int] = frozenset()
    root: frozenset[str] = frozenset()
    bus: Address | None = None
    product: str = ""
    uuid: str = ""


def place_of(member: Member, aliases: Aliases) -> Place:
    """Read where *member* is: the first alias with a value of the right kind counts."""
    attributes = attributes_of(member)
    driver = member.key.driver
    zones = next(filter(None, (_zones(attributes.get(_full(name, driver))) for name in aliases["numa"])), ())
    roots = next(filter(None, (_texts(attributes.get(_full(name, driver))) for name in aliases["root"])), ())
    buses = (_address(text) for name in aliases["bus"] for text in _texts(attributes.get(_full(name, driver)))[:1])
    return Place(
        first_numa=zones[0] if zones and zones[0] >= 0 else None,
        numa=frozenset(zone for zone in zones if zone >= 0),
        root=frozenset(roots),
        bus=next((bus for bus in buses if bus is not None), None),
        product=_first_text(attributes, aliases["product"], driver),
        uuid=_first_text(attributes, aliases["uuid"], driver),
    )


def attributes_of(member: Member) -> dict[str, Attribute]:
    """Return the attributes of *member* by qualified name; one that is published with its domain wins."""
    ordered = sorted(member.device.attributes, key=lambda item: "/" in item[0])
    return {_full(name, member.key.driver): attribute for name, attribute in ordered}


def values_of(member: Member, name: str) -> frozenset[tuple[str, Scalar]]:
    """Return the values of an attribute with their kind; a scalar is a set of one, absence an empty one."""
    attribute = attributes_of(member).get(_full(name, member.key.driver))
    if attribute is None or attribute.kind == "invalid":
        return frozenset()
    kind = attribute.kind.removesuffix("s")
    return frozenset((kind, value) for value in _listed(attribute))


@lru_cache(maxsize=1024)
def _full(name: str, driver: DriverName) -> str:
    return "/".join(split_qualified(name, driver))


def _listed(attribute: Attribute) -> tuple[Scalar, ...]:
    return attribute.value if isinstance(attribute.value, tuple) else (attribute.value,)


def _zones(attribute: Attribute | None) -> tuple[int, ...]:
    if attribute is None or attribute.kind not in ("int", "ints"):
        return ()
    zones = tuple(zone for zone in _listed(attribute) if isinstance(zone, int))
    # sysfs says -1 where the firmware says nothing, and some drivers pass that on: it is not the next in a list then.
    return zones if max(zones, default=-1) >= 0 else ()


def _texts(attribute: Attribute | None) -> tuple[str, ...]:
    if attribute is None or attribute.kind not in ("string", "strings"):
        return ()
    return tuple(text for text in _listed(attribute) if isinstance(text, str) and text)


def _first_text(attributes: Mapping[str, Attribute], names: Sequence[str], driver: DriverName) -> str:
    found: Iterator[str] = (text for name in names for text in _texts(attributes.get(_full(name, driver))))
    return next(found, "")


def _address(text: str) -> Address | None:
    """Read a PCI address as numbers: its spelling differs between drivers, its order must not."""
    found = _ADDRESS.fullmatch(text)
    if not found:
        return None
    domain, bus, slot, function = (int(part or "0", 16) for part in found.groups())
    return domain, bus, slot, function
