"""Values as JSON-able descriptions, for programs and for comparison with other implementations."""

import math
from base64 import b64encode
from collections.abc import Callable

from extender.allocation.cel.library.clock import format_timestamp
from extender.allocation.cel.values import (
    Address,
    Duration,
    Link,
    NamedFormat,
    Network,
    Optional,
    Sum,
    Timestamp,
    TypeValue,
    UInt,
    decoded,
    type_name,
)
from extender.model.quantity import Quantity
from extender.model.semver import Semver

Description = dict[str, object]


def _double(value: float) -> object:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def _entries(value: dict[object, object]) -> object:
    pairs = [[describe(decoded(key)), describe(item)] for key, item in value.items()]
    return sorted(pairs, key=str)


SCALARS: dict[type, tuple[str, Callable[..., object]]] = {
    bool: ("bool", bool),
    int: ("int", int),
    UInt: ("uint", int),
    float: ("double", _double),
    str: ("string", str),
    bytes: ("bytes", lambda value: b64encode(value).decode()),
    type(None): ("null", lambda _: None),
    Quantity: ("quantity", lambda value: f"{value.nanos}n"),
    Sum: ("quantity", lambda value: f"{value.nanos}n"),
    Semver: ("semver", str),
    Timestamp: ("timestamp", format_timestamp),
    Duration: ("duration", lambda value: value.nanos),
    Address: ("ip", lambda value: str(value.address)),
    Network: ("cidr", lambda value: f"{value.address}/{value.prefix}"),
    Link: ("url", lambda value: value.text),
    NamedFormat: ("format", lambda value: value.name),
    TypeValue: ("type", lambda value: value.name),
}


def describe(value: object) -> Description:
    """Return ``{"type": ..., "value": ...}``; lists, maps and optionals hold further descriptions."""
    known = SCALARS.get(type(value))
    if known is not None:
        return {"type": known[0], "value": known[1](value)}
    if type(value) is tuple:
        return {"type": "list", "value": [describe(item) for item in value]}
    if isinstance(value, dict):
        return {"type": "map", "value": _entries(value)}
    if isinstance(value, Optional):
        return {"type": "optional", "value": describe(value.value) if value.present else None}
    return {"type": type_name(value), "value": repr(value)}
