"""What a plan costs right after something has come or gone: everything about its question was known before."""

import gc
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice
from statistics import median
from time import thread_time_ns

from extender.model.change import Change, Changed, Gone
from extender.model.device import ResourceSlice
from extender.model.names import ObjectKey
from extender.model.node import Node
from extender.model.taint import NO_SCHEDULE, DeviceTaintRule, Taint, TaintSelector
from extender.state.belief import Belief
from loadtests.bench import choose
from loadtests.bench.report import Report
from loadtests.bench.steady import NUMBERS, Stream, claim, flat
from tests.scheduling.machines import NVIDIA, wanted

PODS = 30
# The first pods of a question find out what its nodes are worth.
FIRST = 5
LOOP = 500_000
SICK = (Taint(key="sick", effect=NO_SCHEDULE),)
RULE = DeviceTaintRule(name="owned", selector=TaintSelector(driver=NVIDIA), taint=Taint(key="owned", effect="None"))


def changes(known: Belief) -> dict[str, tuple[Change, ...]]:
    """Return what happens by turns, by a name: it is as before after each round."""
    snapshot = known.cluster.snapshot
    node, place = snapshot.nodes[snapshot.layout.nodes[-1]], len(snapshot.inventory.slices) // 2
    published = snapshot.inventory.slices[place]
    first, *others = published.devices
    sick = replace(published, devices=(replace(first, traits=replace(first.traits, taints=SICK)), *others))
    return {
        "nothing": (),
        "a node comes or goes": (Gone(Node, ObjectKey("", node.name)), Changed(node)),
        "a slice comes or goes": (Gone(ResourceSlice, ObjectKey("", published.name)), Changed(published)),
        "a device comes or goes": (Changed(replace(published, devices=(first, *others[1:]))), Changed(published)),
        "a device is tainted or not": (Changed(sick), Changed(published)),
        "the same, with a rule": (Changed(RULE), Changed(sick), Changed(published)),
    }


def spent(stream: Stream, turns: tuple[Change, ...]) -> Iterator[tuple[float, float]]:
    """Yield what it took to see a change, and to plan the next pod, in ms of CPU."""
    if len(turns) > 2:
        stream.known.apply(turns[0])
    plans = stream.planned()
    next(plans)
    for change in cycle(turns[-2:] or (None,)):
        started = thread_time_ns()
        if change is not None:
            stream.known.apply(change)
        yield (thread_time_ns() - started) / 1e6, next(plans) / 1e6


def streams(nodes: int) -> Iterator[tuple[str, Stream]]:
    known = flat(nodes, 8)
    yield f"1 device, {nodes} x 8", Stream(known, lambda: claim("one"), _names(known))
    known = choose.belief(nodes)
    yield f"2 GPUs, {nodes} DGX-1V", Stream(known, lambda: wanted(f"c{next(NUMBERS)}", 2), _names(known))


def same() -> float:
    """Return what a loop took that is always the same, in ms of CPU: how these differ is the machine's."""
    started = thread_time_ns()
    sum(range(LOOP))
    return (thread_time_ns() - started) / 1e6


def _names(known: Belief) -> list[str]:
    return list(map(str, known.cluster.snapshot.layout.nodes))


def main() -> None:
    report = Report("churn")
    for nodes in (500, 5000, 15_000):
        for shape, stream in streams(nodes):
            for what, turns in changes(stream.known).items():
                gc.disable()
                took = list(islice(spent(stream, turns), FIRST + PODS))[FIRST:]
                gc.enable()
                seen, planned = zip(*took, strict=True)
                beside = f"the longest {max(planned):.1f}; seeing it {median(seen):.1f}"
                report.add(f"{shape}, {what}: plan, ms of CPU", f"{median(planned):.1f}", "50", beside)
    alike = [same() for _ in range((len(report.rows) - 1) * PODS)]
    report.add("a loop, as often as all that: ms of CPU", f"{median(alike):.1f}", "", f"the longest {max(alike):.1f}")
    report.note(f"medians of {PODS} pods, before each of which something comes or goes")
    report.keep()


if __name__ == "__main__":
    main()
