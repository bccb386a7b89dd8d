"""What a selector sees of a device."""

from collections.abc import Mapping
from dataclasses import field

from extender.allocation.cel.values import CelValue
from extender.model.device import Attribute
from extender.model.frozen import dataclass
from extender.model.quantity import Quantity
from extender.model.semver import parse_semver


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceValue:
    """The variable ``device``: attributes and capacity by domain, then by name.

    A *fault* (an attribute without a known value) makes every evaluation an error, whatever it reads.
    """

    driver: str
    allow_multiple_allocations: bool = False
    attributes: Mapping[str, Mapping[str, CelValue]] = field(default_factory=dict)
    capacity: Mapping[str, Mapping[str, Quantity]] = field(default_factory=dict)
    fault: str | None = None


def to_cel(attribute: Attribute) -> CelValue:
    """Return the value that selectors see; raise ValueError where the attribute has none."""
    kind, value = attribute
    if kind == "invalid":
        raise ValueError(attribute.fault)
    if kind == "version":
        return parse_semver(str(value))
    if kind == "versions":
        return tuple(parse_semver(str(version)) for version in _items(value))
    return value


def _items(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)
