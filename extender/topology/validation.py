"""Plain values to a configuration, or to everything that is wrong with them."""

import re
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Final, cast

from extender.topology.configuration import (
    ALIASES,
    Configuration,
    Edge,
    Flat,
    Key,
    Kind,
    Level,
    LinkTable,
    Match,
    Peers,
    Product,
    Published,
    Sharing,
    Tier,
)
from extender.topology.reading import (
    Entry,
    attribute,
    attributes,
    driver,
    label,
    labels,
    one_of,
    text,
    weight,
    whole,
)

Tables = Mapping[str, LinkTable]
# As many devices as a node has slices for, and links as no device has.
MOST_DEVICES: Final = 1024
MOST_LINKS: Final = 64
PUBLISHED: Final = "published"
ANY: Final = re.compile("")


def configuration_in(top: Entry, tables: Tables, prefix: str = "") -> Configuration:
    """Read the keys of topology among those of a document; rules are named with *prefix*."""
    kinds = tuple(_kind(entry, tables, prefix) for entry in top.entries("deviceTopology"))
    tiers = tuple(_tier(entry) for entry in top.entries("clusterTopology"))
    for index, tier in enumerate(tiers):
        if tier.label and tier.label in (earlier.label for earlier in tiers[:index]):
            top.wrong.append(f"clusterTopology[{index}].label: {tier.label} is there twice")
    return Configuration(kinds, tiers)


def _kind(entry: Entry, tables: Tables, prefix: str) -> Kind:
    kind = Kind(
        match=_match(entry.child("match")),
        aliases=_aliases(entry.child("aliases")),
        levels=tuple(_level(item, prefix) for item in entry.entries("levels")) if entry.has("levels") else None,
        peers=_peers(entry.child("peers"), prefix) if entry.has("peers") else None,
        products=tuple(_product(item, tables, prefix) for item in entry.entries("products")),
    )
    entry.insist("match", "is needed; {} is about all devices")
    entry.close()
    return kind


def _match(entry: Entry) -> Match:
    match = Match(
        driver=entry.take("driver", driver, ""),
        type=entry.take("type", text, ""),
        nodes=entry.take("nodeSelector", labels, ()),
    )
    entry.close()
    return match


def _aliases(entry: Entry) -> tuple[tuple[str, tuple[str, ...]], ...]:
    none: tuple[str, ...] = ()
    found = tuple((name, entry.take(name, attributes, none)) for name in ALIASES if entry.has(name))
    entry.close()
    return found


def _level(entry: Entry, prefix: str) -> Level:
    named = [key for key in ("attribute", "key", "node") if entry.has(key)]
    if len(named) != 1:
        entry.complain("needs exactly one of attribute, key and node")
    if entry.has("node") and entry.raw["node"] is not True:
        entry.complain("must be true", "node")
    key = cast("Key | None", entry.take("key", one_of("bus", "root", "numa"), "") or None)
    default = "first" if key == "numa" else "intersect"
    if entry.has("match") and key != "numa":
        entry.complain("goes with key: numa only", "match")
    level = Level(
        attribute=entry.take("attribute", attribute, ""),
        key=key,
        sharing=cast("Sharing", entry.take("match", one_of("first", "intersect"), default)),
        weight=entry.need("weight", weight, 0.0),
        rule=prefix + entry.path,
    )
    entry.close()
    return level


def _peers(entry: Entry, prefix: str) -> Peers:
    peers = Peers(
        attribute=entry.take("attribute", attribute, ""),
        annotation=entry.take("annotation", label, ""),
        link_weight=entry.need("linkWeight", weight, 0.0),
        rule=prefix + entry.path,
    )
    if not entry.has("attribute") and not entry.has("annotation"):
        entry.complain("needs attribute, annotation or both")
    entry.close()
    return peers


def _product(entry: Entry, tables: Tables, prefix: str) -> Product:
    counts = _counts(entry)
    entry.take("order", one_of("pciBusID"), "")
    product = Product(
        product=entry.need("product", _pattern, ANY),
        counts=counts,
        nodes=entry.take("nodeSelector", labels, ()),
        links=_links(entry, tables, max(counts, default=0)),
        rule=prefix + entry.path,
    )
    if isinstance(product.links, LinkTable) and len(counts) > 1:
        entry.complain("must be one number where positions are named", "count")
    entry.close()
    return product


