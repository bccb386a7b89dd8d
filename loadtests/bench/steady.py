"""What the plan of a pod costs whose like was planned before: pods with claims of their own, one after the other."""

import gc
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from statistics import mean, median
from time import thread_time_ns
from typing import Any

import numpy as np

from extender.allocation.features import Features
from extender.model.change import Changed, Gone, Listed
from extender.model.claim import Consumer, ResourceClaim
from extender.model.device import ResourceSlice
from extender.model.names import ObjectKey, Uid
from extender.model.node import Node, Pod, PodClaim
from extender.model.parse import parse_claim, parse_class, parse_node, parse_slice
from extender.scheduling.choosing import Chooser
from extender.scheduling.commons import Commons
from extender.scheduling.planner import Offer, Planner
from extender.scheduling.taste import Taste
from extender.service.sending import FEWEST_NODES
from extender.state.belief import Belief
from extender.topology.document import Document
from loadtests.bench import choose
from loadtests.bench.columns import read
from loadtests.bench.report import Report
from loadtests.endtoend.rig import OURS, device_class, node, published
from loadtests.endtoend.throughput import SHAPES
from tests.scheduling.cast import surveyed
from tests.scheduling.machines import NUMA, wanted

PODS = 1000
# Pods that are being bound while others are planned, and of those on linked machines, which are nearly full, the ones
# that run at once.
BINDING, RUNNING = 3, 4
NUMBERS = count()
TARGETS = {500: "300", 5000: "600"}
LINKED = {"1 GPU": (1, ""), "2 GPUs": (2, ""), "4 GPUs of one NUMA node": (4, NUMA)}


def flat(nodes: int, devices: int) -> Belief:
    """Return the cluster of the end-to-end runs."""
    known, names = Belief((OURS,), Features()), [f"n{number:05d}" for number in range(nodes)]
    known.apply(Listed(Node, tuple(read(parse_node(_stored(node(name)))) for name in names)))
    slices = (parse_slice(_stored(published(name, devices))) for name in names)
    known.apply(Listed(ResourceSlice, tuple(map(read, slices))))
    known.apply(Changed(read(parse_class(_stored(device_class())))))
    return known


def _stored(raw: dict[str, Any]) -> dict[str, Any]:
    """Add what the API server adds."""
    return raw | {"metadata": raw["metadata"] | {"uid": raw["metadata"]["name"], "resourceVersion": "1"}}


def claim(shape: str) -> ResourceClaim:
    """Make a claim as the API server does from a template of the end-to-end runs."""
    asked, usual = SHAPES[shape], {"allocationMode": "ExactCount", "count": 1}
    requests = [item | {"exactly": usual | item["exactly"]} for item in asked["requests"]]
    metadata = {"name": f"c{next(NUMBERS)}", "namespace": "default"}
    found = read(parse_claim(_stored({"metadata": metadata, "spec": {"devices": asked | {"requests": requests}}})))
    if not isinstance(found, ResourceClaim):
        raise TypeError(found)
    return found


@dataclass(slots=True)
class Stream:
    """Pods with claims that *make* makes, planned among *names*, or ahead of the scheduler where there are none."""

    known: Belief
    make: Callable[[], ResourceClaim]
    names: Sequence[str] | None
    running: int | None = None

    def planned(self) -> Iterator[int]:
        """Plan pods, and bind them a little later; yield what each plan took, in ns of CPU."""
        taste = Taste(Document(), self.known.learning.mix_for, Commons(self.known.loads))
        planner = Planner(self.known, Chooser(self.known, lambda: "share", taste=taste))
        binding, bound, is_answer = deque[tuple[Pod, Offer]](), deque[ResourceClaim](), self.names is not None
        suitable = None if is_answer else np.ones(len(self.known.cluster.snapshot.layout.nodes), np.bool_)
        while True:
            subject = self._pod()
            started = thread_time_ns()
            plan = planner.plan(subject, self.names, 0.0, is_answer=is_answer, suitable=suitable)
            yield thread_time_ns() - started
            if not isinstance(plan, Offer):
                raise TypeError(plan)
            self.known.ledger.reserve(plan.placement.promise(surveyed(plan).needs, 0.0))
            binding.append((subject, plan))
            if len(binding) > BINDING:
                bound.extend(self._shown(*binding.popleft()))
            if self.running is not None and len(bound) > self.running:
                self.known.apply(Gone(ResourceClaim, bound.popleft().key))

    def _pod(self) -> Pod:
        made = self.make()
        self.known.apply(Changed(made))
        name = f"p{next(NUMBERS)}"
        entry = PodClaim(name="r", claim_name=made.key.name)
        subject = Pod(key=ObjectKey(made.key.namespace, name), uid=Uid(name), scheduler=OURS, claims=(entry,))
        self.known.apply(Changed(subject))
        return subject

    def _shown(self, subject: Pod, plan: Offer) -> Iterator[ResourceClaim]:
        """Show the claims and the pod as the watch does once it is bound."""
        user = Consumer(resource="pods", name=subject.key.name, uid=subject.uid)
        for item, allocation in plan.placement.claims:
            written = replace(item, allocation=allocation, reserved_for=(user,), resource_version="2")
            self.known.apply(Changed(written))
            yield written
        self.known.apply(Changed(replace(subject, node_name=plan.placement.node)))


def streams(nodes: int) -> Iterator[tuple[str, Stream]]:
    """Yield each shape on a cluster of its own."""
    devices = 10 if nodes == 500 else 8
    for shape in SHAPES:
        known = flat(nodes, devices)
        yield f"{shape}, {nodes} x {devices}", Stream(known, lambda: claim(shape), _names(known))  # noqa: B023 - used within this round
    for what, (size, match) in LINKED.items():
        known = choose.belief(nodes)
        make = lambda: wanted(f"c{next(NUMBERS)}", size, match)  # noqa: B023, E731 - used within this round
        yield f"{what}, {nodes} DGX-1V", Stream(known, make, _names(known), RUNNING)


def _names(known: Belief) -> list[str] | None:
    """Name all nodes where the scheduler does; where there are many, pods are planned before it asks."""
    names = known.cluster.snapshot.layout.nodes
    return list(map(str, names)) if len(names) < FEWEST_NODES else None


def main() -> None:
    report = Report("steady")
    for nodes in (500, 1000, 5000):
        for what, stream in streams(nodes):
            rounds = stream.planned()
            first = next(rounds)
            gc.disable()
            spent = [next(rounds) / 1000 for _ in range(PODS)]
            gc.enable()
            beside = f"mean {mean(spent):.0f}, the first {first / 1e6:.1f} ms"
            report.add(f"{what}: plan, us of CPU", f"{median(spent):.0f}", TARGETS.get(nodes, ""), beside)
    report.note(
        f"medians of {PODS} pods: CPU time of the thread that plans; what else runs on the machine costs it caches"
    )
    report.keep()


if __name__ == "__main__":
    main()
