"""Two hundred pods at once that share one claim: how long until all are bound, and how many binds are refused."""

import asyncio
import tempfile
import time
from pathlib import Path

from loadtests.bench.report import Report
from loadtests.endtoend.metrics import counted, scraped
from loadtests.endtoend.rig import API, IN_TREE, OURS, Rig, pod, rig
from loadtests.endtoend.throughput import ONE
from tests.controlplane.client import Object
from tests.controlplane.manifests import grant
from tests.controlplane.programs import plane

# A claim has room for 256.
PODS, NODES = 200, 3
PATIENCE_S = 120


def sharer(name: str, scheduler: str) -> Object:
    """Return a pod that names the claim, not a template."""
    made = pod(name, scheduler, "")
    made["spec"]["resourceClaims"] = [{"name": "r", "resourceClaimName": "shared"}]
    return made


async def bound(here: Rig, scheduler: str) -> tuple[int, float]:
    """Return how many pods were bound in time, and how long after the first was made the last of these was."""
    metadata = {"name": "shared", "namespace": "default"}
    await here.admin.create(
        {"apiVersion": API, "kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": ONE}}
    )
    names, began = [f"p{number:05d}" for number in range(PODS)], time.monotonic()
    await here.create(sharer(name, scheduler) for name in names)
    times = await here.bound.until(names, PATIENCE_S)
    return len(times), (times or [began])[-1] - began


async def measured(scheduler: str) -> tuple[int, float, float]:
    with tempfile.TemporaryDirectory() as folder:
        async with rig(plane(), Path(folder), grant) as here:
            await here.fill(NODES, 1)
            async with here.in_tree() if scheduler == IN_TREE else here.ours() as probes:
                count, took_s = await bound(here, scheduler)
                text = await scraped(probes) if isinstance(probes, int) else ""
    return count, took_s, counted(text, "dra_extender_verb_duration_seconds_count", verb="bind", result="error")


async def main() -> None:
    report = Report("sharers")
    theirs, their_s, _ = await measured(IN_TREE)
    count, took_s, refused = await measured(OURS)
    beside = f"of {PODS}; kube-scheduler's own {theirs} within {PATIENCE_S} s"
    report.add("pods of one claim bound", f"{count}", f"{PODS}", beside)
    report.add("from the first made to the last bound, s", f"{took_s:.1f}", "", f"kube-scheduler's own {their_s:.1f}")
    report.add("binds refused", f"{refused:.0f}", "0")
    report.keep()


if __name__ == "__main__":
    asyncio.run(main())
