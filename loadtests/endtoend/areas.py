"""Where the extender's own CPU time goes while pods are bound: by floor of the house, and by library beneath it.

A profile makes small functions look dearer than they are: shares say where to look, not what is gained there.
"""

import asyncio
import signal
import tempfile
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from pstats import Stats
from typing import Any, Final

from loadtests.bench.report import Report
from loadtests.endtoend.rig import OURS, rig, template
from loadtests.endtoend.throughput import SHAPES, bound
from tests.controlplane.manifests import grant
from tests.controlplane.programs import plane

OUTSIDE: Final = "uvloop: sockets, TLS"
REST: Final = "the rest of Python's library"
LIBRARIES: Final = {
    "aiohttp and what is below it": ("aiohttp", "yarl", "multidict", "aiosignal", "propcache", "frozenlist"),
    "logging, prometheus_client": ("logging", "prometheus_client"),
    "asyncio": ("asyncio",),
}

Function = tuple[str, int, str]


def area_of(file: str) -> str | None:
    """Name the area of a file; None where whoever calls it is to answer for it."""
    if "/extender/" in file:
        return f"extender.{file.rpartition('/extender/')[2].partition('/')[0]}"
    return next((area for area, names in LIBRARIES.items() if any(f"/{name}/" in file for name in names)), None)


def areas(stats: Mapping[Function, tuple[Any, ...]]) -> dict[str, float]:
    """Add up by area what functions took themselves; what C and other libraries took is their callers'."""
    found: dict[str, float] = defaultdict(float)
    for (file, _, _), (_, _, own, _, callers) in stats.items():
        area = area_of(file)
        if area is not None or not callers:
            found[area or REST] += own
        else:
            for (caller, _, _), (_, _, spent, _) in callers.items():
                found[area_of(caller) or REST] += spent
    return found


async def profiled(nodes: int, devices: int, pods: int, shape: str) -> tuple[dict[str, float], list[str]]:
    """Fill a cluster, then bind as many pods again; return what each area took, and what a pod came to."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "profile"
        async with rig(plane(), Path(folder), grant) as here:
            await here.fill(nodes, devices)
            await here.admin.create(template(shape, SHAPES[shape]))
            async with here.ours(program=("loadtests.endtoend.profiled", str(path))):
                extender = here.extenders["extender"]
                before = await here.costs()
                extender.send_signal(signal.SIGUSR2)
                await bound(here, OURS, shape, pods)
                extender.send_signal(signal.SIGUSR2)
                spent = (await here.costs()).since(before)
        found = areas(Stats(str(path)).stats)  # type: ignore[attr-defined]  # typeshed does not know it
        found[OUTSIDE] = spent.seconds["extender"] - sum(found.values())
        return found, spent.told(2 * pods)


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--devices", type=int, default=10)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--shape", choices=SHAPES, default="one")
    given = parser.parse_args()
    found, told = asyncio.run(profiled(given.nodes, given.devices, given.pods, given.shape))
    report = Report("areas")
    for area, spent in sorted(found.items(), key=lambda item: -item[1]):
        report.add(area, f"{spent / sum(found.values()):.1%}")
    report.note(f"{given.shape}, {given.nodes} x {given.devices}, with the profile: {told[0]}")
    report.keep()


if __name__ == "__main__":
    main()
