"""A cluster with our scheduler in it: what tests create there, and what they wait for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from extender.config.settings import Settings
from extender.kube.credentials import credentials
from extender.service.assembly import Service, running
from extender.web.server import Address, Options
from tests.controlplane.client import Client, Object, until
from tests.controlplane.plane import Plane

SCHEDULER = "dra-scheduler"
DRIVER = "gpu.example.com"
CONFIGURATION = Path(__file__).parents[2] / "scheduler-config" / "base" / "scheduler.yaml"
NUMBERS = count()


@dataclass(slots=True)
class World:
    """One namespace of a real cluster, its own nodes, devices and classes."""

    plane: Plane
    admin: Client
    service: Service
    name: str = field(default_factory=lambda: f"t{next(NUMBERS)}")
    made: list[Object] = field(default_factory=list)

    async def create(self, item: Object) -> Object:
        created = await self.admin.create(item)
        self.made.append(item)
        return created

    async def node(self, name: str, cpus: int = 32) -> None:
        """Create a node that is ready."""
        item = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"{self.name}-{name}", "labels": {"world": self.name}},
        }
        created = await self.create(item)
        amounts = {"cpu": str(cpus), "memory": "64Gi", "pods": "200"}
        status = {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": ""}],
        }
        await self.admin.patch(created, {"status": status}, "status")

    async def slice(self, node: str, devices: list[Object], **spec: Any) -> Object:
        """Publish *devices* of a node."""
        name = f"{self.name}-{node}"
        item = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{name}-{len(self.made)}"},
            "spec": {
                "driver": self.driver,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": devices,
                **spec,
            },
        }
        return await self.create(item)

    @property
    def driver(self) -> str:
        return f"{self.name}.{DRIVER}"

    async def device_class(self, name: str = "gpu", **spec: Any) -> None:
        selectors = [{"cel": {"expression": f"device.driver == '{self.driver}'"}}]
        item = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": f"{self.name}-{name}"},
            "spec": {"selectors": selectors, **spec},
        }
        await self.create(item)

    def request(self, name: str = "gpu", device_class: str = "gpu", **exactly: Any) -> Object:
        return {"name": name, "exactly": {"deviceClassName": f"{self.name}-{device_class}", **exactly}}

    async def claim(self, name: str, *requests: Object, **devices: Any) -> Object:
        return await self.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": f"{self.name}-{name}", "namespace": "default"},
                "spec": {"devices": {"requests": list(requests), **devices}},
            }
        )

    async def template(self, name: str, *requests: Object, **devices: Any) -> Object:
        return await self.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": f"{self.name}-{name}", "namespace": "default"},
                "spec": {"spec": {"devices": {"requests": list(requests), **devices}}},
            }
        )

    async def pod(
        self, name: str, *, claims: tuple[str, ...] = (), templates: tuple[str, ...] = (), **spec: Any
    ) -> Object:
        """Create a pod of our scheduler that runs on the nodes of this world only."""
        entries = [
            {"name": f"c{index}", "resourceClaimName": f"{self.name}-{item}"} for index, item in enumerate(claims)
        ]
        entries += [
            {"name": f"t{index}", "resourceClaimTemplateName": f"{self.name}-{item}"}
            for index, item in enumerate(templates)
        ]
        container = {
            "name": "main",
            "image": "none",
            "resources": {"claims": [{"name": entry["name"]} for entry in entries]},
        }
        return await self.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"{self.name}-{name}", "namespace": "default"},
                "spec": {
                    "schedulerName": SCHEDULER,
                    "nodeSelector": {"world": self.name},
                    "containers": [container],
                    "resourceClaims": entries,
                    **spec,
                },
            }
        )

    async def bound(self, pod: Object) -> str:
        """Wait until *pod* has a node, and return it without our prefix."""

        async def node() -> str | None:
            found: str | None = (await self.admin.read(pod))["spec"].get("nodeName")
            return found

        return (await until(node, f"pod {pod['metadata']['name']} to be bound")).removeprefix(f"{self.name}-")

    async def refused(self, pod: Object, text: str) -> str:
        """Wait until the condition of *pod* says *text*, and return all that it says."""

        async def message() -> str | None:
            conditions = (await self.admin.read(pod))["status"].get("conditions", [])
            said = next((item.get("message", "") for item in conditions if item["type"] == "PodScheduled"), "")
            return said if text in said else None

        return await until(message, f"the condition of {pod['metadata']['name']} to say {text!r}")

    async def devices(self, claim: Object) -> list[str]:
        """Return the devices of a claim as node/device."""
        read = await self.admin.read(claim)
        results = read["status"]["allocation"]["devices"]["results"]
        return [f"{item['pool'].removeprefix(self.name + '-')}/{item['device']}" for item in results]

    async def claim_of(self, pod: Object, entry: int = 0) -> Object:
        """Return the claim that was made for *pod* from a template."""
        status = (await self.admin.read(pod))["status"]["resourceClaimStatuses"][entry]
        metadata = {"name": status["resourceClaimName"], "namespace": "default"}
        return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata}

    async def finish(self, pod: Object) -> None:
        await self.admin.delete(pod)

    async def clear(self) -> None:
        for item in reversed(self.made):
            await self.admin.delete(item)


@asynccontextmanager
async def world(plane: Plane, settings: Settings | None = None) -> AsyncIterator[World]:
    """Run the service and kube-scheduler against *plane*."""
    options = Options(verbs=Address("127.0.0.1", 0), probes=Address("127.0.0.1", 0))
    access = await credentials(str(plane.kubeconfig("extender")))
    async with running(settings or Settings(), access, options) as service, plane.client() as admin:

        async def ready() -> bool:
            return not service.health.missing()

        await until(ready, "the extender to be ready")
        url = f"http://127.0.0.1:{service.server.ports[0]}"
        async with plane.scheduler(CONFIGURATION, extender=url):
            made = World(plane, admin, service)
            try:
                yield made
            finally:
                await made.clear()
