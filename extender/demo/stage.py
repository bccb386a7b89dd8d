"""Where the demonstration takes place: everything in one process, the API server and kube-scheduler stood in for."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from extender.config.settings import Ownership, Settings
from extender.demo.apiserver.server import ApiServer
from extender.demo.cluster import GPU, NIC, SCHEDULER
from extender.demo.controller import Controller
from extender.demo.scheduler.extender import Extender
from extender.demo.scheduler.loop import Scheduler
from extender.demo.story import Story, Tell
from extender.kube.access import Access, Fixed
from extender.kube.api import Api
from extender.service.assembly import running
from extender.web.server import Address, Options

SETTINGS = Settings(ownership=Ownership(drivers=(GPU, NIC)))


@asynccontextmanager
async def stage(tell: Tell) -> AsyncIterator[Story]:
    """Start everything, and stop it at the end of the block."""
    async with AsyncExitStack() as stack:
        server = ApiServer()
        access = Fixed(Access(server=await server.start()))
        stack.push_async_callback(server.stop)
        api = Api(access)
        stack.push_async_callback(api.close)
        options = Options(verbs=Address("127.0.0.1", 0), probes=Address("127.0.0.1", 0))
        service = await stack.enter_async_context(running(SETTINGS, access, options))
        await service.ready()
        verbs, probes = service.server.ports
        tell(f"verbs and decisions on port {verbs}, metrics on port {probes}")
        extender = Extender(f"http://127.0.0.1:{verbs}")
        stack.push_async_callback(extender.close)
        scheduler = Scheduler(server, extender, SCHEDULER)
        tasks = [asyncio.create_task(part) for part in (scheduler.run(), Controller(server).run())]
        stack.push_async_callback(_ended, tasks)
        yield Story(api, service, tell)


async def _ended(tasks: Sequence[asyncio.Task[object]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
