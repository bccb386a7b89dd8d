"""The service behind its door, in a cluster in memory: what is asked through HTTP, and what that changes."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from extender.config.settings import Settings
from extender.demo.apiserver.kinds import DRA, NODE, POD
from extender.demo.apiserver.server import ApiServer
from extender.kube.access import Access, Fixed
from extender.model.names import ObjectKey
from extender.model.node import Pod
from extender.service.assembly import running
from extender.service.parts import Service
from extender.web.server import Address, Options
from tests import kube_objects
from tests.accepting import accepting
from tests.service.test_counted import until
from tests.web.raw_client import Answer, connected

Json = dict[str, Any]
HERE = Address("127.0.0.1", 0)
DRIVER, SCHEDULER = "gpu.example.com", "dra-scheduler"
DEVICES = 4


@dataclass
class Door:
    """A cluster of some nodes with a few devices each, and the service that owns these."""

    server: ApiServer
    service: Service
    names: list[str] = field(default_factory=list)

    def kind(self, plural: str) -> Any:
        return self.server.kinds[DRA, "v1", plural]

    async def pod(self, name: str, *, devices: int = 1, **spec: Any) -> Json:
        """Create a pod that asks for devices, or for none, and wait until the service knows it."""
        claims = {}
        if devices:
            item = kube_objects.claim(name)
            item["spec"]["devices"]["requests"][0]["exactly"]["count"] = devices
            self.server.registry.create(self.kind("resourceclaims"), "default", item)
            claims = {"resourceClaims": [{"name": "c", "resourceClaimName": name}]}
        whole = kube_objects.pod(name, **{"schedulerName": SCHEDULER, **claims, **spec})
        made: Json = self.server.registry.create(POD, "default", whole)
        await self.seen(made)
        return made

    async def seen(self, pod: Json) -> None:
        """Wait until the service knows what became of *pod*, or of another one of its name."""
        stored = self.server.store.get(POD, ("default", pod["metadata"]["name"]))
        wanted = stored["metadata"] if stored and is_waiting(stored) else {}
        known = self.service.belief.pods

        def shown() -> bool:
            found = known.get(ObjectKey("default", pod["metadata"]["name"]))
            return (found.uid, found.resource_version) == (wanted["uid"], wanted["resourceVersion"]) if found else False

        await until(shown if wanted else lambda: known.with_uid(pod["metadata"]["uid"]) is None)

    def change(self, pod: Json, part: str, change: Callable[[Json], Json]) -> None:
        """Change *pod* at the API server."""
        self.server.registry.update(POD, ("default", pod["metadata"]["name"]), part, change)

    async def post(self, verb: str, body: object) -> Answer:
        """Make one call on a connection of its own."""
        async with connected(self.service.server.ports[0]) as connection:
            return await connection.post(f"/{verb}", body if isinstance(body, bytes) else orjson.dumps(body))

    async def filter(self, pod: Json, names: list[str] | None = None) -> Json:
        answer = await self.post("filter", {"Pod": pod, "Nodes": None, "NodeNames": names or self.names})
        assert answer.status == 200
        return dict(orjson.loads(answer.body))

    async def bind(self, pod: Json, node: str, **other: str) -> str:
        """Ask for *pod* to be bound, or for what *other* says of it; return the error."""
        answer = await self.post("bind", {**binding(pod, node), **other})
        assert answer.status == 200
        return str(orjson.loads(answer.body)["Error"])

    def held(self) -> object:
        """Return all that writes have made of the cluster, but for events, and what is promised, to be compared."""
        kinds = [kind for kind in self.server.kinds.values() if kind.plural != "events"]
        stored = {kind.plural: self.server.store.all(kind) for kind in kinds}
        return deepcopy(stored), list(self.service.belief.ledger)

    def leave_unattended(self) -> None:
        """Have nothing done about pods unasked: what a call leads to is seen at once, or not at all."""
        self.service.answers.attention = cast("Any", Unattended())

    async def scrape(self, path: str = "/metrics") -> str:
        async with connected(self.service.server.ports[1]) as connection:
            return (await connection.send(f"GET {path} HTTP/1.1\r\nHost: e\r\n\r\n".encode())).body.decode()


class Unattended:
    """Stands in for attention: remembers nobody who waits."""

    def rejected(self, pod: Pod, plan: object) -> None: ...

    def offered(self, pod: Pod) -> None: ...

    def postponed(self, pod: Pod, at: float) -> None: ...


def is_waiting(pod: Json) -> bool:
    """Tell whether the service follows *pod*."""
    spec, phase = pod["spec"], pod["status"].get("phase")
    return not spec.get("nodeName") and spec["schedulerName"] == SCHEDULER and phase == "Pending"


def binding(pod: Json, node: str) -> Json:
    metadata = pod["metadata"]
    named = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
    return {**named, "Node": node}


def furnish(server: ApiServer, names: list[str], devices: int = DEVICES) -> None:
    """Put nodes with devices into *server*."""
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts}
    create = server.registry.create
    create(server.kinds[DRA, "v1", "deviceclasses"], "", {"metadata": {"name": DRIVER}, "spec": {}})
    for name in names:
        create(NODE, "", {"metadata": {"name": name}, "status": status})
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        there = [{"name": f"gpu-{number}"} for number in range(devices)]
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": there}
        create(server.kinds[DRA, "v1", "resourceslices"], "", {"metadata": {"name": name}, "spec": spec})


@asynccontextmanager
async def opened(
    names: list[str] | None = None, settings: Settings | None = None, token: str = ""
) -> AsyncIterator[Door]:
    """Run the service over nodes of these names; the API server asks for *token*."""
    names = names or ["n1", "n2", "n3"]
    server = ApiServer(token=token)
    furnish(server, names)
    access = Fixed(Access(server=await server.start(), authorization=f"Bearer {token}" if token else ""))
    try:
        options = Options(verbs=HERE, probes=HERE)
        async with running(accepting(settings or Settings()), access, options) as service:
            await service.ready()
            yield Door(server, service, names)
    finally:
        await server.stop()
