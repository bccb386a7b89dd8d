"""IP addresses and networks. IPv4 in IPv6, zones and leading zeros are refused, as upstream does."""

import re
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv6Address

from extender.allocation.cel.errors import Failed
from extender.allocation.cel.limits import CHARACTERS_PER_STEP, Budget
from extender.allocation.cel.overloads import Computation, Overload, function, metered, method, succeeds
from extender.allocation.cel.types import BOOL, CIDR, INT, IP, STRING
from extender.allocation.cel.values import Address, Network

MAX_TEXT = 64
# The steps that it takes to find out what address a text is, or that it is none.
ADDRESS = 10
PREFIX = re.compile(r"0|[1-9][0-9]{0,2}")
V4_BROADCAST = IPv4Address("255.255.255.255")


def parse_address(text: str) -> IPv4Address | IPv6Address:
    kind = IPv6Address if ":" in text else IPv4Address
    try:
        address = kind(text if len(text) <= MAX_TEXT else "")
    except ValueError:
        raise Failed(f"IP Address {text[:MAX_TEXT]!r} parse error during conversion from string") from None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise Failed(f"IP address {text!r} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise Failed(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return address


def to_address(budget: Budget, text: str) -> Address:
    budget.spend(ADDRESS + len(text) // CHARACTERS_PER_STEP)
    return Address(parse_address(text))


def to_network(budget: Budget, text: str) -> Network:
    budget.spend(ADDRESS + len(text) // CHARACTERS_PER_STEP)
    before, slash, prefix = text.rpartition("/")
    if not slash or not PREFIX.fullmatch(prefix):
        raise Failed("network address parse error during conversion from string")
    address = parse_address(before)
    if int(prefix) > address.max_prefixlen:
        raise Failed("network address parse error during conversion from string: prefix length out of range")
    return Network(address, int(prefix))


def is_canonical(budget: Budget, text: str) -> bool:
    return str(to_address(budget, text).address) == text


def bits(address: IPv4Address | IPv6Address, prefix: int) -> int:
    return int(address) >> (address.max_prefixlen - prefix)


def contains_address(network: Network, other: Address) -> bool:
    if network.address.version != other.address.version:
        return False
    return bits(network.address, network.prefix) == bits(other.address, network.prefix)


def contains_network(network: Network, other: Network) -> bool:
    return network.prefix <= other.prefix and contains_address(network, Address(other.address))


def _of_text(parse: Computation, contains: Computation) -> Computation:
    return lambda budget, network, text: contains(network, parse(budget, text))


def masked(network: Network) -> Network:
    host = network.address.max_prefixlen - network.prefix
    kind = type(network.address)
    return Network(kind(int(network.address) >> host << host), network.prefix)


def is_link_local_multicast(ip: Address) -> bool:
    number = int(ip.address)
    return number >> 8 == 0xE00000 if ip.address.version == 4 else number >> 112 & 0xFF0F == 0xFF02


def is_link_local(ip: Address) -> bool:
    number = int(ip.address)
    return number >> 16 == 0xA9FE if ip.address.version == 4 else number >> 118 == 0x3FA


def is_global_unicast(ip: Address) -> bool:
    address = ip.address
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or is_link_local(ip)
        or address == V4_BROADCAST
    )


def overloads() -> Iterator[Overload]:
    for name, result, compute in (
        ("ip", IP, to_address),
        ("ip.isCanonical", BOOL, is_canonical),
        ("isIP", BOOL, succeeds(to_address)),
        ("cidr", CIDR, to_network),
        ("isCIDR", BOOL, succeeds(to_network)),
    ):
        yield metered(function(name, (STRING,), result, compute))
    tests: tuple[tuple[str, Callable[[Address], bool]], ...] = (
        ("isUnspecified", lambda ip: ip.address.is_unspecified),
        ("isLoopback", lambda ip: ip.address.is_loopback),
        ("isLinkLocalMulticast", is_link_local_multicast),
        ("isLinkLocalUnicast", is_link_local),
        ("isGlobalUnicast", is_global_unicast),
    )
    for name, test in tests:
        yield method(name, (IP,), BOOL, test)
    yield method("family", (IP,), INT, lambda ip: ip.address.version)
    yield metered(method("containsIP", (CIDR, STRING), BOOL, _of_text(to_address, contains_address)))
    yield method("containsIP", (CIDR, IP), BOOL, contains_address)
    yield metered(method("containsCIDR", (CIDR, STRING), BOOL, _of_text(to_network, contains_network)))
    yield method("containsCIDR", (CIDR, CIDR), BOOL, contains_network)
    yield method("ip", (CIDR,), IP, lambda network: Address(network.address))
    yield method("prefixLength", (CIDR,), INT, lambda network: network.prefix)
    yield method("masked", (CIDR,), CIDR, masked)
