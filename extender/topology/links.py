"""The devices of one kind on one node, and their links: layers laid over one another, the later one wins."""

import hashlib
import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from extender.model.frozen import dataclass
from extender.model.names import DeviceKey
from extender.model.node import Node
from extender.topology.aliases import Address, Aliases, Member, Place, place_of, values_of
from extender.topology.configuration import ALIASES, Configuration, Kind, Match
from extender.topology.levels import lay_levels
from extender.topology.peers import lay_peers
from extender.topology.products import has_labels, lay_table, objection, tables_for
from extender.topology.sheet import Sheet, Source, blank


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Links:
    """How devices are linked, in ascending order of their PCI bus ids; those without one follow by name.

    weights: float64[devices, devices], symmetric, GB/s per direction, zero on the diagonal. links: int64 alike, how
    many links of *link_weight* each pair has: zero everywhere on a switch, and where only levels are known.
    *is_known* tells whether more than levels is known. Nodes with the same *shape* have the same weights and links.
    """

    devices: tuple[DeviceKey, ...]
    places: tuple[Place, ...]
    weights: NDArray[np.float64]
    links: NDArray[np.int64]
    link_weight: float | None
    is_flat: bool
    is_known: bool
    origin: NDArray[np.int64]
    sources: tuple[Source, ...]
    complaints: tuple[str, ...]
    shape: str

    def source(self, one: int, other: int) -> Source:
        """Tell where the weight between two devices comes from."""
        return self.sources[int(self.origin[one, other])]


def grouped(node: Node, members: Iterable[Member], configuration: Configuration) -> tuple[tuple[Member, ...], ...]:
    """Part the devices of a node by driver and kind: those of a kind are what the same entries are about."""
    groups: dict[tuple[str, tuple[int, ...]], list[Member]] = {}
    for member in members:
        groups.setdefault((member.key.driver, _about(node, member, configuration)), []).append(member)
    return tuple(tuple(groups[key]) for key in sorted(groups))


def links_of(node: Node, members: Sequence[Member], configuration: Configuration) -> Links:
    """Return the links of *members*, which must be of one kind; the order in which they are given does not matter."""
    kinds = [configuration.kinds[index] for index in _about(node, members[0], configuration)] if members else []
    aliases = _aliases(kinds)
    ordered = sorted(((member, place_of(member, aliases)) for member in members), key=_rank)
    listed, places = [member for member, _ in ordered], [place for _, place in ordered]
    sheet = blank(len(listed))
    levels = next((kind.levels for kind in kinds if kind.levels is not None), ())
    lay_levels(sheet, listed, places, levels)
    told = _lay_tables(sheet, node, places, kinds)
    peers = next((kind.peers for kind in kinds if kind.peers is not None), None)
    # A table tells of all links of its machine: what peers say of others would be of another machine.
    asked = {index: both for index, both in enumerate(ordered) if index not in told}
    if peers and asked:
        lay_peers(sheet, node, asked, peers)
    return _published(sheet, listed, places)


def _about(node: Node, member: Member, configuration: Configuration) -> tuple[int, ...]:
    """Return which entries are about *member*, by their numbers."""
    return tuple(index for index, kind in enumerate(configuration.kinds) if _is_about(kind.match, node, member))


def _is_about(match: Match, node: Node, member: Member) -> bool:
    if match.driver and match.driver != member.key.driver:
        return False
    if match.type and ("string", match.type) not in values_of(member, "type"):
        return False
    return has_labels(node, match.nodes)


def _lay_tables(sheet: Sheet, node: Node, places: Sequence[Place], kinds: Sequence[Kind]) -> set[int]:
    """Lay the tables of the machines that stand here, return of whom they tell; complain of those that cannot be."""
    told = set[int]()
    for table in tables_for(node, places, (product for kind in kinds for product in kind.products)):
        problem = objection(sheet, places, table)
        if problem:
            sheet.complaints.append(problem)
        elif table.tells:
            lay_table(sheet, places, table)
            told.update(table.devices)
    return told


def _aliases(kinds: Sequence[Kind]) -> Aliases:
    """Take each alias from the first entry that has it."""
    given = [dict(kind.aliases) for kind in kinds]
    return {name: next((names[name] for names in given if name in names), ()) for name in ALIASES}


def _rank(pair: tuple[Member, Place]) -> tuple[bool, Address, list[tuple[int, str]], DeviceKey]:
    """Order by bus; then by name, where 10 comes after 2."""
    member, place = pair
    parts = re.findall(r"(\d+)|(\D+)", member.key.device)
    name = [(int(number or 0), text) for number, text in parts]
    return place.bus is None, place.bus or (0, 0, 0, 0), name, member.key


def _published(sheet: Sheet, members: Sequence[Member], places: Sequence[Place]) -> Links:
    for matrix in (sheet.weights, sheet.links, sheet.origin):
        matrix.setflags(write=False)
    known = {"peers", "products"}
    return Links(
        devices=tuple(member.key for member in members),
        places=tuple(places),
        weights=sheet.weights,
        links=sheet.links,
        link_weight=sheet.link_weight,
        is_flat=sheet.is_flat,
        is_known=any(source.layer in known for source in sheet.sources),
        origin=sheet.origin,
        sources=tuple(sheet.sources),
        complaints=tuple(sheet.complaints),
        shape=_shape(sheet),
    )


def _shape(sheet: Sheet) -> str:
    """Name all that decides how good sets of the devices are."""
    head = f"{len(sheet.weights)} {sheet.link_weight} {sheet.is_flat} "
    return hashlib.sha256(head.encode() + sheet.weights.tobytes() + sheet.links.tobytes()).hexdigest()[:16]
