"""A service on an API server in memory, with a node, a class and devices, for tests of what is ours."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from extender.config.settings import Ownership, Settings
from extender.demo.apiserver.server import ApiServer
from extender.kube.access import Access, Fixed
from extender.kube.answer import Answer
from extender.kube.api import Api
from extender.kube.request import Body
from extender.service.assembly import running
from extender.service.parts import Service
from extender.web.server import Address, Options
from tests.kube_objects import CLAIMS, allocation, claim

Json = dict[str, Any]
HERE = Address("127.0.0.1", 0)
PATIENCE_S = 20
DRIVER = "gpu.example.com"
RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
OURS = Settings(ownership=Ownership(drivers=(DRIVER,)))
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@dataclass
class Place:
    """The API server, somebody with all rights, and the service."""

    server: ApiServer
    api: Api
    service: Service

    async def do(self, method: str, path: str, item: object = None, content_type: str = "application/json") -> Json:
        body = None if item is None else Body(item, content_type)
        answer = await self.api.call(method, path, body=body)
        assert isinstance(answer, Answer), answer
        assert answer.is_success, answer
        return answer.json() or {}

    async def items(self, path: str) -> list[Json]:
        found: list[Json] = (await self.do("GET", path))["items"]
        return found

    async def claim(self, name: str, **metadata: object) -> Json:
        return await self.do("POST", CLAIMS, claim(name, **metadata))

    async def allocate(self, name: str, device: str = "gpu-0", manager: str = "somebody") -> None:
        """Allocate a device, as *manager*."""
        patch = {"status": {"allocation": allocation(device)}}
        path = f"{CLAIMS}/{name}/status?fieldManager={manager}"
        await self.do("PATCH", path, patch, "application/merge-patch+json")

    def metric(self, name: str) -> float:
        lines = self.service.journal.metrics.exposition()[0].decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"dra_extender_{name}"))


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    """Wait until *condition* holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110 - nothing tells when the API server has it
            await asyncio.sleep(0.01)


async def so(condition: Callable[[], object]) -> None:
    """Wait until *condition* holds, which need not be asked for."""

    async def holds() -> object:
        return condition()

    await until(holds)


def published(node: str, driver: str = DRIVER) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
        },
    }


@asynccontextmanager
async def place(settings: Settings | None = None, **served: Any) -> AsyncIterator[Place]:
    """Run the service, which owns DRIVER where nothing else is said; the API server is as *served*."""
    server = ApiServer(**served)
    access = Fixed(Access(server=await server.start()))
    api = Api(access)
    try:
        async with running(settings or OURS, access, Options(verbs=HERE, probes=HERE)) as service:
            here = Place(server, api, service)
            for node in ("node-1", "node-2"):
                await here.do("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
                await here.do("POST", "/apis/resource.k8s.io/v1/resourceslices", published(node))
            await here.do("POST", "/apis/resource.k8s.io/v1/deviceclasses", a_class())
            await service.ready()
            yield here
    finally:
        await api.close()
        await server.stop()


def a_class() -> Json:
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    metadata = {"name": DRIVER}
    api_version = "resource.k8s.io/v1"
    return {"apiVersion": api_version, "kind": "DeviceClass", "metadata": metadata, "spec": {"selectors": [selector]}}
