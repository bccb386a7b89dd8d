"""The devices of a node in groups of one kind, each with its links."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from extender.model.node import Node
from extender.topology.aliases import Member
from extender.topology.configuration import Configuration
from extender.topology.kinds import grouped
from extender.topology.links import Links, links_of
from extender.topology.shape import Shape, mask_of, shape_of

# Behind a switch all pairs are alike, but for the host's memory and network, which are nearer on one NUMA node.
ACROSS: Final = 0.9


@dataclass(frozen=True, eq=False)
class Group:
    """*members*, and *indices* of them among the devices that were asked about, both in the order of the links.

    *is_beside* tells of devices without known links that others on the node have some: they go along with those.
    """

    links: Links
    members: tuple[Member, ...]
    indices: tuple[int, ...]
    is_beside: bool = False

    def mask(self, places: Collection[int]) -> int:
        """Return the mask of *places*, which count as *indices* do, among the devices of the group."""
        return mask_of(place for place, index in enumerate(self.indices) if index in places)

    @cached_property
    def shape(self) -> Shape:
        links = self.links
        weights = links.weights * _nearness(links) if links.is_flat else links.weights
        return shape_of(weights, links.links, links.link_weight)


def groups_of(node: Node, members: Sequence[Member], configuration: Configuration) -> tuple[Group, ...]:
    """Group *members*, all devices of *node*, and work their links out."""
    index_of = {member.key: index for index, member in enumerate(members)}
    groups = []
    for kind in grouped(node, members, configuration):
        links = links_of(node, kind, configuration)
        by_key = {member.key: member for member in kind}
        ordered = tuple(by_key[key] for key in links.devices)
        groups.append(Group(links, ordered, tuple(index_of[key] for key in links.devices)))
    is_any_known = any(group.links.is_known for group in groups)
    return tuple(replace(group, is_beside=is_any_known and not group.links.is_known) for group in groups)


def _nearness(links: Links) -> NDArray[np.float64]:
    zones = [place.first_numa for place in links.places]
    return np.array(
        [[ACROSS if None not in (one, other) and one != other else 1.0 for other in zones] for one in zones]
    )
