"""Devices that were chosen for a pod, to be had again without a search as long as they are as they were."""

from collections.abc import Callable
from dataclasses import field
from operator import is_
from typing import NamedTuple

from extender.allocation.columns import are_same
from extender.allocation.snapshot import Snapshot
from extender.allocation.surroundings import Surroundings, surroundings
from extender.model.frozen import dataclass
from extender.model.names import DeviceKey, NodeName, Uid
from extender.scheduling.needs import Needs
from extender.scheduling.placement import Placement
from extender.topology.memo import Memo

# Pods whose devices are remembered: those between being planned and being bound.
REMEMBERED = 1024


class World(NamedTuple):
    """What decides, beside what is taken, whether devices can be had on a node."""

    slices: Surroundings
    rules: object
    classes: object
    node: object
    taste: object

    def is_like(self, other: "World") -> bool:
        """Tell whether *other* is the same in everything."""
        return are_same(self.slices, other.slices) and all(map(is_, self[1:], other[1:]))


class Grounds(NamedTuple):
    """The parts of the cluster that worlds are taken from: as long as these are the same, so is each world."""

    inventory: object
    layout: object
    reach: object
    rules: object
    classes: object
    nodes: object
    taste: object

    def are(self, others: "Grounds | None") -> bool:
        """Tell whether *others* are the same objects."""
        return others is not None and all(map(is_, self, others))


@dataclass(frozen=True, slots=True)
class Kept:
    """What was chosen, for what was asked, in which world, and which devices these are."""

    asked: tuple[object, ...]
    world: World
    devices: tuple[DeviceKey, ...]
    placement: Placement


@dataclass(slots=True)
class Recall:
    """The last placement of each pod. One writer."""

    _kept: Memo[Uid, Kept] = field(default_factory=lambda: Memo(REMEMBERED))

    def put(self, needs: Needs, placement: Placement, snapshot: Snapshot, taste: object) -> None:
        """Remember *placement*, where it is of devices that nobody shares: these are free, or they are not."""
        self._kept.pop(needs.pod.uid, None)
        devices = tuple(given.device for _, claim in placement.claims for given in claim.devices)
        if devices and all(_is_whole(device, snapshot) for device in devices):
            world = world_of(snapshot, placement.node, taste)
            self._kept[needs.pod.uid] = Kept(_asked(needs), world, devices, placement)

    def drop(self, pod: Uid) -> None:
        """Forget what was chosen for a pod that waits no longer."""
        self._kept.pop(pod, None)

    def get(
        self, needs: Needs, node: NodeName, snapshot: Snapshot, taste: object, is_left: Callable[[DeviceKey], bool]
    ) -> Placement | None:
        """Return what the pod was given on *node*, where it is free in *snapshot* and *is_left* to it by promises."""
        kept = self._kept.get(needs.pod.uid)
        if kept is None or kept.placement.node != node or kept.asked != _asked(needs):
            return None
        if not kept.world.is_like(world_of(snapshot, node, taste)):
            return None
        is_had = all(_is_free(device, snapshot) and is_left(device) for device in kept.devices)
        return kept.placement if is_had else None


def _asked(needs: Needs) -> tuple[object, ...]:
    return needs.pending, needs.allocated, needs.extended


def world_of(snapshot: Snapshot, node: NodeName, taste: object) -> World:
    """Return what decides on *node* now."""
    slices = surroundings(snapshot, node)
    return World(slices, snapshot.rules, snapshot.classes, snapshot.nodes.get(node), taste)


def grounds_of(snapshot: Snapshot, taste: object) -> Grounds:
    """Return the parts that worlds are taken from, as they are now."""
    return Grounds(
        snapshot.inventory, snapshot.layout, snapshot.reach, snapshot.rules, snapshot.classes, snapshot.nodes, taste
    )


def _is_whole(device: DeviceKey, snapshot: Snapshot) -> bool:
    """Tell whether *device* is free, and for one alone."""
    if not _is_free(device, snapshot):
        return False
    traits = snapshot.inventory.device(snapshot.inventory.rows_of(device)[0]).traits
    return not (traits.consumes_counters or traits.allow_multiple_allocations)


def _is_free(device: DeviceKey, snapshot: Snapshot) -> bool:
    rows = snapshot.inventory.rows_of(device)
    return len(rows) == 1 and not snapshot.usage.codes[rows[0]]
