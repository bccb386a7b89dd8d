"""Pods bound a second: kube-scheduler's own allocator, an extender that decides nothing, and ours."""

import asyncio
import os
import platform
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from extender.service.sending import FEWEST_NODES
from loadtests.bench.report import Report
from loadtests.endtoend.metrics import counted, scraped
from loadtests.endtoend.rig import DRIVER, IN_TREE, OURS, Rig, rig, template
from tests.controlplane.client import Object
from tests.controlplane.manifests import grant
from tests.controlplane.programs import plane

PATIENCE_S = 300
STATIC = "static"
WHO = (IN_TREE, STATIC, OURS)
ONE: Object = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}
SELECTED: Object = {
    "requests": [
        {
            "name": "gpu",
            "exactly": {
                "deviceClassName": "gpu",
                "selectors": [{"cel": {"expression": f"device.attributes['{DRIVER}'].model == 'A'"}}],
            },
        }
    ]
}
MATCHED: Object = {
    "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 2}}],
    "constraints": [{"requests": ["gpu"], "matchAttribute": f"{DRIVER}/numa"}],
}
SHAPES = {"one": ONE, "selector": SELECTED, "match": MATCHED}


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything there is."""

    nodes: int
    devices: int
    pods: int

    def __str__(self) -> str:
        return f"{self.nodes} x {self.devices}"


@dataclass(frozen=True, slots=True)
class Run:
    """Pods a second while the cluster is filled, and then; what a pod came to, and what else the extender counted."""

    filling: float
    measured: float
    costs: list[str]


@dataclass(slots=True)
class Runs:
    """All runs of one shape, by who scheduled."""

    by_who: dict[str, list[Run]] = field(default_factory=dict)

    def median(self, who: str, part: str) -> float:
        return median(float(getattr(run, part)) for run in self.by_who[who])


async def bound(here: Rig, scheduler: str, shape: str, count: int) -> list[float]:
    """Fill the cluster, then measure: pods a second over each part, from the first to the last bound."""
    rates = []
    for part in ("fill", "measured"):
        names = [f"{shape}-{part}-{number:05d}" for number in range(count)]
        await here.pods(names, scheduler, shape)
        times = await here.bound.until(names, PATIENCE_S)
        if len(times) < count:
            sys.stderr.write(f"{scheduler} {shape} {part}: only {len(times)} of {count} bound\n")
        rates.append((len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0)
    return rates


def scheduling(
    here: Rig, who: str, shape: str, size: Size, flags: Sequence[str]
) -> AbstractAsyncContextManager[int | None]:
    if who == IN_TREE:
        return here.in_tree()
    if who == STATIC:
        # It sends pods ahead where ours does: both make the same writes.
        ahead = ["--ahead"] if size.nodes >= FEWEST_NODES else []
        return here.static(size.nodes, f"--count={2 if shape == 'match' else 1}", *ahead)
    return here.ours(*flags)


async def run(who: str, shape: str, size: Size, flags: Sequence[str]) -> Run:
    """Start everything anew, and measure one of them with one shape of claims."""
    with tempfile.TemporaryDirectory() as folder:
        async with rig(plane(), Path(folder), grant) as here:
            await here.fill(size.nodes, size.devices)
            await here.admin.create(template(shape, SHAPES[shape]))
            async with scheduling(here, who, shape, size, flags) as probes:
                before = await here.costs()
                filling, measured = await bound(here, IN_TREE if who == IN_TREE else OURS, shape, size.pods)
                told = (await here.costs()).since(before).told(2 * size.pods)
                counts = tallies(await scraped(probes)) if probes else []
                return Run(filling, measured, told + counts)


def tallies(metrics: str) -> list[str]:
    """Tell what was left out, and what became of the pods that were sent to a node before they were asked about."""
    found = [f"events left out: {counted(metrics, 'dra_extender_events_total', result='dropped'):.0f}"]
    late, right = (
        counted(metrics, "dra_extender_nominations_ahead_total", result=result) for result in ("late", "right")
    )
    if late + right:
        found.append(f"asked about before they had heard: {late:.0f} of {late + right:.0f} that were sent ahead")
    return found


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--devices", type=int, default=10)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES))
    parser.add_argument("--only", choices=WHO)
    arguments, flags = parser.parse_known_args()
    size = Size(arguments.nodes, arguments.devices, arguments.pods)
    report = Report(f"endtoend-{size.nodes}")
    for shape in arguments.shapes:
        runs = Runs()
        for _ in range(arguments.rounds):
            for who in (arguments.only,) if arguments.only else WHO:
                found = asyncio.run(run(who, shape, size, flags))
                runs.by_who.setdefault(who, []).append(found)
                sys.stderr.write(
                    f"{who} {shape}: {found.filling:.0f} {found.measured:.0f}\n"
                    + "".join(f"  {line}\n" for line in found.costs)
                )
        if arguments.only is None:
            tell(report, shape, runs, size)
    if arguments.only is None:
        report.note(f"medians of {arguments.rounds} alternating runs; everything, the test too, on {machine()}")
        report.keep()


def tell(report: Report, shape: str, runs: Runs, size: Size) -> None:
    """Add a row for each part of the run, and what a pod cost."""
    for part in ("filling", "measured"):
        ours, theirs, static = (runs.median(who, part) for who in (OURS, IN_TREE, STATIC))
        beside = (
            f"{ours / theirs:.2f} of kube-scheduler's own {theirs:.0f}, {ours / static:.0%} of the static {static:.0f}"
        )
        report.add(f"{shape}, {size}, {part}, pods/s", f"{ours:.0f}", target(shape, size), beside)
    for who in WHO:
        typical = sorted(runs.by_who[who], key=lambda run: run.measured)[len(runs.by_who[who]) // 2]
        report.note(f"{shape}, {size}, {who}: {'; '.join(typical.costs)}")


def target(shape: str, size: Size) -> str:
    """Return what is wanted beside kube-scheduler's own allocator, in the part that is measured."""
    if size.nodes >= FEWEST_NODES:
        return "2 x, 85 %"
    return {"one": "1.5 x, 85 %", "match": "2.2 x, 85 %"}.get(shape, "")


def machine() -> str:
    """Describe this machine."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = next((line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")), "")
    return f"{os.cpu_count()} cores of {model or platform.processor()}, Python {platform.python_version()}"


if __name__ == "__main__":
    main()
