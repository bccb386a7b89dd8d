"""Identifiers. Distinct types, so that a pool's name cannot be passed where a node's is meant."""

import re
from typing import Final, NamedTuple, NewType

NodeName = NewType("NodeName", str)
DriverName = NewType("DriverName", str)
PoolName = NewType("PoolName", str)
DeviceName = NewType("DeviceName", str)
ClassName = NewType("ClassName", str)
Uid = NewType("Uid", str)


class PoolKey(NamedTuple):
    """What identifies a pool: two drivers may both name a pool after the node."""

    driver: DriverName
    pool: PoolName


class DeviceKey(NamedTuple):
    """What identifies a device; the slice that publishes it may change."""

    driver: DriverName
    pool: PoolName
    device: DeviceName

    @property
    def pool_key(self) -> PoolKey:
        return PoolKey(self.driver, self.pool)


class ObjectKey(NamedTuple):
    """Namespace and name; the namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


DNS_LABEL_MAX: Final = 63
DNS_SUBDOMAIN_MAX: Final = 253
DRIVER_NAME_MAX: Final = 63
DOMAIN_MAX: Final = 63
IDENTIFIER_MAX: Final = 32
LABEL_MAX: Final = 63

_DNS_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_C_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")


def split_qualified(name: str, driver: DriverName) -> tuple[str, str]:
    """Split an attribute's or capacity's name at its first slash; without one, the driver is its domain."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def is_dns_label(text: str) -> bool:
    """Tell whether *text* may name a device, a request, a counter set or a counter."""
    return len(text) <= DNS_LABEL_MAX and _DNS_LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Tell whether *text* may name a node or a class; a domain is such a name, too."""
    return len(text) <= DNS_SUBDOMAIN_MAX and all(map(_DNS_LABEL.fullmatch, text.split(".")))


def is_driver_name(text: str) -> bool:
    """Tell whether *text* may name a driver: a DNS subdomain, in which the API allows capitals."""
    return len(text) <= DRIVER_NAME_MAX and text.isascii() and is_dns_subdomain(text.lower())


def is_qualified_name(text: str) -> bool:
    """Tell whether *text* may name an attribute or a capacity: an identifier, perhaps with a domain and a slash."""
    domain, slash, identifier = text.rpartition("/")
    if slash and not (len(domain) <= DOMAIN_MAX and is_dns_subdomain(domain)):
        return False
    return len(identifier) <= IDENTIFIER_MAX and _C_IDENTIFIER.fullmatch(identifier) is not None


def is_label_key(text: str) -> bool:
    """Tell whether *text* may be the key of a label: a name, perhaps with a DNS subdomain and a slash."""
    domain, slash, name = text.rpartition("/")
    if slash and not is_dns_subdomain(domain):
        return False
    return len(name) <= LABEL_MAX and _LABEL.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Tell whether *text* may be the value of a label; it may be empty."""
    return not text or (len(text) <= LABEL_MAX and _LABEL.fullmatch(text) is not None)
