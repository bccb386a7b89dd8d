"""What shared devices cost: built once, brought up to date for every pod, and ranked."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from statistics import median

from extender.allocation.features import Features
from extender.model.change import Changed, Listed
from extender.model.claim import ClaimSpec, RequestSlot, ResourceClaim
from extender.model.device import Attribute, Capacity, Device, NodeSelection, ResourceSlice, Traits
from extender.model.footprint import Footprint
from extender.model.names import DeviceName, DriverName, NodeName, ObjectKey, PoolName, Uid
from extender.model.node import Node, Pod, PodClaim
from extender.model.quantity import parse_quantity
from extender.model.terms import Terms
from extender.scheduling.choosing import Chooser
from extender.scheduling.commons import Commons
from extender.scheduling.planner import Offer, Planner
from extender.scheduling.taste import Taste
from extender.state.belief import Belief
from extender.topology.document import Document
from loadtests.bench.fit import CLASSES, request
from loadtests.bench.plan import bind
from loadtests.bench.report import Report, times_ms
from tests import fleet

NODES, DEVICES, PODS = 5000, 8, 1000
# Nodes that have two devices, each of a size of its own, as memory has; and pods that come then.
UNEVEN, FEW = 1000, 5
AMOUNTS, CPUS = (100, 250, 500, 1000), (1, 4, 8)
NUMBERS = count()


def published(name: str, product: str, sizes: Sequence[int] = (1000,) * DEVICES) -> ResourceSlice:
    traits, told = Traits(allow_multiple_allocations=True), (("productName", Attribute("string", product)),)
    capacities = [(("milli", Capacity(parse_quantity(str(size)))),) for size in sizes]
    return ResourceSlice(
        name=f"{name}-gpus",
        driver=DriverName(fleet.DRIVER),
        pool=PoolName(name),
        generation=1,
        slice_count=1,
        selection=NodeSelection(node_name=NodeName(name)),
        devices=tuple(Device(DeviceName(f"gpu-{at}"), told, has, traits) for at, has in enumerate(capacities)),
    )


def even() -> list[ResourceSlice]:
    """Publish nodes of three products."""
    return [published(f"n{number:05d}", f"product-{number % 3}") for number in range(NODES)]


def uneven() -> list[ResourceSlice]:
    """Publish as many models as there are devices."""
    return [published(f"n{number:05d}", "memory", (1000 + 2 * number, 1001 + 2 * number)) for number in range(UNEVEN)]


def belief(slices: Sequence[ResourceSlice]) -> Belief:
    """Return nodes with *slices*, of which nothing is taken."""
    known, names = Belief(("s",), Features()), [str(item.pool) for item in slices]
    amounts = (("cpu", parse_quantity("96")), ("memory", parse_quantity("512Gi")))
    known.apply(Listed(Node, tuple(Node(name=NodeName(name), allocatable=amounts) for name in names)))
    known.apply(Listed(ResourceSlice, tuple(slices)))
    known.apply(Listed(Footprint, ()))
    for item in CLASSES.values():
        known.apply(Changed(item))
    return known


def pod(known: Belief, number: int) -> Pod:
    """Create a pod with a claim of its own, of one of a dozen kinds."""
    exactly = replace(request("r", 1), capacity=(("milli", parse_quantity(str(AMOUNTS[number % len(AMOUNTS)]))),))
    key, spec = ObjectKey("ns", f"p{number}"), ClaimSpec(requests=(RequestSlot(name="r", exactly=exactly),))
    known.apply(Changed(ResourceClaim(key=key, uid=Uid(f"c{number}"), spec=spec, resource_version="1")))
    needed = Terms(amounts=(("cpu", 1000 * CPUS[number % len(CPUS)]), ("memory", 4 << 30)))
    entry = PodClaim(name="c", claim_name=key.name)
    return Pod(key=key, uid=Uid(f"p{number}"), scheduler="s", claims=(entry,), terms=needed)


class Stand:
    """Plans pods one after the other; what each step took is kept, in ms."""

    def __init__(self, slices: Sequence[ResourceSlice]) -> None:
        self.known = belief(slices)
        self.commons = Commons(self.known.loads)
        taste = Taste(Document(), self.known.learning.mix_for, self.commons)
        self.planner = Planner(self.known, Chooser(self.known, lambda: f"s{next(NUMBERS)}", taste=taste))
        self.names = list(self.known.cluster.snapshot.layout.nodes)

    def look(self) -> None:
        self.commons.look(self.known.seen_by())

    def plan(self, made: Pod, plans: list[object]) -> None:
        plans.append(self.planner.plan(made, self.names, 0.0))

    def rounds(self, pods: int) -> Iterator[tuple[float, float]]:
        """Yield what bringing the fleet up to date took, and what the plan after it did."""
        for number in range(pods):
            made = pod(self.known, number)
            (looked,) = times_ms(self.look, 1)
            plans = list[object]()
            (planned,) = times_ms(partial(self.plan, made, plans), 1)
            (plan,) = plans
            if not isinstance(plan, Offer):
                raise TypeError(plan)
            bind(self.known, plan)
            node, taken = plan.placement.node, made.terms.amounts
            self.known.apply(Changed(Footprint(key=made.key, uid=made.uid, node=node, amounts=taken)))
            yield looked, planned

    def plain(self, pods: int) -> Iterator[float]:
        """Yield what the plan of a pod takes that needs no devices, each after another was bound."""
        for number in range(pods):
            key, uid, node = ObjectKey("ns", f"x{number}"), Uid(f"x{number}"), NodeName(self.names[0])
            self.known.apply(Changed(Footprint(key=key, uid=uid, node=node, amounts=(("cpu", 100),))))
            made = Pod(key=ObjectKey("ns", f"plain{number}"), uid=Uid(f"plain{number}"), scheduler="s")
            yield from times_ms(partial(self.plan, made, []), 1)


def main() -> None:
    report, stand = Report("sharing"), Stand(even())
    (built,) = times_ms(stand.look, 1)
    report.add(f"{NODES:,} nodes of {DEVICES}: built once, ms", f"{built:.1f}", "50")
    looked, planned = (sorted(column) for column in zip(*stand.rounds(PODS), strict=True))
    tail = PODS * 99 // 100
    report.add(
        "brought up to date after a pod was bound, ms", f"{median(looked):.2f}", "2", f"99 %: {looked[tail]:.2f}"
    )
    report.add("planned, ms", f"{median(planned):.2f}", "", f"99 %: {planned[tail]:.1f}, longest {planned[-1]:.0f}")
    sizes = Stand(uneven())
    (built,) = times_ms(sizes.look, 1)
    report.add(f"{UNEVEN:,} nodes of two, all of different sizes: built once, ms", f"{built:.1f}")
    spent, what = sorted(sizes.plain(FEW)), "a pod without devices planned after one was bound, ms"
    report.add(what, f"{median(spent):.2f}", "", f"longest {spent[-1]:.2f}")
    report.keep()


if __name__ == "__main__":
    main()
