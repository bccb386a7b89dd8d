"""Devices of one kind: those that the same entries of the configuration are about."""

from collections.abc import Iterable

from extender.model.node import Node
from extender.topology.aliases import Member, values_of
from extender.topology.configuration import Configuration, Kind, Match
from extender.topology.products import has_labels


def kinds_about(node: Node, member: Member, configuration: Configuration) -> tuple[Kind, ...]:
    """Return the entries that are about *member*, in order."""
    return tuple(kind for kind in configuration.kinds if _is_about(kind.match, node, member))


def grouped(node: Node, members: Iterable[Member], configuration: Configuration) -> tuple[tuple[Member, ...], ...]:
    """Part the devices of a node by driver and kind, so that ``links_of`` can be asked of each part."""
    groups: dict[tuple[str, tuple[int, ...]], list[Member]] = {}
    for member in members:
        kinds = enumerate(configuration.kinds)
        about = tuple(index for index, kind in kinds if _is_about(kind.match, node, member))
        groups.setdefault((member.key.driver, about), []).append(member)
    return tuple(tuple(groups[key]) for key in sorted(groups))


def _is_about(match: Match, node: Node, member: Member) -> bool:
    if match.driver and match.driver != member.key.driver:
        return False
    if match.type and ("string", match.type) not in values_of(member, "type"):
        return False
    return has_labels(node, match.nodes)
