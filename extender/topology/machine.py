"""The devices of a node in groups of one kind, each with its links."""

from collections.abc import Sequence
from dataclasses import replace

from extender.model.frozen import dataclass
from extender.model.node import Node
from extender.topology.aliases import Member
from extender.topology.configuration import Configuration
from extender.topology.forms import Form, Forms
from extender.topology.links import Links, grouped, links_of
from extender.topology.shape import Shape


@dataclass(frozen=True, eq=False)
class Group:
    """*members*, and *indices* of them among the devices that were asked about, both in the order of the links.

    *form*: what of the links it shares with others like it. *is_beside* tells of devices without known links that
    others on the node have some: they go along with those.
    """

    links: Links
    members: tuple[Member, ...]
    indices: tuple[int, ...]
    form: Form
    is_beside: bool = False

    @property
    def shape(self) -> Shape:
        return self.form.shape


def groups_of(
    node: Node,
    members: Sequence[Member],
    configuration: Configuration,
    forms: Forms | None = None,
    places: Sequence[int] | None = None,
) -> tuple[Group, ...]:
    """Group *members*, all devices of *node*, and work their links out; those of nodes alike are in *forms*.

    *places* are those of the members among the devices that were asked about, where there are others.
    """
    forms = forms or Forms()
    known = range(len(members)) if places is None else places
    index_of = {member.key: index for index, member in zip(known, members, strict=True)}
    groups = []
    for kind in grouped(node, members, configuration):
        links, form = forms.shared(links_of(node, kind, configuration))
        by_key = {member.key: member for member in kind}
        ordered = tuple(by_key[key] for key in links.devices)
        groups.append(Group(links, ordered, tuple(index_of[key] for key in links.devices), form))
    is_any_known = any(group.links.is_known for group in groups)
    return tuple(replace(group, is_beside=is_any_known and not group.links.is_known) for group in groups)
