"""What it takes us at once to take over what is listed again, and nobody has changed."""

import gc
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import replace
from statistics import median
from time import thread_time_ns

from extender.kube.listing import Recall, itself
from extender.model.change import Kind, Listed, Noun
from extender.model.claim import AllocatedDevice, Allocation, Consumer, ResourceClaim
from extender.model.device import Device, ResourceSlice, common
from extender.model.footprint import Footprint
from extender.model.names import ObjectKey, Uid
from extender.model.node import Node
from extender.model.taint import NO_SCHEDULE, Taint
from extender.state.belief import Belief
from extender.state.domain import Domain
from loadtests.bench.report import Report
from loadtests.bench.steady import claim, flat

ROUNDS = 5
KEPT = Taint(key="owned.example.com", effect=NO_SCHEDULE)
AMOUNTS = (("cpu", 4000), ("memory", 1 << 34), ("pods", 1))


def taken(known: Belief, count: int) -> tuple[ResourceClaim, ...]:
    """Return claims that have a device each, the first ones."""
    made, inventory = claim("one"), known.cluster.snapshot.inventory
    return tuple(
        replace(
            made,
            key=ObjectKey("default", f"c{row}"),
            uid=Uid(f"c{row}"),
            allocation=Allocation(devices=(AllocatedDevice(request="r", device=inventory.key(row)),)),
            reserved_for=(Consumer(resource="pods", name=f"p{row}", uid=Uid(f"p{row}")),),
            resource_version=str(row),
        )
        for row in range(count)
    )


def tainted(slices: Iterable[ResourceSlice]) -> tuple[ResourceSlice, ...]:
    """Return *slices* as they come from the API server where the owner's taint is on each device."""
    return tuple(replace(item, devices=tuple(map(kept, item.devices))) for item in slices)


def kept(device: Device) -> Device:
    return replace(device, traits=common(replace(device.traits, taints=(KEPT,))))


def bound(known: Belief, count: int) -> tuple[Footprint, ...]:
    """Return as many bound pods, spread over all nodes."""
    nodes = known.cluster.snapshot.layout.nodes
    return tuple(
        Footprint(
            key=ObjectKey("default", f"p{number}"),
            uid=Uid(f"p{number}"),
            node=nodes[number % len(nodes)],
            amounts=AMOUNTS,
        )
        for number in range(count)
    )


def spent(known: Belief, kind: Kind, items: Sequence[Noun], recall: Recall) -> tuple[float, float]:
    """List copies of *items*, and return what it took to recall and to take them over, in ms of CPU."""
    copies = deepcopy(items)
    gc.disable()
    started = thread_time_ns()
    recalled = tuple(map(recall, copies))
    between = thread_time_ns()
    known.apply(Listed(kind, recalled))
    ended = thread_time_ns()
    gc.enable()
    return (between - started) / 1e6, (ended - between) / 1e6


def main() -> None:
    report = Report("relist")
    for nodes in (500, 5000, 15_000):
        known = flat(nodes, 8)
        known.ownership.domain = Domain(taint=KEPT.key)
        pods = min(8 * nodes, 40_000)
        lists: dict[str, tuple[Kind, Sequence[Noun]]] = {
            "claims": (ResourceClaim, taken(known, pods)),
            "slices": (ResourceSlice, tuple(known.cluster.snapshot.inventory.slices)),
            "slices that their driver taints": (ResourceSlice, tainted(known.cluster.snapshot.inventory.slices)),
            "nodes": (Node, tuple(known.cluster.snapshot.nodes.values())),
            "bound pods": (Footprint, bound(known, pods)),
        }
        for what, (kind, items) in lists.items():
            known.apply(Listed(kind, tuple(items)))
            plain, ours = (
                [spent(known, kind, items, recall) for _ in range(ROUNDS)] for recall in (itself, known.recalled)
            )
            before, (recalling, at_once) = median(took for _, took in plain), map(median, zip(*ours, strict=True))
            beside = f"{before:.1f} where nothing is recalled; recalling, in short turns before that, {recalling:.1f}"
            report.add(f"{nodes} nodes, {len(items)} {what}: at once, ms of CPU", f"{at_once:.1f}", "50", beside)
    report.note(f"medians of {ROUNDS} lists that say what is known already")
    report.keep()


if __name__ == "__main__":
    main()
