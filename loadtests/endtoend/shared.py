"""The default openb trace on a real control plane: how much of all GPUs is given away, kube-scheduler in between?

A GPU is a device of which many may have a part; CPU and memory are as ever. Pods come one at a time and stay, and one
that is rejected is deleted: the protocol of ``loadtests.quality.openb``, whose replay of the same pods stands beside.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import mean
from time import monotonic

from extender.topology.typical import PodAsk
from loadtests.bench.report import Report
from loadtests.endtoend.rig import API, OURS, Rig, rig
from loadtests.quality.openb import KINDS, RULES, Replay, kind
from loadtests.quality.traces import DATA, Trace
from tests.controlplane.client import Client, Object
from tests.controlplane.manifests import grant
from tests.controlplane.programs import plane

DRIVER, CLASS, SEED = "gpu.example.com", "gpu", 42
PATIENCE_S = 60.0
MILLI = "gpu_milli"
# x, how much is asked for in percent of all GPUs, at which it ends and is compared; by which rule it is replayed.
MARK, REPLAYED = 100, "ours, learning"


def device_class() -> Object:
    cel = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    spec = {"selectors": [cel]}
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": CLASS}, "spec": spec}


def nodes(of: Trace) -> Iterator[Object]:
    for row in range(len(of.nodes.cpu)):
        amounts = {"cpu": f"{of.nodes.cpu[row]}m", "memory": f"{of.nodes.memory[row]}Mi", "pods": "500"}
        conditions = [{"type": "Ready", "status": "True", "reason": "Rig"}]
        status = {"capacity": amounts, "allocatable": amounts, "conditions": conditions}
        yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name_of(row)}, "status": status}


def name_of(row: int) -> str:
    return f"n{row:05d}"


def slices(of: Trace) -> Iterator[Object]:
    policy = {"default": "1", "validRange": {"min": "1", "step": "1"}}
    for row, free in enumerate(of.nodes.free.tolist()):
        product = of.models[int(of.nodes.model[row])]
        devices = [
            {
                "name": f"gpu-{index}",
                "allowMultipleAllocations": True,
                "attributes": {"productName": {"string": product}},
                "capacity": {MILLI: {"value": str(whole), "requestPolicy": policy}},
            }
            for index, whole in enumerate(free)
            if whole
        ]
        name = name_of(row)
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
        yield {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{name}-gpu"}, "spec": spec}


def claim(name: str, ask: PodAsk, of: Trace) -> Object:
    """Return a claim for portions of devices, of some models where not all will do."""
    exactly: Object = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": ask.devices}
    exactly["capacity"] = {"requests": {MILLI: str(ask.amount)}}
    allowed = [model for model, will_do in zip(of.models, ask.on(len(of.models)), strict=True) if will_do]
    if len(allowed) < len(of.models):
        listed = ", ".join(f"'{model}'" for model in allowed)
        expression = f"device.attributes['{DRIVER}'].productName in [{listed}]"
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    spec = {"devices": {"requests": [{"name": "gpus", "exactly": exactly}]}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def pod(name: str, ask: PodAsk) -> Object:
    resources: Object = {"requests": {"cpu": f"{ask.cpu}m", "memory": f"{ask.memory}Mi"}}
    container = {"name": "c", "image": "i", "resources": resources}
    spec: Object = {"schedulerName": OURS, "restartPolicy": "Never", "containers": [container]}
    if ask.total:
        spec["resourceClaims"] = [{"name": "r", "resourceClaimName": name}]
        resources["claims"] = [{"name": "r"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


class Fates:
    """Which pods were bound, and which were rejected: seen by a watch."""

    def __init__(self, admin: Client) -> None:
        self.admin = admin
        self.news = asyncio.Event()
        self.is_bound: dict[str, bool] = {}

    async def run(self) -> None:
        """Watch for ever: the API server ends the watch of a slow client, so go on where it ended."""
        listed = await self.admin.must("GET", "/api/v1/pods", limit="1")
        version: str = listed["metadata"]["resourceVersion"]
        while True:
            query = {"watch": "1", "resourceVersion": version}
            async with self.admin.session.get("/api/v1/pods", params=query, read_bufsize=2**22, timeout=None) as stream:
                async for line in stream.content:
                    version = self._note(json.loads(line)["object"])

    def _note(self, item: Object) -> str:
        conditions = item.get("status", {}).get("conditions", [])
        # What is tried again soon has another reason.
        is_rejected = any(it["type"] == "PodScheduled" and it.get("reason") == "Unschedulable" for it in conditions)
        if item["spec"].get("nodeName") or is_rejected:
            self.is_bound.setdefault(item["metadata"]["name"], bool(item["spec"].get("nodeName")))
            self.news.set()
        version: str = item["metadata"]["resourceVersion"]
        return version

    async def of(self, name: str) -> bool:
        """Wait until a pod is bound or rejected; tell which."""
        async with asyncio.timeout(PATIENCE_S):
            while name not in self.is_bound:
                self.news.clear()
                await self.news.wait()
        return self.is_bound[name]


class Stand:
    """Pods of a trace on a real control plane, one after the other."""

    def __init__(self, here: Rig, of: Trace, fates: Fates) -> None:
        self.here, self.of, self.fates = here, of, fates
        self.given: dict[int, list[int]] = {}
        self.failed: Counter[str] = Counter()
        self.arrived = 0

    async def run(self, most: int) -> None:
        """Let pods arrive until as much is asked for as there is, at most so many."""
        asked = given = 0
        for number, ask in enumerate(islice(self.of.arrivals(SEED), most)):
            asked += ask.total
            mark = (200 * asked + self.of.capacity) // (2 * self.of.capacity)
            if mark > MARK:
                return
            given += await self._arrive(f"p{number:05d}", ask)
            self.given.setdefault(mark, []).append(given)
            self.arrived += 1
            if not self.arrived % 1000:
                print(
                    f"{self.arrived} pods, {mark} % asked for, {100 * given / self.of.capacity:.2f} % given", flush=True
                )

    async def _arrive(self, name: str, ask: PodAsk) -> int:
        admin, wanted = self.here.admin, claim(name, ask, self.of)
        if ask.total:
            await admin.create(wanted)
        await admin.create(pod(name, ask))
        if await self.fates.of(name):
            return ask.total
        self.failed[kind(ask)] += 1
        await admin.delete(pod(name, ask))
        if ask.total:
            await admin.delete(wanted)
        return 0


def rows(of: Trace, stand: Stand, seconds: float, flags: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Tell how much was given away, beside the replay of the same pods in process."""
    replay = Replay(of, RULES[REPLAYED])
    replay.outcome(SEED)
    # The last one may have been left before its end.
    complete = {mark for mark in stand.given if mark < max(stand.given)} | {MARK}
    for mark in sorted({90, 95, MARK} & stand.given.keys() & complete):
        mine, theirs = (100 * mean(curve[mark]) / of.capacity for curve in (stand.given, replay.curve))
        yield f"allocated at x = {mark}, %", f"{mine:.2f}", "", f"in process, {REPLAYED}: {theirs:.2f}"
    failed = ", ".join(f"{stand.failed[one]} {one}" for one in KINDS)
    yield "pods", f"{stand.arrived}", "", f"failed: {failed}"
    yield "pods a second", f"{stand.arrived / seconds:.0f}", "", f"extender: {' '.join(flags) or 'as shipped'}"


async def measured(of: Trace, most: int, flags: Sequence[str]) -> tuple[Stand, float]:
    with tempfile.TemporaryDirectory() as folder:
        async with rig(plane(), Path(folder), grant) as here:
            await here.admin.create(device_class())
            await here.create(nodes(of))
            await here.create(slices(of))
            fates = Fates(here.admin)
            watching = asyncio.create_task(fates.run())
            async with here.ours(*flags):
                stand, began = Stand(here, of, fates), monotonic()
                await stand.run(most)
                spent = monotonic() - began
            watching.cancel()
            return stand, spent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=sys.maxsize)
    asked, flags = parser.parse_known_args()
    if not DATA.is_dir():
        print(f"skipped: the openb traces are not at {DATA}")
        return
    of, report = Trace("default"), Report("shared")
    stand, seconds = asyncio.run(measured(of, asked.pods, flags))
    for row in rows(of, stand, seconds, flags):
        report.add(*row)
    report.keep()


if __name__ == "__main__":
    main()
