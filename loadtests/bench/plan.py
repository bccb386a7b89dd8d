"""What one filter, one prioritize and one hopeless pod cost, without the wire."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

from extender.allocation.features import Features
from extender.model.change import Changed, Listed
from extender.model.claim import ClaimSpec, Constraint, Consumer, RequestSlot, ResourceClaim
from extender.model.device import ResourceSlice
from extender.model.names import ObjectKey, Uid
from extender.model.node import Node, Pod, PodClaim
from extender.model.parse import parse_node, parse_slice
from extender.scheduling.choosing import Chooser
from extender.scheduling.planner import Offer, Planner, Rejection
from extender.scheduling.taste import Taste
from extender.state.belief import Belief
from extender.topology.document import Document
from loadtests.bench.columns import read
from loadtests.bench.fit import CLASSES, NUMA, request
from loadtests.bench.report import Report, median_ms
from tests import fleet
from tests.scheduling.cast import surveyed

NUMBERS = count()
SPECS = {
    "one device": ClaimSpec(requests=(RequestSlot(name="r", exactly=request("r", 1)),)),
    "4 with one numa": ClaimSpec(
        requests=(RequestSlot(name="r", exactly=request("r", 4)),), constraints=(Constraint(match_attribute=NUMA),)
    ),
}
HOPELESS = ClaimSpec(requests=(RequestSlot(name="r", exactly=request("r", 9)),))


def belief(nodes: int) -> Belief:
    """Return what is known of a fleet of which nothing is taken."""
    known = Belief(("s",), Features())
    known.apply(Listed(Node, tuple(read(parse_node(raw)) for raw in fleet.nodes(nodes))))
    known.apply(Listed(ResourceSlice, tuple(read(parse_slice(raw)) for raw in fleet.slices(nodes, kinds=30))))
    for item in CLASSES.values():
        known.apply(Changed(item))
    return known


def pod(known: Belief, spec: ClaimSpec) -> Pod:
    """Create a pod with a claim of its own."""
    number = next(NUMBERS)
    claim = ResourceClaim(key=ObjectKey("ns", f"c{number}"), uid=Uid(f"c{number}"), spec=spec, resource_version="1")
    known.apply(Changed(claim))
    entry = PodClaim(name="c", claim_name=claim.key.name)
    made = Pod(key=ObjectKey("ns", f"p{number}"), uid=Uid(f"p{number}"), scheduler="s", claims=(entry,))
    known.apply(Changed(made))
    return made


def bind(known: Belief, offer: Offer) -> None:
    """Show what was offered as the watch does once it is written."""
    placement = offer.placement
    user = Consumer(resource="pods", name="p", uid=surveyed(offer).needs.pod.uid)
    for claim, allocation in placement.claims:
        known.apply(Changed(replace(claim, allocation=allocation, reserved_for=(user,), resource_version="2")))


def planned(known: Belief, planner: Planner, spec: ClaimSpec, names: Sequence[str]) -> Iterator[None]:
    """Plan pods one after the other, each bound before the next."""
    while True:
        plan = planner.plan(pod(known, spec), names, 0.0)
        if not isinstance(plan, Offer):
            raise TypeError(plan)
        yield
        bind(known, plan)


def main() -> None:
    report = Report("plan")
    for nodes in (500, 5000):
        known = belief(nodes)
        taste = Taste(Document(), known.learning.mix_for)
        planner = Planner(known, Chooser(known, lambda: "share", taste=taste))
        names = list(known.cluster.snapshot.layout.nodes)
        for what, spec in SPECS.items():
            rounds = planned(known, planner, spec, names)
            next(rounds)
            spent = median_ms(lambda: next(rounds), 200)  # noqa: B023 - used within this round
            report.add(f"{what}, {nodes} names: pod made, planned and bound, ms", f"{spent:.2f}")
        lost = pod(known, HOPELESS)
        if not isinstance(planner.plan(lost, names, 0.0), Rejection):
            raise TypeError(lost)
        spent = median_ms(lambda: planner.plan(lost, names, 0.0), 1000)  # noqa: B023 - used within this round
        report.add(f"hopeless again, {nodes} names, ms", f"{spent:.3f}")
        plain = Pod(key=ObjectKey("ns", "plain"), uid=Uid("plain"), scheduler="s")
        spent = median_ms(lambda: planner.plan(plain, names, 0.0), 1000)  # noqa: B023 - used within this round
        report.add(f"no devices needed, {nodes} names, ms", f"{spent:.4f}")
    report.keep()


if __name__ == "__main__":
    main()
