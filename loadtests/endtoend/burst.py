"""Two thousand pods at once, for as many devices: how many binds are refused for devices that filter offered."""

import asyncio
import sys
import tempfile
from pathlib import Path

from loadtests.bench.report import Report
from loadtests.endtoend.metrics import counted, scraped
from loadtests.endtoend.rig import OURS, rig, template
from loadtests.endtoend.throughput import ONE, PATIENCE_S
from tests.controlplane.manifests import grant
from tests.controlplane.programs import plane

NODES, DEVICES, PODS = 500, 4, 2000
COUNT = "dra_extender_verb_duration_seconds_count"


async def main() -> None:
    report = Report("burst")
    with tempfile.TemporaryDirectory() as folder:
        async with rig(plane(), Path(folder), grant) as here:
            await here.fill(NODES, DEVICES)
            await here.admin.create(template("one", ONE))
            async with here.ours(*sys.argv[1:]) as probes:
                names = [f"p{number:05d}" for number in range(PODS)]
                await here.pods(names, OURS, "one")
                times = await here.bound.until(names, PATIENCE_S)
                text = await scraped(probes)
    fine, refused = (counted(text, COUNT, verb="bind", result=result) for result in ("ok", "error"))
    asked = counted(text, COUNT, verb="filter")
    report.add("pods bound", f"{len(times)}", f"{PODS}", f"for {NODES * DEVICES} devices on {NODES} nodes")
    report.add(
        "binds refused, %",
        f"{100 * refused / max(1.0, fine + refused):.2f}",
        "1",
        f"{refused:.0f} of {fine + refused:.0f}",
    )
    report.add("calls of filter a pod", f"{asked / PODS:.2f}")
    report.keep()


if __name__ == "__main__":
    asyncio.run(main())
