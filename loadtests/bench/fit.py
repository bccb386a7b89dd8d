"""A question to a whole cluster: cold, after one change, and as the cluster grows."""

from random import Random
from time import perf_counter

from extender.allocation.features import Features
from extender.allocation.fit import Fitter
from extender.allocation.question import Question, ask
from extender.model.change import Changed, Listed
from extender.model.claim import (
    ClaimSpec,
    Constraint,
    DeviceClass,
    DeviceRequest,
    RequestSlot,
    ResourceClaim,
    Selector,
)
from extender.model.device import ResourceSlice
from extender.model.names import ClassName, ObjectKey, Uid
from extender.model.node import Node
from extender.model.parse import parse_claim, parse_node, parse_slice
from extender.state.cluster import Cluster
from loadtests.bench.columns import read
from loadtests.bench.report import Report, median_ms
from tests import fleet

KINDS = 30
GPU, BIG = ClassName("gpu"), ClassName("big")
MEMORY = "device.capacity['gpu.example.com'].memory.compareTo(quantity('120Gi')) >= 0"
CLASSES = {
    GPU: DeviceClass(name=GPU, selectors=(Selector("device.driver == 'gpu.example.com'"),)),
    BIG: DeviceClass(name=BIG, selectors=(Selector(f"device.driver == 'gpu.example.com' && {MEMORY}"),)),
}


def request(name: str, count: int, class_name: ClassName = GPU, *selectors: str) -> DeviceRequest:
    return DeviceRequest(
        name=name, class_name=class_name, mode="ExactCount", count=count, selectors=tuple(map(Selector, selectors))
    )


def question(slots: list[RequestSlot], *constraints: Constraint) -> Question:
    spec = ClaimSpec(requests=tuple(slots), constraints=constraints)
    return ask([ResourceClaim(key=ObjectKey("ns", "c"), uid=Uid("c"), spec=spec)], CLASSES, Features())


NUMA = "gpu.example.com/numa"
HOPPER = "device.attributes['gpu.example.com'].architecture in ['arch-0', 'arch-1', 'arch-2']"
QUESTIONS = {
    "one device": (question([RequestSlot(name="r", exactly=request("r", 1))]), "10"),
    "4 with one numa": (
        question([RequestSlot(name="r", exactly=request("r", 4))], Constraint(match_attribute=NUMA)),
        "60",
    ),
    "alternatives and a selector": (
        question(
            [
                RequestSlot(name="a", first_available=(request("big", 2, BIG), request("small", 4))),
                RequestSlot(name="b", exactly=request("b", 1, GPU, HOPPER)),
            ]
        ),
        "80",
    ),
    "2 with different roots, searched": (
        question(
            [RequestSlot(name="r", exactly=request("r", 2))],
            Constraint(distinct_attribute="resource.kubernetes.io/pcieRoot"),
        ),
        "",
    ),
}


def cluster(nodes: int, random: Random) -> Cluster:
    """Build a fleet of which two fifths are taken, device by device."""
    built = Cluster()
    built.apply(Listed(Node, tuple(read(parse_node(raw)) for raw in fleet.nodes(nodes))))
    raw = fleet.slices(nodes, kinds=KINDS)
    built.apply(Listed(ResourceSlice, tuple(read(parse_slice(item)) for item in raw)))
    built.apply(Listed(ResourceClaim, tuple(holder(number, random) for number in range(nodes))))
    return built


def holder(node: int, random: Random) -> ResourceClaim:
    claim = read(parse_claim(fleet.holder(node, [index for index in range(8) if random.random() < 0.4])))
    if not isinstance(claim, ResourceClaim):
        raise TypeError(claim)
    return claim


def measure(report: Report, nodes: int, *, targets: bool) -> dict[str, float]:
    random = Random(1)  # noqa: S311 - no secret depends on it
    built, cold = cluster(nodes, random), {}
    for what, (asked, target) in QUESTIONS.items():
        fitter = Fitter(asked)
        fitter.fit(built.snapshot)
        cold[what] = median_ms(lambda: Fitter(asked).fit(built.snapshot), 5)  # noqa: B023 - used within this round
        warm = []
        for _ in range(100):
            snapshot = built.apply(Changed(holder(random.randrange(nodes), random)))
            warm.append(median_ms(lambda: fitter.fit(snapshot), 1))  # noqa: B023 - used within this round
        pieces = times_of(Fitter(asked), built)
        longest = f"longest of {len(pieces)} pieces {max(pieces):.1f}"
        share = f"{fitter.fit(built.snapshot).mask.mean():.0%} of the nodes fit; {longest}"
        report.add(f"{nodes:,} nodes, {what}, cold, ms", f"{cold[what]:.2f}", target if targets else "", share)
        report.add(
            f"{nodes:,} nodes, {what}, after one change, ms", f"{sorted(warm)[50]:.3f}", "0.5" if targets else ""
        )
    return cold


def times_of(fitter: Fitter, built: Cluster) -> list[float]:
    """Time each piece of the work on a question."""
    work = fitter.pieces(built.snapshot)
    spent: list[float] = []
    while True:
        started = perf_counter()
        try:
            next(work)
        except StopIteration:
            return [*spent, 1000 * (perf_counter() - started)]
        spent.append(1000 * (perf_counter() - started))


def main() -> None:
    report = Report("fit")
    by_size = {nodes: measure(report, nodes, targets=nodes == 5000) for nodes in (1000, 5000, 15000)}
    for what in QUESTIONS:
        growth = by_size[15000][what] / by_size[1000][what]
        report.add(f"{what}: 15,000 nodes to 1,000, ratio", f"{growth:.1f}", "15")
    report.keep()


if __name__ == "__main__":
    main()