def _counts(entry: Entry) -> tuple[int, ...]:
    check = whole(2, MOST_DEVICES)

    def counts(value: object) -> tuple[int, ...]:
        listed = value if isinstance(value, list | tuple) and value else (value,)
        return tuple(check(item) for item in listed)

    return entry.need("count", counts, ())


def _pattern(value: object) -> re.Pattern[str]:
    try:
        return re.compile(text(value))
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is no regular expression: {error}") from error


def _links(entry: Entry, tables: Tables, count: int) -> LinkTable | Flat | Published:
    named = [key for key in ("links", "flat", "pairs") if entry.has(key)]
    source = entry.take("source", text, "")
    if len(named) != 1:
        entry.complain("needs exactly one of links, flat and pairs")
        return Published()
    if named == ["flat"]:
        return Flat(entry.take("flat", weight, 0.0), source)
    if named == ["pairs"]:
        if not entry.has("nodeSelector"):
            entry.complain("is needed with pairs: bridges differ from site to site", "nodeSelector")
        edges = _edges(entry, "pairs", count, width=2)
        _complain_of_two_bridges(entry, edges)
        return LinkTable(devices=count, edges=edges, link_weight=entry.need("weight", weight, 0.0), source=source)
    if isinstance(entry.raw["links"], str):
        return _named(entry, tables, count)
    edges = _edges(entry, "links", count, width=3)
    link_weight = entry.need("linkWeight", weight, 0.0)
    return LinkTable(devices=count, edges=edges, link_weight=link_weight, source=source)


def _named(entry: Entry, tables: Tables, count: int) -> LinkTable | Published:
    name = entry.take("links", one_of(*tables, PUBLISHED), PUBLISHED)
    if name == PUBLISHED:
        return Published()
    if count and tables[name].devices != count:
        entry.complain(f"{name} is a table of {tables[name].devices} devices, not of {count}", "links")
    return tables[name]


def _edges(entry: Entry, key: str, count: int, width: int) -> tuple[Edge, ...]:
    """Read edges as lists: two positions and, where *width* allows, a number of links."""
    edges: dict[tuple[int, int], Edge] = {}
    for raw, path in entry.items(key):
        edge = _edge(raw, count, width)
        if isinstance(edge, str):
            entry.wrong.append(f"{path}: {edge}")
        elif edge[:2] not in edges:
            edges[edge[:2]] = edge
        elif edges[edge[:2]] == edge:
            entry.wrong.append(f"{path}: {edge.one} and {edge.other} are there twice")
        else:
            entry.wrong.append(f"{path}: {edge.one} and {edge.other} have another number of links above: not symmetric")
    return tuple(sorted(edges.values()))


def _edge(raw: object, count: int, width: int) -> Edge | str:
    if not isinstance(raw, list | tuple) or not 2 <= len(raw) <= width:
        return "must be two positions" + " and a number of links" * (width == 3)
    if not all(type(number) is int for number in raw):
        return "must be integers"
    one, other, *links = raw
    if count and not (0 <= one < count and 0 <= other < count):
        return f"must be positions from 0 to {count - 1}"
    if one == other:
        return f"{one} cannot be linked to itself"
    if links and not 1 <= links[0] <= MOST_LINKS:
        return f"must have 1 to {MOST_LINKS} links"
    return Edge(min(one, other), max(one, other), links[0] if links else 1)


def _complain_of_two_bridges(entry: Entry, edges: Iterable[Edge]) -> None:
    for edge, later in combinations(edges, 2):
        for position in sorted(set(edge[:2]) & set(later[:2])):
            entry.complain(f"{position} is in two pairs", "pairs")


def _tier(entry: Entry) -> Tier:
    tier = Tier(
        label=entry.need("label", label, ""),
        weight=entry.need("weight", weight, 0.0),
        most_nodes=entry.take("maxNodes", whole(1, 100_000), 0) or None,
    )
    entry.close()
    return tier
