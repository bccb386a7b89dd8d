"""A sink that can be waited on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from extender.kube.follow import Rhythm, follow
from extender.kube.freshness import Freshness
from extender.kube.resource import Resource
from extender.kube.told import Told
from extender.kube.versions import Versions
from extender.model.change import Changed, Gone, Listed
from extender.model.names import ObjectKey
from extender.model.parse import key_of
from extender.model.problem import Problem
from tests.servers import Cluster

PATIENCE_S = 30


class Watcher:
    """Remembers what it is told, and wakes who waits for something to be told."""

    def __init__(self) -> None:
        self.told: list[Told] = []
        self.freshness = Freshness()
        self._news = asyncio.Event()

    def sink(self, told: Told) -> None:
        self.told.append(told)
        self.freshness.note(told)
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def tells(self, name: str, word: str) -> None:
        """Wait until the last that is told of *name* is *word*."""
        await self.until(lambda: self.words(name)[-1:] == [word])

    def words(self, name: str) -> list[str]:
        """Return what was told of the objects called *name*, one word each time."""
        return [word for told in self.told for word, key in said(told) if key.name == name]


def said(told: Told) -> list[tuple[str, ObjectKey]]:
    match told:
        case Listed(_, items):
            return [("listed", item.key if isinstance(item, Problem) else key_of(item)) for item in items]
        case Changed(what):
            return [("changed", what.key if isinstance(what, Problem) else key_of(what))]
        case Gone(_, key):
            return [("gone", key)]
        case _:
            return []


@asynccontextmanager
async def watching(cluster: Cluster, *resources: Resource, rhythm: Rhythm | None = None) -> AsyncIterator[Watcher]:
    """Follow *resources*; by the time that this is entered, all of them have been listed."""
    watcher, used = Watcher(), rhythm or Rhythm()
    versions = Versions(cluster.api, used.pace, watcher.sink)
    follows = [asyncio.create_task(follow(cluster.api, versions, each, watcher.sink, used)) for each in resources]
    watcher.freshness = Freshness(resources)
    try:
        await watcher.until(lambda: not watcher.freshness.unsynced())
        yield watcher
    finally:
        for task in follows:
            task.cancel()
        for task in follows:
            with suppress(asyncio.CancelledError):
                await task
