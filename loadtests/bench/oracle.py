"""One node's search beside kube-scheduler's own allocator, on the same drawn clusters, in the same run."""

import shutil
from statistics import median
from time import perf_counter_ns
from typing import Any

from extender.allocation.choose import choose
from extender.allocation.fit import Fitter
from extender.allocation.question import Question, Refusal, ask
from extender.allocation.snapshot import Snapshot, with_usage
from extender.allocation.solve import FIRST
from extender.cli.case import Case, case_of
from extender.model.change import Listed
from extender.model.claim import DeviceClass
from extender.model.device import ResourceSlice
from extender.model.node import Node
from extender.model.taint import DeviceTaintRule
from extender.state.cluster import Cluster
from loadtests.bench.report import Report
from tests.allocation.clusters import question
from tests.oracle_program import built

CASES = 2000


def snapshot_of(case: Case) -> Snapshot:
    cluster = Cluster()
    cluster.apply(Listed(ResourceSlice, case.slices))
    cluster.apply(Listed(Node, case.nodes))
    cluster.apply(Listed(DeviceClass, tuple(case.classes.values())))
    snapshot = cluster.apply(Listed(DeviceTaintRule, case.tainting.rules))
    rows = {row: held for device, held in case.usage.items() for row in snapshot.inventory.rows_of(device)}
    return with_usage(snapshot, rows)


def measured(raw: dict[str, Any], told: dict[str, Any]) -> list[tuple[float, float, float]]:
    """Return for each node the microseconds of a search, of a look-up, and of the other allocator."""
    case = case_of(raw)
    try:
        asked = ask([claim for claim in case.claims if not claim.allocation], case.classes, case.features)
    except Refusal:
        return []
    snapshot = snapshot_of(case)
    fitter = Fitter(asked, FIRST)
    fitter.fit(snapshot)
    rows = []
    for node, name in enumerate(snapshot.layout.nodes):
        theirs = told["nodes"][name]["micros"]
        if theirs:
            rows.append((search(snapshot, node, asked), look_up(fitter, snapshot), theirs))
    return rows


def search(snapshot: Snapshot, node: int, asked: Question) -> float:
    """Time one search; nothing is remembered but what the node publishes and what selectors say of it."""
    choose(snapshot, node, asked, FIRST)
    started = perf_counter_ns()
    choose(snapshot, node, asked, FIRST)
    return (perf_counter_ns() - started) / 1000


def look_up(fitter: Fitter, snapshot: Snapshot) -> float:
    started = perf_counter_ns()
    fitter.fit(snapshot)
    return (perf_counter_ns() - started) / 1000


def main() -> None:
    report = Report("oracle")
    if shutil.which("go") is None:
        print("skipped: Go is not installed")
        return
    drawn = [question(f"bench {number}") for number in range(CASES)]
    told = built().ask("allocate", drawn)
    rows = [row for raw, answer in zip(drawn, told, strict=True) for row in measured(raw, answer)]
    ratio = median(ours / theirs for ours, _, theirs in rows)
    warm = median(known / theirs for _, known, theirs in rows)
    theirs = median(row[2] for row in rows)
    report.add(
        "one search, us", f"{median(row[0] for row in rows):.0f}", "", f"{theirs:.0f} by kube-scheduler's allocator"
    )
    report.add("one search, ratio", f"{ratio:.2f}", "2", f"over {len(rows)} nodes of drawn clusters")
    report.add("asked again, ratio", f"{warm:.3f}", "", "the whole cluster's answer looked up")
    report.keep()


if __name__ == "__main__":
    main()
