"""The same pods for the same GPUs, kube-scheduler's own allocator beside us: how well linked are the sets they get?"""

import argparse
import asyncio
import heapq
import json
import random
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from extender.topology.choice import Ranker
from loadtests.bench.report import Report
from loadtests.endtoend.rig import API, IN_TREE, OURS, Rig, node, pod, rig
from loadtests.quality.fleet import Tally, counted
from loadtests.quality.workload import DGX_1V
from tests.controlplane.client import Object
from tests.controlplane.manifests import grant
from tests.controlplane.programs import plane

DRIVER, NODES, LOAD, SEED = "gpu.nvidia.com", 32, 0.9, 3
FIXTURE = Path(__file__).parents[2] / "tests" / "topology" / "fixtures" / "dgx-1v.json"
PATIENCE_S = 120.0
MOST_ALLOCATED: Object = {
    "name": "NodeResourcesFit",
    "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}},
}


@dataclass
class Holding:
    """Pods that run, by when they end, and what they hold: node and mask."""

    frees: list[int] = field(default_factory=lambda: [DGX_1V.shape.full] * NODES)
    ends: list[tuple[float, str, int, int]] = field(default_factory=list)

    def fits(self, size: int) -> bool:
        return any(free.bit_count() >= size for free in self.frees)

    def take(self, until: float, name: str, number: int, mask: int) -> None:
        if self.frees[number] & mask != mask:
            raise AssertionError(f"{name} was given a device that another pod holds")
        self.frees[number] &= ~mask
        heapq.heappush(self.ends, (until, name, number, mask))

    def ended(self, now: float) -> list[str]:
        names = []
        while self.ends and self.ends[0][0] <= now:
            _, name, number, mask = heapq.heappop(self.ends)
            self.frees[number] |= mask
            names.append(name)
        return names


def slices() -> list[Object]:
    """Return the GPUs of a DGX-1V for every node."""
    (raw, *_) = json.loads(FIXTURE.read_text())["slices"]
    found = []
    for number in range(NODES):
        name = f"n{number:05d}"
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = raw["spec"] | {"nodeName": name, "pool": pool}
        found.append({"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{name}-gpu"}, "spec": spec})
    return found


def claim(name: str, size: int) -> Object:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": size}
    spec = {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def user(name: str, scheduler: str, size: int) -> Object:
    """Return a pod with CPU in proportion to its GPUs, by which kube-scheduler's own scores tell nodes apart."""
    made = pod(name, scheduler, "")
    made["spec"]["resourceClaims"] = [{"name": "r", "resourceClaimName": name}]
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": f"{4 * size}", "memory": f"{16 * size}Gi"}
    return made


class Stand:
    """Asks a real control plane for devices, one pod after the other; requests that fit nowhere are lost."""

    def __init__(self, here: Rig, scheduler: str) -> None:
        self.here, self.scheduler, self.holding = here, scheduler, Holding()

    async def run(self, ranker: Ranker, warm_up: int, arrivals: int) -> Tally:
        chance = random.Random(SEED)  # noqa: S311 - a simulation
        rates = DGX_1V.rates(LOAD, NODES)
        tally, now = Tally(), 0.0
        for number in range(warm_up + arrivals):
            now += chance.expovariate(sum(rates.values()))
            size = chance.choices(list(rates), list(rates.values()))[0]
            lasting = chance.expovariate(1)
            await asyncio.gather(*map(self._end, self.holding.ended(now)))
            mask = await self._arrive(f"p{number}", size, now + lasting)
            if number >= warm_up:
                counted(tally, ranker, size, mask)
        return tally

    async def _arrive(self, name: str, size: int, until: float) -> int:
        await self.here.admin.create(claim(name, size))
        await self.here.admin.create(user(name, self.scheduler, size))
        if not await self._is_bound(name, must=self.holding.fits(size)):
            await self._end(name)
            return 0
        found = await self.here.admin.read(claim(name, size))
        results = found["status"]["allocation"]["devices"]["results"]
        mask = sum(1 << int(item["device"].removeprefix("gpu-")) for item in results)
        self.holding.take(until, name, int(results[0]["pool"].removeprefix("n")), mask)
        return mask

    async def _is_bound(self, name: str, *, must: bool) -> bool:
        """Wait until the pod is bound; or until it is rejected, unless there is a node on which it fits."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                seen = await self.here.admin.must("GET", f"/api/v1/namespaces/default/pods/{name}")
                if seen["spec"].get("nodeName"):
                    return True
                conditions = seen["status"].get("conditions", [])
                is_rejected = any(it["type"] == "PodScheduled" and it["status"] == "False" for it in conditions)
                if is_rejected and not must:
                    return False
                await asyncio.sleep(0.005)

    async def _end(self, name: str) -> None:
        item = claim(name, 1)
        await self.here.admin.delete(user(name, self.scheduler, 1))
        await self.here.admin.delete(item)
        reply = await self.here.admin.call(
            "PATCH", await self.here.admin.path(item), {"metadata": {"finalizers": None}},
            content="application/merge-patch+json",
        )  # fmt: skip
        if reply.status not in {200, 404}:
            raise AssertionError(reply.message)


@asynccontextmanager
async def scheduling(here: Rig, scheduler: str, *, most_allocated: bool) -> AsyncIterator[None]:
    if scheduler == OURS:
        async with here.ours():
            yield
    else:
        async with here.in_tree([MOST_ALLOCATED] if most_allocated else []):
            yield


async def measured(scheduler: str, warm_up: int, arrivals: int, *, most_allocated: bool = False) -> Tally:
    ranker = Ranker(DGX_1V.shape, DGX_1V.mix)
    with tempfile.TemporaryDirectory() as folder:
        async with rig(plane(), Path(folder), grant) as here:
            cel = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
            await here.admin.create(
                {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [cel]}}
            )
            await here.create(node(f"n{number:05d}") for number in range(NODES))
            await here.create(slices())
            async with scheduling(here, scheduler, most_allocated=most_allocated):
                return await Stand(here, scheduler).run(ranker, warm_up, arrivals)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--warm-up", type=int, default=300)
    parser.add_argument("--arrivals", type=int, default=1500)
    asked = parser.parse_args()
    report = Report("links")
    for who, scheduler, most_allocated in (
        ("in-tree, as it comes", IN_TREE, False),
        ("in-tree, MostAllocated", IN_TREE, True),
        ("ours", OURS, False),
    ):
        tally = await measured(scheduler, asked.warm_up, asked.arrivals, most_allocated=most_allocated)
        beside = f"{sum(tally.asked.values())} pods, {tally.asked.get(8, 0)} of 8"
        report.add(f"{who}: mean q", f"{tally.quality:.3f}", ".99" if scheduler == OURS else "", beside)
        report.add(f"{who}: perfect sets", f"{tally.perfect_share:.1%}")
        report.add(f"{who}: pods of 8 blocked", f"{tally.blocking(8):.1%}", "", f"of all pods {tally.blocking():.1%}")
    report.keep()


if __name__ == "__main__":
    asyncio.run(main())
