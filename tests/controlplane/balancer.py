"""One address before several API servers, as production has it."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlsplit


@dataclass(slots=True)
class Balancer:
    """Each connection leads to whichever server is *chosen* when it comes, and stays there for as long as it lasts."""

    chosen: str
    url: str = ""
    _server: asyncio.Server | None = None
    _clients: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._client, "127.0.0.1", 0)
        self.url = f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_how: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._clients:
            task.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    def move(self, url: str) -> None:
        """Choose another server, and end every connection, as when the one before goes away."""
        self.chosen = url
        for task in self._clients:
            task.cancel()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            with suppress(OSError, asyncio.CancelledError):
                await self._led(reader, writer)
        finally:
            self._clients.discard(task)
            writer.transport.abort()

    async def _led(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, asked = await asyncio.open_connection(urlsplit(self.chosen).hostname, urlsplit(self.chosen).port)
        ways = [asyncio.create_task(_passed(*way)) for way in ((reader, asked), (upstream, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            asked.transport.abort()


async def _passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
