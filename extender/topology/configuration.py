"""The configuration of topology as values. It is read by ``validation``, which refuses what makes no sense."""

import re
from typing import Final, Literal, NamedTuple

from extender.model.frozen import dataclass

Labels = tuple[tuple[str, str], ...]
Key = Literal["bus", "root", "numa"]
Sharing = Literal["first", "intersect"]
ALIASES: Final = ("numa", "root", "bus", "product", "uuid")


class Edge(NamedTuple):
    """Two positions in a table, the lower one first, and how many links join them."""

    one: int
    other: int
    links: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTable:
    """The links of a machine, positions counted in ascending order of PCI bus ids. link_weight: GB/s per direction."""

    devices: int
    edges: tuple[Edge, ...]
    link_weight: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Which devices an entry is about; what is empty does not matter."""

    driver: str = ""
    type: str = ""
    nodes: Labels = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What two devices may share: an attribute, what an alias leads to, or the node, if neither is set."""

    attribute: str = ""
    key: Key | None = None
    sharing: Sharing = "intersect"
    weight: float
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    """Where links are told explicitly, and what one of them carries."""

    attribute: str = ""
    annotation: str = ""
    link_weight: float
    rule: str


@dataclass(frozen=True, slots=True)
class Flat:
    """Every two devices have the same bandwidth, whoever else is in use."""

    weight: float
    source: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """The links are those that peers tell of; no later table is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """What is known of machines with some number of some product."""

    product: re.Pattern[str]
    counts: tuple[int, ...]
    nodes: Labels = ()
    links: LinkTable | Flat | Published
    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What is said of some devices. None leaves it to the next entry that is about them."""

    match: Match
    aliases: tuple[tuple[str, tuple[str, ...]], ...] = ()
    levels: tuple[Level, ...] | None = None
    peers: Peers | None = None
    products: tuple[Product, ...] = ()


@dataclass(frozen=True, slots=True)
class Tier:
    """Nodes that share the value of *label* are this near; at most *most_nodes* do, where that is known."""

    label: str
    weight: float
    most_nodes: int | None = None


@dataclass(frozen=True, slots=True)
class Configuration:
    """All that is said of topology. Entries are tried in order; tiers are read, and used by nobody yet."""

    kinds: tuple[Kind, ...] = ()
    tiers: tuple[Tier, ...] = ()
