"""CEL values as Python values.

bool, int, double (float), string, bytes and null are Python's own; a list is a tuple, a map a dict whose
keys `encoded` has made distinct (Python holds 1, 1.0 and True for one key). The others are defined here.
"""

import math
import re
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address
from typing import Any, NamedTuple, TypeAlias

from extender.allocation.cel.errors import Crashed
from extender.allocation.cel.types import (
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    INT,
    IP,
    NAMED_FORMAT,
    NULL,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    UINT,
    URL,
    Type,
)
from extender.model.quantity import Quantity
from extender.model.semver import Semver

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1


class UInt(int):
    """An unsigned integer. Arithmetic gives plain integers: wrap the result."""

    __slots__ = ()


class Sum(Quantity):
    """A quantity that was computed. Upstream errs where one stands on the right of ``==``, hence the class."""

    __slots__ = ()


class Optional(NamedTuple):
    """A value that may be absent."""

    present: bool
    value: object = None


NONE = Optional(present=False)


class Timestamp(NamedTuple):
    """An instant: nanoseconds since 1970, and the offset that it was written with, which printing keeps."""

    nanos: int
    offset_s: int = 0


class Duration(NamedTuple):
    """A span in nanoseconds, within 64 bits."""

    nanos: int


class Address(NamedTuple):
    """An IP address."""

    address: IPv4Address | IPv6Address


class Network(NamedTuple):
    """An address with the length of its prefix; bits after the prefix are kept."""

    address: IPv4Address | IPv6Address
    prefix: int


class Link(NamedTuple):
    """A URL in the parts that CEL can ask for."""

    text: str
    scheme: str
    host: str
    escaped_path: str
    query: str


class NamedFormat(NamedTuple):
    """A check of strings by name; it returns what is wrong."""

    name: str
    problems: Callable[[str], tuple[str, ...]]


class TypeValue(NamedTuple):
    """A type as a value, equal to any other of its name."""

    name: str


def held(value: object) -> object:
    """Return what an optional holds, and the name of a type: what Go takes for the value of either."""
    while type(value) is Optional:
        value = value.value
    return value.name if type(value) is TypeValue else value


class Key(NamedTuple):
    """A map key that is neither a string nor an int."""

    type: str
    value: object


class Alone:
    """A map key that only itself equals: as keys, upstream tells lists, maps and optionals apart by their identity.

    The values of some types are made anew each time that they are needed, and NaN does not even equal itself.
    """

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alone) and self.value is other.value and type(self.value) not in UNEQUAL

    def __hash__(self) -> int:
        return id(self.value)


class Domains(dict[object, object]):
    """The domains of attributes or capacity: an unknown one reads as an empty map and yet is not in it."""

    __slots__ = ()

    def __missing__(self, _key: object) -> object:
        return EMPTY


EMPTY: dict[object, object] = {}

# What functions of many types take. They look at the class themselves, in ways that no type checker follows.
Value: TypeAlias = Any

CelValue = (
    bool
    | int
    | float
    | str
    | bytes
    | None
    | tuple[object, ...]
    | Mapping[object, object]
    | Quantity
    | Semver
    | Optional
    | Timestamp
    | Duration
    | Address
    | Network
    | Link
    | NamedFormat
    | TypeValue
)

NAMES: dict[type, str] = {
    bool: BOOL.name,
    int: INT.name,
    UInt: UINT.name,
    float: DOUBLE.name,
    str: STRING.name,
    bytes: BYTES.name,
    type(None): "null_type",
    tuple: "list",
    dict: "map",
    Domains: "map",
    Quantity: QUANTITY.name,
    Sum: QUANTITY.name,
    Semver: SEMVER.name,
    Timestamp: TIMESTAMP.name,
    Duration: DURATION.name,
    Address: IP.name,
    Network: CIDR.name,
    Link: URL.name,
    NamedFormat: NAMED_FORMAT.name,
    TypeValue: "type",
    Optional: "optional_type",
}

# The classes whose values have a static type at run time; none stands for every class.
CLASSES: dict[Type, tuple[type, ...]] = {
    BOOL: (bool,),
    INT: (int,),
    UINT: (UInt,),
    DOUBLE: (float,),
    STRING: (str,),
    BYTES: (bytes,),
    NULL: (type(None),),
    QUANTITY: (Quantity, Sum),
    SEMVER: (Semver,),
    TIMESTAMP: (Timestamp,),
    DURATION: (Duration,),
    IP: (Address,),
    CIDR: (Network,),
    URL: (Link,),
    NAMED_FORMAT: (NamedFormat,),
}


def type_name(value: object) -> str:
    """Name the type of *value* as CEL does."""
    return NAMES.get(type(value), "unknown")


def classes_of(given: Type) -> tuple[type, ...]:
    """Return the classes whose values a parameter of this type takes; none where it takes all."""
    match given.kind:
        case "list":
            return (tuple,)
        case "map":
            return (dict, Domains)
        case "type":
            return (TypeValue,)
        case "opaque" if given.name == "optional_type":
            return (Optional,)
        case "dyn" | "parameter":
            return ()
    return CLASSES.get(given, (_Nothing,))


class _Nothing:
    """The class of types that no value has here (an authorizer, say)."""


def encoded(key: object) -> object:
    """Return the Python key under which a map keeps the CEL key."""
    kind = type(key)
    if kind is str or kind is int:
        return key
    if kind in UNHASHABLE:
        raise Crashed(f"a value of type {type_name(key)} cannot be the key of a map")
    return Alone(key) if kind in ALONE or key != key else Key(type_name(key), key)  # noqa: PLR0124 - NaN is not itself


def decoded(key: object) -> object:
    """Return the CEL key that a map keeps under a Python key."""
    return key.value if isinstance(key, (Key, Alone)) else key


MISSING = object()
MAPS = frozenset((dict, Domains))
# The types of what may stand in square brackets, and is looked up quickly among constants.
PRIMITIVE = frozenset((str, int, UInt, bool, float))
UNEQUAL = frozenset((Quantity, Sum, Link, float))
ALONE = frozenset((tuple, dict, Domains, Optional, Quantity, Sum, Link))
# What Go cannot hash; upstream's interpreter comes to grief over such keys.
UNHASHABLE = frozenset((bytes, Semver, NamedFormat))

# Stands for a byte of a string that is no UTF-8, as after ``url``: nothing is written with it.
HALF = re.compile("[\ud800-\udfff]")


def writable(text: str) -> str:
    """Return *text* with what Go reads in place of each byte that is no UTF-8."""
    return HALF.sub("\N{REPLACEMENT CHARACTER}", text)


def find(mapping: Mapping[object, object], key: object) -> object:
    """Look *key* up, a number also under the other numeric types; MISSING where there is none."""
    kind = type(key)
    if kind is str:
        return mapping.get(key, MISSING) if type(mapping) is not Domains else mapping[key]
    if isinstance(key, (int, float)) and kind is not bool:
        return _find_number(mapping, key)
    found = mapping.get(encoded(key), MISSING) if mapping else MISSING
    return EMPTY if found is MISSING and type(mapping) is Domains else found


def _find_number(mapping: Mapping[object, object], key: float) -> object:
    """Look a double up as an int and a uint, too, and these as one another: upstream finds no double by them."""
    if type(mapping) is Domains:
        return EMPTY
    found = mapping.get(encoded(key), MISSING)
    if found is not MISSING or not math.isfinite(key) or key != int(key) or key == INT_MIN:
        return found
    whole = int(key)
    candidates: tuple[object, ...] = (whole, Key("uint", whole))
    return next((mapping[candidate] for candidate in candidates if candidate in mapping), MISSING)
