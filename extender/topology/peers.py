"""The second layer: links that somebody tells of, in an attribute of each device or in an annotation of the node."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from extender.model.node import Node
from extender.topology.aliases import Member, Place, values_of
from extender.topology.configuration import Peers
from extender.topology.sheet import Sheet, Source

# Scores of go-gpuallocator: a hundred for each NVLink, and less than that for what PCIe has in common.
SCORE_OF_LINK: Final = 100
# More than any device has: what is beyond is a mistake of whoever wrote it.
MOST_LINKS: Final = 64
# Devices that are asked for their peers, by their number on the sheet.
Asked = Mapping[int, tuple[Member, Place]]


class Told(NamedTuple):
    """What one device says of another."""

    one: int
    other: int
    links: int


def lay_peers(sheet: Sheet, node: Node, asked: Asked, peers: Peers) -> None:
    """Set the pairs of those *asked* that are told to have links; an annotation comes after attributes, and wins."""
    if peers.attribute:
        names = {member.key.device: index for index, (member, _) in asked.items()}
        told = [told for index, (member, _) in asked.items() for told in _in_attribute(index, member, names, peers)]
        _lay(sheet, asked, told, Source("peers", f"attribute {peers.attribute}", peers.rule), peers.link_weight)
    text = dict(node.annotations).get(peers.annotation) if peers.annotation else None
    if text:
        uuids = {place.uuid: index for index, (_, place) in asked.items() if place.uuid}
        scores = _scores(text)
        if scores is None:
            sheet.complaints.append(f"annotation {peers.annotation} cannot be read")
        told = list(_in_scores(scores or {}, uuids))
        _lay(sheet, asked, told, Source("peers", f"annotation {peers.annotation}", peers.rule), peers.link_weight)


def _lay(sheet: Sheet, asked: Asked, told: Sequence[Told], source: Source, weight: float) -> None:
    """Set what is told; one side is enough, and where both differ the lesser counts."""
    by_pair: dict[tuple[int, int], list[int]] = {}
    for one, other, links in told:
        if one != other:
            by_pair.setdefault((min(one, other), max(one, other)), []).append(links)
    if any(map(min, by_pair.values())) and sheet.link_weight not in (None, weight):
        sheet.complaints.append(f"{source.read} tells of links of another weight than those that stand beside them")
        return
    for pair, counts in by_pair.items():
        if len(set(counts)) > 1:
            first, second = (asked[index][0].key.device for index in pair)
            sheet.complaints.append(f"{source.read}: {first} and {second} differ about their links")
        if links := min(counts):
            sheet.put(pair, weight * links, source, links)
            sheet.link_weight = weight


def _in_attribute(index: int, member: Member, names: Mapping[Any, int], peers: Peers) -> Iterator[Told]:
    """Read ``gpu-3:2``: two links to gpu-3; without a number, one."""
    for kind, value in sorted(values_of(member, peers.attribute), key=repr):
        name, colon, count = str(value).partition(":")
        links = int(count) if count.isascii() and count.isdigit() and len(count) < 3 else 0 if colon else 1
        if kind == "string" and name in names and 0 < links <= MOST_LINKS:
            yield Told(index, names[name], links)


def _scores(text: str) -> list[Any] | None:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return raw if isinstance(raw, list) else None


def _in_scores(scores: Sequence[Any] | Mapping[Any, Any], uuids: Mapping[str, int]) -> Iterator[Told]:
    for entry in scores:
        one = uuids.get(str(entry.get("uuid"))) if isinstance(entry, dict) else None
        pairs = entry.get("score") if one is not None else None
        if one is None or not isinstance(pairs, dict):
            continue
        for uuid, score in pairs.items():
            if uuid in uuids and type(score) is int and 0 <= score < SCORE_OF_LINK * (MOST_LINKS + 1):
                yield Told(one, uuids[uuid], score // SCORE_OF_LINK)
