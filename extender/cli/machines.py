"""Slices and nodes as the devices of each node."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from extender.model.device import ResourceSlice
from extender.model.names import DeviceKey, NodeName, PoolKey
from extender.model.node import Node
from extender.topology.aliases import Member


@dataclass(slots=True)
class Machine:
    """The devices that are published for one node; *is_read* tells whether the node itself was read too."""

    node: Node
    is_read: bool
    members: dict[DeviceKey, Member] = field(default_factory=dict)


def machines_of(nouns: Iterable[ResourceSlice | Node]) -> tuple[list[Machine], int]:
    """Return the nodes that have devices, in the order of their names, and how many devices are of no one node."""
    given = list(nouns)
    slices = [noun for noun in given if isinstance(noun, ResourceSlice)]
    machines = {noun.name: Machine(noun, is_read=True) for noun in given if isinstance(noun, Node)}
    newest = _newest(slices)
    elsewhere = 0
    for published in slices:
        if published.generation < newest[published.pool_key]:
            continue
        for device in published.devices:
            selection = device.traits.selection or published.selection
            if selection is None or selection.node_name is None:
                elsewhere += 1
                continue
            key = DeviceKey(published.driver, published.pool, device.name)
            _of(selection.node_name, machines).members[key] = Member(key, device)
    return [machine for _, machine in sorted(machines.items()) if machine.members], elsewhere


def _newest(slices: Iterable[ResourceSlice]) -> dict[PoolKey, int]:
    """Return the newest generation of each pool: what older slices publish is not there any more."""
    newest: dict[PoolKey, int] = {}
    for published in slices:
        newest[published.pool_key] = max(published.generation, newest.get(published.pool_key, 0))
    return newest


def _of(name: NodeName, machines: dict[NodeName, Machine]) -> Machine:
    return machines.setdefault(name, Machine(Node(name=name), is_read=False))
