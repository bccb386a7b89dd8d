"""All resources followed, and all of them listed anew where that is asked for."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from extender.kube.resource import Resource

Begin = Callable[[Resource], Coroutine[Any, Any, object]]


class Follows:
    """Keeps one task for each resource; *begin* follows one for ever, from a list on."""

    def __init__(self, begin: Begin, resources: Iterable[Resource]) -> None:
        self._begin, self._resources = begin, tuple(resources)
        self._tasks: list[asyncio.Task[object]] = []
        self._changing = asyncio.Lock()

    async def run(self) -> None:
        """Follow for ever; what is wrong with one of them is raised."""
        self._start()
        try:
            while True:
                await self._until_one_ends()
        finally:
            await self._stop()

    async def renew(self) -> None:
        """Have everything listed anew. When this returns, nothing is told any more that was read before."""
        async with self._changing:
            await self._stop()
            self._start()

    async def _until_one_ends(self) -> None:
        tasks = self._tasks
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        async with self._changing:
            if tasks is self._tasks:
                # Where a renewal was cut short they are cancelled: that is no end of ours, and would pass unnoticed.
                ended = [task for task in tasks if task in done]
                for task in ended:
                    if not task.cancelled():
                        task.result()
                raise RuntimeError(f"ended: {', '.join(task.get_name() for task in ended)}")

    def _start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._begin(resource), name=f"follow {resource}") for resource in self._resources
        ]

    async def _stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
