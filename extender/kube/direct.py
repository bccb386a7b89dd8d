"""Writes over a session's connections, without the session: with what it does besides they cost up to twice as much.

Nothing of that is needed for them: no proxy, no redirect, no cookie, no second attempt.
"""

import asyncio
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from extender.kube.access import Access
from extender.kube.answer import Answer
from extender.kube.request import Request
from extender.model.frozen import dataclass

if TYPE_CHECKING:
    from aiohttp.tracing import Trace

# Those that are sent once, whatever becomes of them.
METHODS: Final = frozenset(("PATCH", "POST"))
SCHEMES: Final = frozenset(("http", "https"))
# Whoever asks has a deadline of his own.
UNLIMITED: Final = aiohttp.ClientTimeout(total=None)
# Answers that another follows. A protocol that is switched to is none of ours.
INFORMATIONAL: Final = frozenset(range(100, 200)) - {101}
# What would begin another header.
BREAKS: Final = re.compile("[\r\n\0]")


@dataclass(frozen=True, slots=True)
class Way:
    """How a server is reached: by whose connections, below which path, with which headers."""

    request: aiohttp.ClientRequest
    path: str
    headers: str


class Connector(aiohttp.TCPConnector):
    """Gives no connection on which something waits to be read: it would be the answer to what is sent next."""

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list["Trace"],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - as it is called where it comes from
    ) -> Connection:
        for _ in range(self.limit + 1):
            if self.closed:
                break
            connection = await super().connect(req, traces, timeout)
            if connection.protocol is not None and not connection.protocol.should_close:
                return connection
            connection.close()
        raise aiohttp.ClientConnectionError("closed by us" if self.closed else "the server speaks before it is asked")


class Direct:
    """Sends what is sent to the server itself, over connections of *connector*. *agent* is what we call ourselves."""

    def __init__(self, connector: Connector, agent: str) -> None:
        self._connector = connector
        self._agent = agent
        # There is one server, and for a moment two tokens.
        self._way = lru_cache(maxsize=2)(self._way_to)

    @staticmethod
    def takes(request: Request, access: Access) -> bool:
        return request.method in METHODS and request.data is not None and access.proxy is None

    async def send(self, request: Request, access: Access) -> Answer:
        """Return the whole response. Raises what the session would, and KeptBackError."""
        request.check()
        way = self._way(access)
        written = _written(request, way)
        connection = await self._connector.connect(way.request, [], UNLIMITED)
        try:
            # Again: for a connection one may have to wait.
            request.check()
            answer = await _exchanged(request, written, connection)
        except BaseException:
            connection.close()
            raise
        connection.release()
        return answer

    def _way_to(self, access: Access) -> Way:
        headers = {"User-Agent": self._agent, "Accept-Encoding": "identity"}
        if access.authorization:
            headers["Authorization"] = access.authorization
        server = URL(access.server, encoded=True)
        if server.scheme not in SCHEMES or server.user is not None:
            raise aiohttp.NonHttpUrlClientError(server)
        request = aiohttp.ClientRequest(
            "GET",
            server,
            headers=headers,
            skip_auto_headers=("Accept",),
            loop=asyncio.get_running_loop(),
            ssl=access.tls or True,
            server_hostname=access.server_name,
        )
        lines = [f"{name}: {value}" for name, value in request.headers.items()]
        if any(map(BREAKS.search, lines)):
            raise aiohttp.ClientError("a header of ours would be two")
        return Way(request, "" if server.raw_path == "/" else server.raw_path, "\r\n".join(lines))


def _written(request: Request, way: Way) -> bytes:
    target, data = f"{way.path}{request.target}", request.data or b""
    # What ends a line within a name would begin another header.
    if not target.isprintable() or " " in target:
        raise aiohttp.InvalidURL(target)
    head = (
        f"{request.method} {target} HTTP/1.1\r\n{way.headers}\r\n"
        f"Accept: {request.accept}\r\nContent-Type: {request.content_type}\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


async def _exchanged(request: Request, written: bytes, connection: Connection) -> Answer:
    protocol = connection.protocol
    if protocol is None or protocol.transport is None:
        raise aiohttp.ServerDisconnectedError
    protocol.set_response_params(read_until_eof=True)
    request.was_sent = True
    protocol.transport.write(written)
    try:
        message, body = await protocol.read()
        while message.code in INFORMATIONAL:
            message, body = await protocol.read()
    except HttpProcessingError as error:
        raise aiohttp.ClientPayloadError(f"{error.code} {error.message}") from error
    request.heard(message.code)
    answer = Answer(message.code, message.headers, await body.read())
    if protocol.transport is not None and protocol.transport.get_write_buffer_size():
        # It was answered before all of it had left, and the rest would go ahead of what is sent next.
        protocol.force_close()
    return answer
