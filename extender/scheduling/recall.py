"""Devices that were chosen for a pod, to be had again without a search as long as they are as they were."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import is_
from typing import NamedTuple

from extender.allocation.inventory import Inventory
from extender.allocation.snapshot import Snapshot
from extender.model.claim import Allocation
from extender.model.names import DeviceKey, NodeName, Uid
from extender.scheduling.needs import Needs
from extender.scheduling.placement import Placement

# Pods whose devices are remembered: those between being planned and being bound.
REMEMBERED = 1024


class World(NamedTuple):
    """What decides, beside what is taken, whether devices can be had."""

    inventory: object
    layout: object
    reach: object
    rules: object
    classes: object
    node: object
    taste: object


@dataclass(frozen=True, slots=True)
class Kept:
    """What was chosen, for what was asked, in which world; *rows* of the inventory, and the devices there."""

    asked: tuple[object, ...]
    world: World
    rows: tuple[int, ...]
    devices: tuple[DeviceKey, ...]
    placement: Placement


@dataclass(slots=True)
class Recall:
    """The last placement of each pod. One writer."""

    _kept: OrderedDict[Uid, Kept] = field(default_factory=OrderedDict)

    def put(self, needs: Needs, placement: Placement, snapshot: Snapshot, taste: object) -> None:
        """Remember *placement*, where it is of devices that nobody shares: these are free, or they are not."""
        self._kept.pop(needs.pod.uid, None)
        rows = _rows(placement, snapshot)
        if rows is not None:
            world = _world(snapshot, placement.node, taste)
            devices = tuple(given.device for _, claim in placement.claims for given in claim.devices)
            self._kept[needs.pod.uid] = Kept(_asked(needs), world, rows, devices, placement)
            if len(self._kept) > REMEMBERED:
                self._kept.popitem(last=False)

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
        is_same = all(map(is_, kept.world, _world(snapshot, node, taste)))
        is_free = is_same and not any(snapshot.usage.codes[row] for row in kept.rows)
        return kept.placement if is_free and all(map(is_left, kept.devices)) else None


def _asked(needs: Needs) -> tuple[object, ...]:
    return needs.pending, needs.allocated, needs.extended


def _world(snapshot: Snapshot, node: NodeName, taste: object) -> World:
    known = snapshot.nodes.get(node)
    return World(
        snapshot.inventory, snapshot.layout, snapshot.reach.seen, snapshot.rules, snapshot.classes, known, taste
    )


def _rows(placement: Placement, snapshot: Snapshot) -> tuple[int, ...] | None:
    """Return where the devices of *placement* are; None where they are not free or not free for one alone."""
    found: list[int] = []
    for _, allocation in placement.claims:
        for rows in _rows_of(allocation, snapshot.inventory):
            if len(rows) != 1 or snapshot.usage.codes[rows[0]]:
                return None
            traits = snapshot.inventory.device(rows[0]).traits
            if traits.consumes_counters or traits.allow_multiple_allocations:
                return None
            found.append(rows[0])
    return tuple(found) or None


def _rows_of(allocation: Allocation, inventory: Inventory) -> Iterable[tuple[int, ...]]:
    return (inventory.rows_of(result.device) for result in allocation.devices)
