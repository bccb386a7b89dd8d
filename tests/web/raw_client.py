"""HTTP/1.1 by hand: what a client library would hide stays visible."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def post(self, path: str, body: bytes, *headers: str) -> Answer:
        head = [f"POST {path} HTTP/1.1", "Host: extender", "User-Agent: Go-http-client/1.1", *headers]
        head += [f"Content-Length: {len(body)}", "Content-Type: application/json", "Accept-Encoding: gzip"]
        return await self.send("\r\n".join((*head, "", "")).encode() + body)

    async def send(self, request: bytes) -> Answer:
        self.writer.write(request)
        await self.writer.drain()
        return await self.answer()

    async def answer(self) -> Answer:
        """Read one answer: with the length that it announces, or there is none to read."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}
        body = await self.reader.readexactly(int(headers["content-length"]))
        return Answer(int(head[0].split()[1]), headers, body)

    async def ends(self) -> bytes:
        """Wait until the other side closes; return what it still said."""
        return await self.reader.read()


@asynccontextmanager
async def connected(port: int, context: ssl.SSLContext | None = None) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()
        # Whatever the other side did before: the socket is to be closed before the loop ends.
        with suppress(OSError):
            await writer.wait_closed()
