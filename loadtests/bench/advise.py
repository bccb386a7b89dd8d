"""What the filter of an advisor costs: pods with claims of their own, given at once what first fit gives."""

import gc
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, cycle
from statistics import median
from time import thread_time_ns

from extender.model.change import Changed, Gone
from extender.model.claim import Consumer, ResourceClaim
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.node import Node, Pod, PodClaim
from extender.scheduling.advice import Advice, Advisor
from extender.scheduling.commons import Commons
from extender.scheduling.taste import Taste
from extender.state.belief import Belief
from extender.topology.document import Document
from loadtests.bench import choose
from loadtests.bench.report import Report
from loadtests.bench.steady import claim, flat
from loadtests.endtoend.rig import OURS
from tests.scheduling.machines import wanted

PODS = 200
# Each of them has all nodes looked at.
PODS_OF_CHURN = 30
# The first pods of a question find out what its nodes are worth.
FIRST = 5
NUMBERS = count()


def advised(known: Belief, make: Callable[[], ResourceClaim], *, churns: bool = False) -> Iterator[int]:
    """Advise on pods that are bound at once; yield what that took, in ns of CPU.

    Where the cluster *churns* its last node goes or comes back before each pod.
    """
    advisor = Advisor(known, lambda: "share", taste=Taste(Document(), known.learning.mix_for, Commons(known.loads)))
    names = tuple(map(str, known.cluster.snapshot.layout.nodes))
    last = known.cluster.snapshot.nodes[NodeName(names[-1])]
    for is_there in cycle((True, False)):
        if churns:
            known.apply(Gone(Node, ObjectKey("", last.name)) if is_there else Changed(last))
        made, name = make(), f"p{next(NUMBERS)}"
        entry = PodClaim(name="r", claim_name=made.key.name)
        subject = Pod(key=ObjectKey(made.key.namespace, name), uid=Uid(name), scheduler=OURS, claims=(entry,))
        known.apply(Changed(made))
        known.apply(Changed(subject))
        started = thread_time_ns()
        advice = advisor.advise(subject, names)
        yield thread_time_ns() - started
        if not isinstance(advice, Advice) or advice.placement is None:
            raise TypeError(advice)
        user = Consumer(resource="pods", name=name, uid=subject.uid)
        for item, allocation in advice.placement.claims:
            known.apply(Changed(replace(item, allocation=allocation, reserved_for=(user,), resource_version="2")))
        known.apply(Changed(replace(subject, node_name=advice.placement.node)))


def main() -> None:
    report = Report("advise")
    for nodes in (500, 5000, 15_000):
        pairs = lambda: wanted(f"c{next(NUMBERS)}", 2)  # noqa: E731 - as the others are
        streams = {
            f"1 device, {nodes} x 8": (PODS, advised(flat(nodes, 8), lambda: claim("one"))),
            f"2 GPUs, {nodes} DGX-1V": (PODS, advised(choose.belief(nodes), pairs)),
            f"2 GPUs, a node comes or goes, {nodes} DGX-1V": (
                PODS_OF_CHURN,
                advised(choose.belief(nodes), pairs, churns=True),
            ),
        }
        for what, (pods, stream) in streams.items():
            first = [next(stream) / 1e6 for _ in range(FIRST)]
            gc.disable()
            spent = [next(stream) / 1e6 for _ in range(pods)]
            gc.enable()
            beside = f"the longest {max(spent):.1f}; of the first {FIRST}: {max(first):.0f}"
            report.add(f"{what}: filter, ms of CPU", f"{median(spent):.2f}", "50", beside)
    report.note(f"medians of {PODS} pods, of {PODS_OF_CHURN} where nodes come and go")
    report.note("CPU time of the thread that decides; names are looked up one by one")
    report.keep()


if __name__ == "__main__":
    main()
