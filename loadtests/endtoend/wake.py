"""From a device that comes free to the pod that waits for it: how long until that is bound."""

import asyncio
import tempfile
import time
from pathlib import Path
from statistics import median

from loadtests.bench.report import Report
from loadtests.endtoend.rig import IN_TREE, OURS, Rig, rig, template
from loadtests.endtoend.throughput import ONE
from tests.controlplane.manifests import grant
from tests.controlplane.programs import plane

ROUNDS = 20
# Longer than a pod's back-off, so that none is left when its device comes free.
REST_S = 3.0


async def waits(here: Rig, scheduler: str) -> list[float]:
    """Have one pod after the other wait for the only device; return how long after it came free each was bound."""
    await here.pods(["pod-0"], scheduler, "one")
    await here.bound.until(["pod-0"], 60)
    spent = []
    for number in range(1, ROUNDS + 1):
        await here.pods([f"pod-{number}"], scheduler, "one")
        await asyncio.sleep(REST_S)
        before = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{number - 1}", "namespace": "default"}}
        began = time.monotonic()
        await here.admin.delete(before)
        times = await here.bound.until([f"pod-{number}"], 60)
        spent.append(times[0] - began if times else 60.0)
    return spent


async def measured(scheduler: str) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        async with rig(plane(), Path(folder), grant) as here:
            await here.fill(1, 1)
            await here.admin.create(template("one", ONE))
            async with here.in_tree() if scheduler == IN_TREE else here.ours():
                return await waits(here, scheduler)


async def main() -> None:
    report = Report("wake")
    theirs, ours = await measured(IN_TREE), await measured(OURS)
    beside = f"longest {max(ours):.2f}; kube-scheduler's own {median(theirs):.2f}, longest {max(theirs):.2f}"
    report.add("from the end of a pod to the next one bound, s", f"{median(ours):.2f}", "2", beside)
    report.keep()


if __name__ == "__main__":
    asyncio.run(main())
