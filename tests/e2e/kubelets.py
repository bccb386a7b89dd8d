"""Kubelets of a world's nodes, as far as devices go: the kubelet's own code, and drivers over its own helper."""

import asyncio
import json
import shutil
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.client import Object, until
from tests.e2e.world import World
from tests.oracle_program import compiled

SOURCES = Path(__file__).parents[1] / "kubelet"
TROUBLES = {"refused", "trouble"}


@dataclass(slots=True)
class Kubelets:
    """What runs on the nodes of one world."""

    here: World
    process: Process
    happened: list[Object] = field(default_factory=list)
    done: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    drivers: set[str] = field(default_factory=set)

    async def publish(self, node: str, *slices: Object, driver: str = "", **pools: list[Object]) -> None:
        """Have the driver of *node*, or another, publish these slices as one pool, and further *pools* by name.

        Where it does not run it starts.
        """
        driver = driver or self.here.driver
        self.drivers.add(driver)
        known = {node: [*slices], **pools} if slices else pools
        resources = {"Pools": {self.here.full(name): {"Slices": each} for name, each in known.items()}}
        await self.tell("publish", node, Driver=driver, Resources=resources)

    async def tell(self, do: str, node: str, **more: Any) -> None:
        """Have something done on *node*, and wait until it is."""
        assert self.process.stdin is not None
        order = {"Do": do, "Node": self.here.full(node), "Driver": self.here.driver, **more}
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        assert not (wrong := await self.done.get()), wrong

    async def running(self, pod: Object) -> dict[str, list[str]]:
        """Wait until *pod* runs, and return which devices each of its containers was handed."""
        name = f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}"

        async def found() -> Object | None:
            return next((each for each in self.happened if each["what"] == "running" and each["pod"] == name), None)

        event = await until(found, f"{name} to run; the kubelet says {self.troubles()}")
        return {container: sorted(ids) for container, ids in event["containers"].items()}

    async def refused(self, pod: Object, text: str) -> None:
        """Wait until the kubelet refuses *pod* for *text*."""

        async def found() -> bool:
            return any(text in each["error"] for each in self._troubles_of(pod))

        await until(found, f"{pod['metadata']['name']} to be refused for {text!r}; it says {self.troubles()}")

    def excuse(self, pod: Object) -> None:
        """Forget what *pod* was refused for: it was to be."""
        for each in self._troubles_of(pod):
            self.happened.remove(each)

    def _troubles_of(self, pod: Object) -> list[Object]:
        return [each for each in self.troubles() if each.get("pod", "").endswith(f"/{pod['metadata']['name']}")]

    def troubles(self) -> list[Object]:
        """Return what was refused, and what else went wrong."""
        return [each for each in self.happened if each["what"] in TROUBLES]

    def count(self, what: str) -> int:
        return sum(each["what"] == what for each in self.happened)

    def prepared(self, claim: Object) -> list[Object]:
        """Return what the driver found in *claim*, for each device."""
        name = f"{claim['metadata'].get('namespace', 'default')}/{claim['metadata']['name']}"
        return [
            device
            for each in self.happened
            if each["what"] == "prepared" and each["claim"] == name
            for device in each["devices"]
        ]

    async def finish(self, *pods: Object) -> None:
        """Delete pods as people do, and wait until their kubelets have let them go."""
        for pod in pods:
            await self.delete(pod)
        await asyncio.gather(*map(self.here.gone, pods))

    async def delete(self, pod: Object) -> None:
        """Delete *pod* as people do: it goes when its kubelet says so."""
        await self.here.admin.call("DELETE", await self.here.admin.path(pod))

    async def linger(self, pod: Object, *, still: bool) -> None:
        """Have *pod* take its time to go once it is deleted, for as long as it is to."""
        value = "true" if still else None
        await self.here.admin.patch(pod, {"metadata": {"annotations": {"kubelet.tests/lingers": value}}})

    async def succeed(self, pod: Object) -> None:
        """Let *pod*, which runs, end well by itself."""
        await self.here.admin.patch(pod, {"metadata": {"annotations": {"kubelet.tests/ends": "true"}}})
        await self.here.when(pod, lambda read: read["status"]["phase"] == "Succeeded")

    async def known(self, *names: str) -> None:
        """Wait until the extender knows these devices of the world's driver, as node/device, and no others."""

        async def same() -> bool:
            return self._known() == set(names)

        await until(same, f"the extender to know {names}")

    def _known(self) -> set[str]:
        slices = self.here.service.belief.cluster.snapshot.inventory.slices
        return {
            f"{each.pool.removeprefix(f'{self.here.name}-')}/{device.name}"
            for each in slices
            if each.driver == self.here.driver
            for device in each.devices
        }

    async def hear(self) -> None:
        """Note what is told until the program ends."""
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            event = json.loads(line)
            if event["what"] == "done":
                self.done.put_nowait(event.get("error", ""))
            else:
                self.happened.append(event)


def handed(claim: Object, request: str = "") -> list[str]:
    """Return the ids of a claim's devices, or of those for one request, as the driver makes them."""
    return sorted(
        "-".join([f"{item['driver']}/device={item['pool']}", item["device"], *filter(None, [item.get("shareID")])])
        for item in claim["status"]["allocation"]["devices"]["results"]
        if request in {"", item["request"].partition("/")[0]}
    )


@asynccontextmanager
async def kubelets_of(here: World) -> AsyncIterator[Kubelets]:
    """Be the kubelets of the nodes of a world."""
    if shutil.which("go") is None:
        pytest.skip("Go is not installed")
    if here.stage.plane.minor != "1.37":
        pytest.skip(f"the kubelet is of 1.37, and the control plane of {here.stage.plane.minor}")
    program = await asyncio.to_thread(partial(compiled, SOURCES, "kubelet"))
    command = [str(program), f"--kubeconfig={here.stage.plane.kubeconfig('admin')}", "--v=3"]
    with here.stage.plane.log(f"kubelets-{here.name}").open("ab") as log:
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=log, limit=1 << 24)
    made = Kubelets(here, process)
    heard = asyncio.create_task(made.hear())
    try:
        yield made
    finally:
        assert process.stdin is not None
        # With its input it ends.
        process.stdin.close()
        await asyncio.gather(heard, process.wait())
        path = "/apis/resource.k8s.io/v1/resourceslices"
        for driver in made.drivers:
            await here.admin.must("DELETE", path, fieldSelector=f"spec.driver={driver}")
