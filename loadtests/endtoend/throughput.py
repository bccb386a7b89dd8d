"""Pods bound a second, claims from templates: ours and kube-scheduler's own allocator, one after the other."""

import asyncio
import sys
import tempfile
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from loadtests.bench.report import Report
from loadtests.endtoend.rig import DRIVER, IN_TREE, OURS, Rig, rig, template
from tests.controlplane.client import Object
from tests.controlplane.manifests import grant
from tests.controlplane.programs import plane

PATIENCE_S = 300
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


async def measured(here: Rig, scheduler: str, shape: str, count: int) -> tuple[float, float]:
    """Fill the cluster, then measure: pods a second over each part, from the first to the last bound."""
    rates = []
    for part in ("fill", "measured"):
        names = [f"{shape}-{part}-{number:05d}" for number in range(count)]
        await here.pods(names, scheduler, shape)
        times = await here.bound.until(names, PATIENCE_S)
        if len(times) < count:
            sys.stderr.write(f"{scheduler} {shape} {part}: only {len(times)} of {count} bound\n")
        rates.append((len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 else 0.0)
    return rates[0], rates[1]


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything there is."""

    nodes: int
    devices: int
    pods: int


async def run(scheduler: str, shape: str, size: Size, flags: list[str]) -> tuple[float, float]:
    """Start everything anew, and measure one scheduler with one shape of claims."""
    with tempfile.TemporaryDirectory() as folder:
        async with rig(plane(), Path(folder), grant) as here:
            await here.fill(size.nodes, size.devices)
            await here.admin.create(template(shape, SHAPES[shape]))
            async with here.in_tree() if scheduler == IN_TREE else here.ours(*flags):
                return await measured(here, scheduler, shape, size.pods)


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--devices", type=int, default=10)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--shapes", nargs="*", default=list(SHAPES))
    parser.add_argument("--only", choices=(OURS, IN_TREE))
    arguments, flags = parser.parse_known_args()
    report = Report("endtoend")
    size = Size(arguments.nodes, arguments.devices, arguments.pods)
    for shape in arguments.shapes:
        found: dict[str, list[tuple[float, float]]] = {OURS: [], IN_TREE: []}
        for _ in range(arguments.rounds):
            for scheduler in (IN_TREE, OURS) if arguments.only is None else (arguments.only,):
                found[scheduler].append(asyncio.run(run(scheduler, shape, size, flags)))
                sys.stderr.write(f"{scheduler} {shape}: {found[scheduler][-1]}\n")
        if arguments.only is None:
            tell(report, shape, found, f"{arguments.nodes} x {arguments.devices}")
    if arguments.only is None:
        report.keep()


def tell(report: Report, shape: str, found: dict[str, list[tuple[float, float]]], size: str) -> None:
    """Add a row for each part of the run."""
    for part, what in enumerate(("filling", "measured")):
        ours, theirs = (median(rates[part] for rates in found[name]) for name in (OURS, IN_TREE))
        ratio = f"{ours / theirs:.2f} of kube-scheduler's own {theirs:.0f}"
        report.add(f"{shape}, {size}, {what}, pods/s", f"{ours:.0f}", "1.3 x", ratio)


if __name__ == "__main__":
    main()
