"""Devices that a device plugin counts, from the API server to the binding: everything is real but the cluster."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import aiohttp

from extender.config.settings import Placement, Settings
from extender.demo.apiserver.failure import Failure
from extender.demo.apiserver.kinds import NODE, POD, Kind
from extender.demo.apiserver.selection import EVERYTHING, Selection, selection_of
from extender.demo.apiserver.server import ApiServer
from extender.demo.scheduler.extender import Extender
from extender.demo.scheduler.loop import Scheduler
from extender.kube.access import Access, Fixed
from extender.kube.resource import BOUND
from extender.model.names import NodeName
from extender.service.assembly import running
from extender.service.parts import Service
from extender.web.server import Address, Options
from tests.accepting import accepting
from tests.kube_objects import pod

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
SCHEDULER = "dra-scheduler"
PATIENCE_S = 20
HERE = Address("127.0.0.1", 0)


@dataclass
class Stage:
    """A cluster in memory, with a scheduler that asks the service that is tested."""

    server: ApiServer
    service: Service

    def pod(self, name: str, gpus: int, **spec: object) -> None:
        container = {"name": "c", "image": "none", "resources": {"requests": {GPU: str(gpus)}}}
        self.server.registry.create(POD, "default", pod(name, containers=[container], **spec))

    async def placed(self, name: str, gpus: int) -> str:
        """Have a new pod scheduled, and return its node."""
        self.pod(name, gpus, schedulerName=SCHEDULER)
        await until(lambda: bool(self.node_of(name)))
        return self.node_of(name)

    def node_of(self, name: str) -> str:
        return str(self.server.registry.get(POD, ("default", name))["spec"].get("nodeName", ""))

    def free(self, node: str) -> int | None:
        found = self.service.belief.loads.free(NodeName(node))
        return None if found is None else found.get(GPU)

    async def readiness(self) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.service.server.ports[1]}/readyz"
        async with aiohttp.ClientSession(trust_env=False) as session, session.get(url) as response:
            return response.status, await response.text()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - nothing tells when belief changes
            await asyncio.sleep(0.01)


def node(server: ApiServer, name: str, gpus: int) -> None:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(gpus)}
    status = {"allocatable": amounts, "capacity": amounts}
    server.registry.create(NODE, "", {"metadata": {"name": name}, "status": status})


class Deaf(ApiServer):
    """An API server that does not list bound pods."""

    async def start(self, port: int = 0) -> str:
        listed = self.lists.page
        refused = selection_of(BOUND.only, POD)

        def page(kind: Kind, namespace: str, limit: int, token: str, selection: Selection = EVERYTHING) -> Json:
            if selection == refused:
                raise Failure(403, "pods is forbidden")
            return listed(kind, namespace, limit, token, selection)

        self.lists.page = page  # type: ignore[method-assign]  # for this server alone
        return await super().start(port)


@asynccontextmanager
async def stage(server: ApiServer, settings: Settings) -> AsyncIterator[Stage]:
    """Two nodes of eight GPUs. Of one, six are taken by pods that nobody here has scheduled."""
    node(server, "a-whole", 8)
    node(server, "b-rest", 8)
    async with AsyncExitStack() as stack:
        access = Fixed(Access(server=await server.start()))
        stack.push_async_callback(server.stop)
        service = await stack.enter_async_context(
            running(accepting(settings), access, Options(verbs=HERE, probes=HERE))
        )
        await service.ready()
        here = Stage(server, service)
        extender = Extender(f"http://127.0.0.1:{service.server.ports[0]}")
        stack.push_async_callback(extender.close)
        scheduler = Scheduler(server, extender, SCHEDULER, backoff_s=0.05)
        task = asyncio.create_task(scheduler.run())
        stack.push_async_callback(ended, task)
        for name, gpus in (("four", 4), ("two", 2)):
            here.pod(name, gpus, nodeName="b-rest")
        yield here


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_pod_goes_where_what_is_left_over_suffices_and_not_to_a_whole_node() -> None:
    async with stage(ApiServer(), Settings()) as here:
        await until(lambda: here.free("b-rest") == 2)
        assert (await here.readiness())[0] == 200
        assert await here.placed("p", 2) == "b-rest"
        await until(lambda: here.free("b-rest") == 0)
        assert await here.placed("q", 2) == "a-whole"


async def test_what_finished_pods_had_is_free_again() -> None:
    async with stage(ApiServer(), Settings()) as here:
        await until(lambda: here.free("b-rest") == 2)
        status = {"phase": "Succeeded"}
        here.server.registry.update(POD, ("default", "four"), "status", lambda old: {**old, "status": status})
        await until(lambda: here.free("b-rest") == 6)
        here.server.registry.delete(POD, ("default", "two"), {"gracePeriodSeconds": 0})
        await until(lambda: here.free("b-rest") == 8)


async def test_without_bound_pods_nothing_is_known_to_be_free_and_nobody_is_scored() -> None:
    async with stage(ApiServer(), Settings(placement=Placement(bound_pods=False))) as here:
        assert (await here.readiness())[0] == 200
        assert await here.placed("p", 2) == "a-whole"
        assert here.free("b-rest") is None


async def test_the_scheduler_is_answered_before_bound_pods_are_listed() -> None:
    async with stage(Deaf(), Settings()) as here:
        status, said = await here.readiness()
        assert (status, said.splitlines()[0]) == (503, "boundpods not listed yet")
        assert await here.placed("p", 2) == "a-whole"
