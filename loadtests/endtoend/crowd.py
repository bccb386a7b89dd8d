"""A thousand pods at once, while each write takes seconds: how many are bound, and how much is written in vain."""

import asyncio
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Final

from loadtests.bench.report import Report
from loadtests.endtoend.metrics import counted, scraped
from loadtests.endtoend.rig import OURS, rig, template
from loadtests.endtoend.throughput import ONE, PATIENCE_S, machine
from tests.controlplane.manifests import grant
from tests.controlplane.programs import plane
from tests.faults.proxy import STEPS, Forward, Proxy, Request
from tests.faults.scene import by_proxy

NODES, DEVICES, PODS = 500, 4, 1000
COUNT: Final = "dra_extender_verb_duration_seconds_count"


async def main(seconds: float, flags: list[str]) -> None:
    async def slow(request: Request, forward: Forward) -> bytes | None:
        if request.step in STEPS:
            await asyncio.sleep(seconds)
        return await forward()

    report = Report("crowd")
    with tempfile.TemporaryDirectory() as folder:
        async with rig(plane(), Path(folder), grant) as here, Proxy(here.plane.url, str(here.plane.authority)) as proxy:
            await here.fill(NODES, DEVICES)
            await here.admin.create(template("one", ONE))
            async with here.ours(f"--api-kubeconfig={by_proxy(here.plane, proxy, OURS)}", *flags) as probes:
                proxy.fault = slow
                names = [f"p{number:05d}" for number in range(PODS)]
                await here.pods(names, OURS, "one")
                times = await here.bound.until(names, PATIENCE_S)
                text = await scraped(probes)
    spent = times[-1] - times[0] if times else 0.0
    report.add("pods bound", f"{len(times)}", f"{PODS}", f"in {spent:.0f} s, where each write took {seconds:g} s")
    written = proxy.heard["allocation"] / PODS
    report.add("writes of allocations a pod", f"{written:.2f}", "1", "what is more was written in vain, or taken back")
    refused = counted(text, COUNT, verb="bind", result="error")
    report.add("binds refused a pod", f"{refused / PODS:.2f}", "", "kube-scheduler asks for more than can be written")
    report.note(f"on {machine()}")
    report.keep()


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--seconds", type=float, default=2.0)
    given, rest = parser.parse_known_args(sys.argv[1:])
    asyncio.run(main(given.seconds, rest))
