"""Addresses that are listened on."""

from ipaddress import ip_address
from typing import NamedTuple

PORTS = range(65536)


class Address(NamedTuple):
    """A host, empty for all interfaces, and a port, 0 for any that is free."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine's network namespace can call."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def address_of(text: str) -> Address:
    """Read host:port, the host of IPv6 in brackets; raise ValueError for anything else."""
    host, colon, port = text.rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not (port.isascii() and port.isdigit()) or (":" in host and not is_bracketed):
        raise ValueError("must be host:port")
    if int(port) not in PORTS:
        raise ValueError(f"must have a port of at most {PORTS[-1]}")
    return Address(host[1:-1] if is_bracketed else host, int(port))


def without_lookup(address: Address) -> Address:
    """Return *address* without a name that a file of the machine might take for another address than loopback."""
    return address._replace(host="127.0.0.1") if address.host == "localhost" else address
