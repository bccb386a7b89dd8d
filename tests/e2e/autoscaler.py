"""Kubernetes' cluster autoscaler beside us; its provider kwok makes nodes that are objects and nothing else."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from tests.controlplane.client import Object, until
from tests.controlplane.processes import free_port, start, stop
from tests.e2e.world import World

# Built from its own repository with `-tags kwok`: it is in no module that Go could find by a version.
PROGRAM = os.environ.get("CLUSTER_AUTOSCALER", "")
NAMESPACE, GROUP = "kube-system", "cluster-autoscaler.kwok.nodegroup"
# Its defaults take a node away after ten minutes in which nobody needs it.
HASTE = ("--scan-interval=1s", "--scale-down-unneeded-time=5s", "--scale-down-delay-after-add=5s")
CONFIG = """
apiVersion: v1alpha1
readNodesFrom: configmap
nodegroups: {fromNodeLabelKey: world}
nodes: {skipTaint: true}
configmap: {name: kwok-provider-templates}
"""
NUMA = "resource.kubernetes.io/numaNode"
DEVICES = [{"name": f"gpu-{index}", "attributes": {NUMA: {"int": index // 4}}} for index in range(8)]
ROUNDS = 'cluster_autoscaler_function_duration_seconds_count{function="main"}'


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """One that runs, and makes nodes for one world."""

    here: World
    port: int

    async def nodes(self) -> set[str]:
        """Return the names of the nodes that there are, without the world's prefix."""
        return {node["metadata"]["name"].removeprefix(f"{self.here.name}-") for node in await nodes(self.here)}

    async def only(self, name: str) -> None:
        """Wait until no other node is left."""

        async def is_alone() -> bool:
            return await self.nodes() == {name}

        await until(is_alone, f"all nodes but {name} to go")

    async def rounds(self, more: int = 3) -> None:
        """Wait until it has looked at everything so many times."""
        end = await self._rounds() + more

        async def enough() -> bool:
            return await self._rounds() >= end

        await until(enough, f"{more} rounds of the autoscaler")

    async def _rounds(self) -> float:
        url = f"http://127.0.0.1:{self.port}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            lines = (await response.text()).splitlines()
        return next((float(line.split()[-1]) for line in lines if line.startswith(ROUNDS)), 0.0)


async def nodes(here: World) -> list[Object]:
    listed: list[Object] = (await here.admin.must("GET", "/api/v1/nodes", labelSelector=f"world={here.name}"))["items"]
    return listed


@asynccontextmanager
async def autoscaled(here: World, most: int) -> AsyncIterator[Autoscaler]:
    """Have from one node to *most*, each with eight devices on two NUMA nodes."""
    await here.create(_node(here, here.full("first")))
    template = _node(here, "template", min=1, max=most, desired=1)
    listed = {"apiVersion": "v1", "kind": "List", "items": [template]}
    await here.create(_settings("kwok-provider-config", "config", CONFIG))
    await here.create(_settings("kwok-provider-templates", "templates", json.dumps(listed)))
    port = free_port()
    process = start(Path("/usr/bin/env"), *_command(here, port), log=here.stage.plane.log("cluster-autoscaler"))
    drivers = asyncio.create_task(_publishing(here))
    try:
        yield Autoscaler(here, port)
    finally:
        await asyncio.to_thread(stop, process)
        drivers.cancel()


async def _publishing(here: World) -> None:
    """Be the driver of each node that comes."""
    done: set[str] = set()
    while True:
        for node in await nodes(here):
            if (name := node["metadata"]["name"]) not in done:
                done.add(name)
                here.made.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
                await here.slice(name.removeprefix(f"{here.name}-"), DEVICES, nodeName=name)
        await asyncio.sleep(0.1)


def _command(here: World, port: int) -> list[str]:
    account = here.stage.plane.kubeconfig("admin")
    # Its provider is told by the environment what it is itself told by flags.
    told = [f"KUBECONFIG={account}", "KWOK_PROVIDER_MODE=local", f"POD_NAMESPACE={NAMESPACE}"]
    flags = [f"--kubeconfig={account}", f"--namespace={NAMESPACE}", f"--address=127.0.0.1:{port}"]
    return [*told, PROGRAM, "--cloud-provider=kwok", "--leader-elect=false", *flags, *HASTE]


def _settings(name: str, key: str, text: str) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: text}}


def _node(here: World, name: str, **counts: int) -> Object:
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "200"}
    conditions = [{"type": "Ready", "status": "True", "reason": "Test", "message": ""}]
    told = {f"{GROUP}/{key}-count": str(count) for key, count in counts.items()}
    annotations = {f"{GROUP}/name": here.name, "kwok.x-k8s.io/node": "fake", **told}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"world": here.name}, "annotations": annotations},
        "spec": {"providerID": f"kwok:{name}"},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": conditions},
    }
