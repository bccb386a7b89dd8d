"""A cluster of nodes and devices on a real control plane, and a count of pods as they are bound."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from loadtests.endtoend.costs import Costs, costs
from tests.controlplane.client import Client, Object
from tests.controlplane.manifests import BASE, SCHEDULER, documents
from tests.controlplane.plane import Plane
from tests.controlplane.processes import free_port, start, stop

OURS, IN_TREE = "dra-scheduler", "in-tree"
DRIVER, API = "gpu.example.com", "resource.k8s.io/v1"
OWNED = (DRIVER, "gpu.nvidia.com", "nic.example.com")
# What is applied beside kube-scheduler's configuration and the rights: it makes a difference to speed.
SHIPPED = ("finalizer.yaml", "priority.yaml")
WIDTH = 32


def node(name: str) -> Object:
    amounts = {"cpu": "128", "memory": "512Gi", "pods": "500"}
    conditions = [{"type": "Ready", "status": "True", "reason": "Rig"}]
    status = {"capacity": amounts, "allocatable": amounts, "conditions": conditions}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def published(name: str, devices: int) -> Object:
    listed = [
        {
            "name": f"gpu-{index}",
            "attributes": {"model": {"string": "A"}, "numa": {"int": index * 2 // devices}},
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for index in range(devices)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": listed}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{name}-gpu"}, "spec": spec}


def device_class() -> Object:
    spec = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}


def template(name: str, devices: Object) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": {"devices": devices}},
    }


def pod(name: str, scheduler: str, of: str) -> Object:
    amounts = {"requests": {"cpu": "10m", "memory": "10Mi"}, "claims": [{"name": "r"}]}
    spec = {
        "schedulerName": scheduler,
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i", "resources": amounts}],
        "resourceClaims": [{"name": "r", "resourceClaimTemplateName": of}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


@dataclass(slots=True)
class Bound:
    """When each pod was seen bound, on which node."""

    admin: Client
    at: dict[str, float] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Watch for ever: the API server ends the watch of a slow client, so go on where it ended."""
        listed = await self.admin.must("GET", "/api/v1/pods", limit="1")
        version: str = listed["metadata"]["resourceVersion"]
        while True:
            version = await self._watched(version)

    async def _watched(self, version: str) -> str:
        query = {"watch": "1", "resourceVersion": version}
        async with self.admin.session.get("/api/v1/pods", params=query, read_bufsize=2**22, timeout=None) as stream:
            async for line in stream.content:
                item = json.loads(line)["object"]
                version = item["metadata"]["resourceVersion"]
                if item["spec"].get("nodeName"):
                    self.at.setdefault(item["metadata"]["name"], time.monotonic())
                    self.news.set()
        return version

    async def until(self, names: Iterable[str], seconds: float) -> list[float]:
        """Wait until all of *names* are bound, or *seconds* have passed; return when each of them was."""
        wanted = set(names)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not wanted <= self.at.keys():
                    self.news.clear()
                    await self.news.wait()
        return sorted(self.at[name] for name in wanted & self.at.keys())


@dataclass(slots=True)
class Rig:
    """A running cluster."""

    plane: Plane
    admin: Client
    bound: Bound
    # Of the programs beside the control plane's own.
    extenders: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    async def costs(self) -> Costs:
        """Look at what everything has cost so far."""
        return await costs(self.admin, {**self.plane.running, **self.extenders})

    async def fill(self, nodes: int, devices: int) -> None:
        """Create nodes with their devices."""
        names = [f"n{number:05d}" for number in range(nodes)]
        await self.admin.create(device_class())
        await self.create(node(name) for name in names)
        await self.create(published(name, devices) for name in names)

    async def pods(self, names: Iterable[str], scheduler: str, of: str) -> None:
        await self.create(pod(name, scheduler, of) for name in names)

    async def create(self, items: Iterable[Object]) -> None:
        """Create *items*, a few at a time."""
        gate = asyncio.Semaphore(WIDTH)

        async def one(item: Object) -> None:
            async with gate:
                await self.admin.create(item)

        await asyncio.gather(*map(one, items))

    @asynccontextmanager
    async def ours(self, *flags: str, program: Sequence[str] = ("extender",)) -> AsyncIterator[int]:
        """Run the extender as people do, with what we ship beside it; yield the port of the probes."""
        port, probes = free_port(), free_port()
        arguments = [
            f"--listen-verbs=127.0.0.1:{port}",
            f"--listen-probes=127.0.0.1:{probes}",
            f"--api-kubeconfig={self.plane.kubeconfig('extender')}",
            f"--ownership-drivers={','.join(OWNED)}",
        ]
        async with self._extender(*program, "serve", *arguments, *flags):
            await _until_ready(probes)
            async with self.plane.scheduler(SCHEDULER, extender=f"http://127.0.0.1:{port}"):
                yield probes

    @asynccontextmanager
    async def static(self, nodes: int, *flags: str) -> AsyncIterator[None]:
        """Run the extender that decides nothing in the place of ours."""
        port = free_port()
        arguments = [f"--kubeconfig={self.plane.kubeconfig('extender')}", f"--port={port}", f"--nodes={nodes}"]
        async with self._extender("loadtests.endtoend.static", *arguments, *flags):
            await _until_listening(port)
            async with self.plane.scheduler(SCHEDULER, extender=f"http://127.0.0.1:{port}"):
                yield

    @asynccontextmanager
    async def _extender(self, module: str, *arguments: str) -> AsyncIterator[None]:
        for name in SHIPPED:
            for item in documents(BASE / name):
                await self.admin.apply(item)
        log = self.plane.folder / "extender.log"
        process = start(Path(sys.executable), "-m", module, *arguments, log=log)
        self.extenders["extender"] = process
        try:
            yield
        finally:
            del self.extenders["extender"]
            await asyncio.to_thread(stop, process)

    @asynccontextmanager
    async def in_tree(self, plugins: Sequence[Object] = ()) -> AsyncIterator[None]:
        """Run kube-scheduler with its own allocator, as it comes but for the arguments of some *plugins*."""
        path = self.plane.folder / "in-tree.yaml"
        document = {key: yaml.safe_load(SCHEDULER.read_text())[key] for key in ("apiVersion", "kind")}
        # As it comes, its own node budget included; only its client's limits are out of the way, which ours has too.
        unlimited = {"clientConnection": {"qps": 5000, "burst": 5000}, "leaderElection": {"leaderElect": False}}
        profile = {"schedulerName": IN_TREE, **({"pluginConfig": [*plugins]} if plugins else {})}
        path.write_text(json.dumps({**document, **unlimited, "profiles": [profile]}))
        async with self.plane.scheduler(path):
            yield


async def _until_listening(port: int) -> None:
    while True:
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.1)


async def _until_ready(port: int) -> None:
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answer = await reader.readline()
            writer.close()
            if b" 200 " in answer:
                return
        await asyncio.sleep(0.1)


@asynccontextmanager
async def rig(programs: Path, folder: Path, grant: Callable[[Client], Awaitable[Any]]) -> AsyncIterator[Rig]:
    """Start a control plane with nothing in it."""
    plane = Plane(programs, folder)
    try:
        await asyncio.to_thread(plane.start)
        async with plane.client() as admin:
            await grant(admin)
            bound = Bound(admin)
            watching = asyncio.create_task(bound.run())
            yield Rig(plane, admin, bound)
            watching.cancel()
    finally:
        await asyncio.to_thread(plane.stop)
