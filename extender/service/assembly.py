"""The service, run from its settings until its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from extender import VERSION
from extender.allocation.cel import compile_selector
from extender.config.settings import Settings
from extender.kube.access import Credentials
from extender.kube.api import CONNECTIONS, Api
from extender.service.parts import Service
from extender.service.seats import SEATS
from extender.state.domain import writer_of
from extender.telemetry.metrics import Metrics
from extender.web.server import Options

LEASE_CONNECTIONS: Final = 4
# How long we stay to give up the Lease: whoever is next need not wait for it then.
FAREWELL_S: Final = 8.0


@asynccontextmanager
async def running(settings: Settings, credentials: Credentials, options: Options) -> AsyncIterator[Service]:
    """Run the service until the end of the block."""
    compile_selector("true")  # reads the grammar, which takes too long to be done for the first pod
    metrics = Metrics(VERSION)
    agent = writer_of(settings.schedulers)
    # Bindings leave as many to all else: watches that go on, questions how far these are, nominations.
    api = Api(credentials, CONNECTIONS + SEATS, metrics.api, agent)
    api.lasts = lambda until: metrics.certificates_last({"kubeconfig": until})
    # Many writes at a time must not keep the Lease from being renewed.
    lease_api = Api(credentials, LEASE_CONNECTIONS, metrics.api, agent)
    async with AsyncExitStack() as stack:
        for each in (api, lease_api):
            stack.push_async_callback(each.close)
        service = Service(settings, api, lease_api, options, metrics)
        stack.push_async_callback(service.server.stop)
        # Before anything else: of two processes in one pod the second ends here, and never contends (leading.pod).
        await service.server.start()
        tasks = [asyncio.create_task(part, name=name) for name, part in service.work().items()]
        for task in tasks:
            task.add_done_callback(service.health.lost)
        try:
            yield service
        finally:
            await _ended(service)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _ended(service: Service) -> None:
    """Finish what is under way, and say so in the Lease."""
    service.leading.is_ending = True
    await service.server.stop()
    await service.answers.binds.stop()
    service.journal.afterwards.flush()
    await service.leading.end(FAREWELL_S)
