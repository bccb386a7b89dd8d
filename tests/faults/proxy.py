"""What stands between the extender and its API server: it loses, delays and forges answers as it is told."""

import asyncio
import json
import re
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Self
from urllib.parse import urlsplit

LIMIT = 1 << 24
REASONS = {409: "Conflict", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError"}
STEPS = {
    "finalizer": "PATCH .*/resourceclaims/[^/]+$",
    "allocation": "PATCH .*/resourceclaims/[^/]+/status$",
    "binding": "POST .*/pods/[^/]+/binding$",
}
WATCHING = b"HTTP/1.1 200"
LAST_CHUNK = b"0\r\n\r\n"
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Request(NamedTuple):
    """What the extender asks."""

    method: str
    target: str
    data: bytes

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def is_watch(self) -> bool:
        return "watch=" in self.target

    @property
    def step(self) -> str:
        """The step of a binding that this is: the finalizer, the allocation, the binding; or something else."""
        about = f"{self.method} {self.target.partition('?')[0]}"
        return next((name for name, pattern in STEPS.items() if re.search(pattern, about)), "else")


Forward = Callable[[], Awaitable[bytes]]
# Returns what the extender hears, after asking the API server or not; None for nothing at all.
Fault = Callable[[Request, Forward], Awaitable[bytes | None]]


async def honest(_request: Request, forward: Forward) -> bytes | None:
    return await forward()


def forged(status: int) -> bytes:
    """Return an answer that the API server has not given."""
    told = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": REASONS[status], "code": status}
    body = json.dumps({**told, "message": "a fault of the test"}).encode()
    head = f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}{'Retry-After: 1' if status == 429 else 'X-Fault: 1'}\r\n\r\n".encode() + body


@dataclass(slots=True)
class Proxy:
    """HTTP towards the extender, TLS towards the API server."""

    url: str
    authority: str
    fault: Fault = honest
    port: int = 0
    # Open while watches deliver.
    flowing: asyncio.Event = field(default_factory=asyncio.Event)
    heard: Counter[str] = field(default_factory=Counter)
    late: set[asyncio.Task[object]] = field(default_factory=set)
    # Watches that deliver nothing, by a part of what they ask for, until the event.
    _held: dict[str, asyncio.Event] = field(default_factory=dict)
    _server: asyncio.Server | None = None
    _idle: list[Ends] = field(default_factory=list)
    _watches: dict[asyncio.StreamWriter, str] = field(default_factory=dict)
    # Of watches that have fallen behind: how long they wait before they deliver what has come.
    _behind: dict[asyncio.StreamWriter, float] = field(default_factory=dict)
    _clients: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        self.flowing.set()
        self._server = await asyncio.start_server(self._client, "127.0.0.1", 0, limit=LIMIT)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_how: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in [*self._clients, *self.late]:
            task.cancel()
        await asyncio.gather(*self._clients, *self.late, return_exceptions=True)
        for _, writer in self._idle:
            writer.transport.abort()

    def cut_watches(self) -> int:
        """End every watch in the middle, and return how many there were."""
        count = len(self._watches)
        for writer in self._watches:
            writer.transport.abort()
        return count

    @contextmanager
    def holding(self, part: str) -> Iterator[None]:
        """Have the watches deliver nothing that have *part* in what they ask for, also those that follow."""
        free = self._held[part] = asyncio.Event()
        try:
            yield
        finally:
            del self._held[part]
            free.set()

    def fall_behind(self, seconds: float, about: str) -> int:
        """Have the open watches of a resource deliver so much later, as an API server does that is behind the others.

        Return how many there were. Those that follow are on time: they lead to another API server.
        """
        found = {writer: seconds for writer, target in self._watches.items() if f"/{about}?" in target}
        self._behind |= found
        return len(found)

    async def forward(self, data: bytes) -> bytes:
        """Ask the API server, and return all that it answers."""
        reader, writer = self._idle.pop() if self._idle else await self._connected()
        try:
            writer.write(data)
            answer = await _response(reader)
        except BaseException:
            writer.transport.abort()
            raise
        self._idle.append((reader, writer))
        return answer

    def forward_later(self, seconds: float, forward: Forward) -> None:
        """Ask the API server when nobody listens any more."""

        async def arrive() -> None:
            await asyncio.sleep(seconds)
            await forward()

        task: asyncio.Task[object] = asyncio.create_task(arrive())
        self.late.add(task)

    async def _connected(self) -> Ends:
        parts = urlsplit(self.url)
        tls = ssl.create_default_context(cafile=self.authority)
        return await asyncio.open_connection(parts.hostname, parts.port, ssl=tls, limit=LIMIT)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            # Whoever goes away in the middle, and an API server that does, ends the connection.
            with suppress(OSError, EOFError, asyncio.CancelledError):
                await self._served(reader, writer)
        finally:
            self._clients.discard(task)
            writer.transport.abort()

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await _request(reader)) is not None:
            self.heard[request.step] += 1
            if request.is_watch:
                if await self._watched(request, writer):
                    return
                continue
            answer = await self.fault(request, lambda sent=request: self.forward(sent.data))  # type: ignore[misc]  # its default is its type
            if answer is None:
                await reader.read()
                return
            writer.write(answer)
            await writer.drain()
        return

    async def _watched(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        """Pass a watch on to its end; one that is refused has no end, and leaves the connection to the next request."""
        upstream, asked = await self._connected()
        asked.write(request.data)
        self._watches[writer] = request.target
        try:
            head = await _demanded(upstream)
            if not head.startswith(WATCHING):
                writer.write(head + await _rest(head, upstream))
                await writer.drain()
                return False
            # The API server keeps the connection of a watch that it has ended. Nobody is to ask anything on ours then.
            writer.write(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            while data := await upstream.read(1 << 16):
                await self.flowing.wait()
                for free in [free for part, free in self._held.items() if part in request.target]:
                    await free.wait()
                await asyncio.sleep(self._behind.get(writer, 0.0))
                writer.write(data)
                await writer.drain()
                if data.endswith(LAST_CHUNK):
                    break
        finally:
            del self._watches[writer]
            self._behind.pop(writer, None)
            asked.transport.abort()
        return True


async def _request(reader: asyncio.StreamReader) -> Request | None:
    head = await _head(reader)
    if head is None:
        return None
    method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
    body = await reader.readexactly(int(_header(head, b"content-length") or 0))
    return Request(method, target, head + body)


async def _response(reader: asyncio.StreamReader) -> bytes:
    head = await _demanded(reader)
    return head + await _rest(head, reader)


async def _demanded(reader: asyncio.StreamReader) -> bytes:
    head = await _head(reader)
    if head is None:
        raise ConnectionResetError
    return head


async def _rest(head: bytes, reader: asyncio.StreamReader) -> bytes:
    if _header(head, b"transfer-encoding") == b"chunked":
        return await _chunks(reader)
    return await reader.readexactly(int(_header(head, b"content-length") or 0))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    parts = []
    while True:
        size = await reader.readline()
        if not size:  # the API server has ended in the middle
            raise ConnectionResetError
        parts += [size, await reader.readexactly(int(size, 16) + 2)]
        if int(size, 16) == 0:
            return b"".join(parts)


async def _head(reader: asyncio.StreamReader) -> bytes | None:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None


def _header(head: bytes, name: bytes) -> bytes:
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.lower() == name:
            return value.strip()
    return b""
