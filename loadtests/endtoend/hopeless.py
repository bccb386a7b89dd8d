"""A thousand pods that fit nowhere, a hundred updates of bound pods a second: how long a pod that fits waits."""

import asyncio
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

from loadtests.bench.report import Report
from loadtests.endtoend.metrics import counted, scraped
from loadtests.endtoend.rig import IN_TREE, OURS, Rig, rig, template
from loadtests.endtoend.throughput import ONE, PATIENCE_S
from tests.controlplane.client import Object
from tests.controlplane.manifests import grant
from tests.controlplane.programs import plane

NODES, DEVICES, HOPELESS, BOUND, PROBES = 200, 4, 1000, 100, 30
UPDATES_PER_SECOND = 100
NEVER: Object = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": DEVICES + 1}}]}
COUNT = "dra_extender_verb_duration_seconds_count"


async def updates(here: Rig, names: list[str]) -> None:
    """Update bound pods, as kubelets do, for ever."""
    number = 0
    while True:
        started = time.monotonic()
        name = names[number % len(names)]
        change = {"metadata": {"annotations": {"tick": str(number)}}}
        item = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}}
        await here.admin.patch(item, change)
        number += 1
        await asyncio.sleep(max(0.0, 1 / UPDATES_PER_SECOND - (time.monotonic() - started)))


async def waits(here: Rig, scheduler: str) -> list[float]:
    """Return how long each of some pods that fit waited, one after the other."""
    bound = [f"bound-{number}" for number in range(BOUND)]
    await here.pods(bound, scheduler, "one")
    await here.bound.until(bound, PATIENCE_S)
    await here.pods([f"hopeless-{number}" for number in range(HOPELESS)], scheduler, "never")
    updating = asyncio.create_task(updates(here, bound))
    await asyncio.sleep(20)  # until the queue is what it stays to be
    spent = []
    for number in range(PROBES):
        began = time.monotonic()
        await here.pods([f"probe-{number}"], scheduler, "one")
        times = await here.bound.until([f"probe-{number}"], 60)
        spent.append(times[0] - began if times else 60.0)
    updating.cancel()
    with suppress(asyncio.CancelledError):
        await updating
    return spent


async def measured(scheduler: str) -> tuple[list[float], str]:
    with tempfile.TemporaryDirectory() as folder:
        async with rig(plane(), Path(folder), grant) as here:
            await here.fill(NODES, DEVICES)
            await here.admin.create(template("one", ONE))
            await here.admin.create(template("never", NEVER))
            if scheduler == IN_TREE:
                async with here.in_tree():
                    return await waits(here, scheduler), ""
            async with here.ours() as probes:
                return await waits(here, scheduler), await scraped(probes)


async def main() -> None:
    report = Report("hopeless")
    theirs, _ = await measured(IN_TREE)
    ours, text = await measured(OURS)
    beside = f"kube-scheduler's own {median(theirs):.2f}, longest {max(theirs):.2f}; ours longest {max(ours):.2f}"
    report.add("a pod that fits is bound after, s", f"{median(ours):.2f}", "", beside)
    calls = counted(text, COUNT, verb="filter")
    spent = counted(text, "dra_extender_verb_duration_seconds_sum", verb="filter")
    report.add("calls of filter", f"{calls:.0f}", "", f"{1000 * spent / max(1.0, calls):.3f} ms each")
    report.keep()


if __name__ == "__main__":
    asyncio.run(main())
