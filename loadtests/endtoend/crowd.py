"""A thousand pods at once while writes take seconds, for all or for one namespace: who is bound, what is in vain."""

import asyncio
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from loadtests.bench.report import Report
from loadtests.endtoend.metrics import counted, scraped
from loadtests.endtoend.rig import OURS, Rig, pod, rig, template
from loadtests.endtoend.throughput import ONE, PATIENCE_S, machine
from tests.controlplane.client import Object
from tests.controlplane.manifests import grant
from tests.controlplane.programs import plane
from tests.faults.proxy import STEPS, Forward, Proxy, Request
from tests.faults.scene import by_proxy

NODES, DEVICES, PODS = 500, 4, 1000
HUNG: Final = "hung"
HUNG_S: Final = 30.0
COUNT: Final = "dra_extender_verb_duration_seconds_count"


def names(count: int) -> list[str]:
    return [f"p{number:05d}" for number in range(count)]


def within(namespace: str, item: Object) -> Object:
    return {**item, "metadata": {**item["metadata"], "namespace": namespace}}


@asynccontextmanager
async def slowed(where: str, seconds: float, flags: Sequence[str]) -> AsyncIterator[tuple[Rig, Proxy, int]]:
    """Run a cluster in which each write of a binding for what has *where* in its path takes *seconds*."""

    async def slow(request: Request, forward: Forward) -> bytes | None:
        if request.step in STEPS and where in request.target:
            await asyncio.sleep(seconds)
        return await forward()

    with tempfile.TemporaryDirectory() as folder:
        async with rig(plane(), Path(folder), grant) as here, Proxy(here.plane.url, str(here.plane.authority)) as proxy:
            await here.fill(NODES, DEVICES)
            await here.admin.create(template("one", ONE))
            async with here.ours(f"--api-kubeconfig={by_proxy(here.plane, proxy, OURS)}", *flags) as probes:
                proxy.fault = slow
                yield here, proxy, probes


async def for_all(report: Report, seconds: float, flags: Sequence[str]) -> None:
    async with slowed("", seconds, flags) as (here, proxy, probes):
        await here.pods(names(PODS), OURS, "one")
        times = await here.bound.until(names(PODS), PATIENCE_S)
        text = await scraped(probes)
    spent = times[-1] - times[0] if times else 0.0
    report.add("pods bound", f"{len(times)}", f"{PODS}", f"in {spent:.0f} s, where each write took {seconds:g} s")
    written = proxy.heard["allocation"] / PODS
    report.add("writes of allocations a pod", f"{written:.2f}", "1", "what is more was written in vain, or taken back")
    refused = counted(text, COUNT, verb="bind", result="error")
    report.add("binds refused a pod", f"{refused / PODS:.2f}", "", "kube-scheduler asks for more than can be written")


async def for_others(report: Report, flags: Sequence[str]) -> None:
    """Make as many pods in a namespace where writes hang, then others."""
    async with slowed(f"/namespaces/{HUNG}/", HUNG_S, flags) as (here, _, _):
        await here.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HUNG}})
        await here.admin.create(within(HUNG, template("one", ONE)))
        await here.create(within(HUNG, pod(f"hung-{name}", OURS, "one")) for name in names(PODS // 2))
        began = asyncio.get_running_loop().time()
        await here.pods(names(PODS // 2), OURS, "one")
        times = await here.bound.until(names(PODS // 2), PATIENCE_S)
        spent = asyncio.get_running_loop().time() - began
    beside = f"after {spent:.0f} s, beside as many of a namespace where each write takes {HUNG_S:g} s"
    report.add("others bound", f"{len(times)}", f"{PODS // 2}", beside)


async def main(seconds: float, flags: Sequence[str]) -> None:
    report = Report("crowd")
    await for_all(report, seconds, flags)
    await for_others(report, flags)
    report.note(f"on {machine()}")
    report.keep()


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--seconds", type=float, default=2.0)
    given, rest = parser.parse_known_args(sys.argv[1:])
    asyncio.run(main(given.seconds, rest))
