"""An address that is listened on: requests with their bodies to a handler, its answers with their lengths back."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, Final
from weakref import WeakSet

from aiohttp import ClientError, StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import ERROR, RequestHandler

from extender.model.frozen import dataclass
from extender.web.crash import HttpLog, reported

LOG: Final = logging.getLogger(__name__)
MEBIBYTE: Final = 1 << 20
BODY_SECONDS: Final = 30
HANDSHAKE_SECONDS: Final = 10
# At the end, what is left of calls that are being read: whoever sends no more of them holds up nothing.
READ_ON_SECONDS: Final = 2

Handler = Callable[[web.BaseRequest, bytes], Awaitable[web.Response]]
# Told of a request whose body could not be read, and what that is answered with.
Unread = Callable[[web.BaseRequest, web.Response], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """What a listener grants its clients. Where no body is granted, none is read."""

    # kube-scheduler keeps idle connections for 90 s, and does not repeat a call on one that we closed before.
    keep_alive_seconds: float = 180
    max_body_bytes: int = 64 * MEBIBYTE
    shutdown_seconds: float = 20
    # A request of 15,000 names is 700 KB: with the usual buffer its connection would be paused ten times.
    buffer_bytes: int = 4 * MEBIBYTE
    max_header_bytes: int = 8190
    # How long is read on after an answer to a request that has not come in full.
    lingering_seconds: float = 10
    # With more the oldest is closed: whoever holds many open keeps nobody else out.
    most_connections: int | None = None
    # How long a connection that was answered waits for its next answer.
    rest_seconds: float = 0.0


class Listener:
    """Listens on one address."""

    def __init__(
        self,
        handler: Handler,
        limits: ListenerLimits,
        context: ssl.SSLContext | None = None,
        unread: Unread = lambda _request, _answer: None,
    ) -> None:
        self._handler, self._limits, self._context, self._unread = handler, limits, context, unread
        self._runner: web.ServerRunner | None = None
        self._server: _Bounded | None = None
        self._accepting: list[asyncio.Server] = []
        self._answering: set[RequestHandler] = set()
        # Of whose call not all has come, or nothing was looked at, and what is done once it has been read.
        self._reading: dict[RequestHandler, asyncio.Future[None]] = {}

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port: 0 takes any that is free."""
        limits = self._limits
        server = _Bounded(
            self._answer,
            request_factory=self._request,
            keepalive_timeout=limits.keep_alive_seconds,
            lingering_time=limits.lingering_seconds,
            read_bufsize=limits.buffer_bytes,
            max_line_size=limits.max_header_bytes,
            max_field_size=limits.max_header_bytes,
            auto_decompress=False,
            access_log=None,
            logger=HttpLog(LOG, {}),
        )
        server.most, server.turns = limits.most_connections, {}
        server.admitted = WeakSet([self._context] if self._context else [])
        self._server, self._runner = server, web.ServerRunner(server, shutdown_timeout=limits.shutdown_seconds)
        await self._runner.setup()
        self._accepting = [await self._accepted(server, self._context, {"host": host or None, "port": port})]
        found: int = self._accepting[0].sockets[0].getsockname()[1]
        return found

    async def renew(self, context: ssl.SSLContext, *, ends_others: bool) -> None:
        """Speak to new clients by *context*, on the same sockets; *ends_others* once their calls are answered.

        A context of which one part is replaced would keep others of before: authorities, and sessions that resume.
        """
        server, before = self._server, self._accepting
        if server is None:
            self._context = context
            return
        server.admitted.add(context)
        self._accepting = await self._again(server, context)
        self._context = context
        for accepting in before:
            accepting.close()
        if ends_others:
            server.admitted = WeakSet([context])
        for each in server.connections if ends_others else ():
            if each in self._answering or self._is_unread(each):
                self._close(each)
            else:
                each.force_close()

    async def stop(self) -> None:
        """Take no more calls, and let those in progress end."""
        for accepting in self._accepting:
            accepting.close()
        self._accepting = []
        runner, server, self._runner, self._server = self._runner, self._server, None, None
        if runner is None or server is None:
            return
        for each in server.connections:
            self._close(each)
        if self._reading:
            await asyncio.wait(self._reading.values(), timeout=READ_ON_SECONDS)
        for each in self._reading:
            each.force_close()
        await runner.cleanup()

    def _close(self, connection: RequestHandler) -> None:
        """Close it once its call is answered: what comes after a close is dropped, the rest of a body too."""
        if self._is_unread(connection):
            self._unread_of(connection).add_done_callback(lambda _reading: connection.close())
        else:
            connection.close()

    def _is_unread(self, connection: RequestHandler) -> bool:
        """Tell whether a call has come that has not been read; of those behind one that is answered none is."""
        has_come = bool(connection._messages)  # noqa: SLF001 - the library tells it nowhere
        return connection in self._reading or (has_come and connection not in self._answering)

    def _unread_of(self, connection: RequestHandler) -> asyncio.Future[None]:
        """Note that a call is to be read; what is returned is done once it has been."""
        return self._reading.setdefault(connection, asyncio.get_running_loop().create_future())

    def _has_read(self, connection: RequestHandler) -> None:
        reading = self._reading.pop(connection, None)
        if reading is not None:
            reading.set_result(None)

    async def _again(self, server: web.Server, context: ssl.SSLContext) -> list[asyncio.Server]:
        """Accept on the same sockets by *context*, too: on all of them or, where that raises OSError, on none."""
        again = []
        with ExitStack() as undone:
            for socket in [socket for accepting in self._accepting for socket in accepting.sockets]:
                copy = socket.dup()
                undone.callback(copy.close)
                again.append(await self._accepted(server, context, {"sock": copy}))
                undone.callback(again[-1].close)
            undone.pop_all()
        return again

    async def _accepted(
        self, server: web.Server, context: ssl.SSLContext | None, where: Mapping[str, Any]
    ) -> asyncio.Server:
        handshake: Mapping[str, Any] = {"ssl_handshake_timeout": HANDSHAKE_SECONDS} if context else {}
        return await asyncio.get_running_loop().create_server(server, ssl=context, **where, **handshake)

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        # Here, as whoever answers may only begin in the next turn of the loop, and the connection be closed in between.
        if message is ERROR:
            # That is answered by the library.
            self._has_read(protocol)
        else:
            self._unread_of(protocol)
        return web.BaseRequest(
            message, payload, protocol, writer, task, task.get_loop(), client_max_size=self._limits.max_body_bytes
        )

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        connection = request.protocol
        if self._limits.rest_seconds:
            await self._rest(connection)
        self._answering.add(connection)
        try:
            return await self._answered(request)
        finally:
            self._answering.discard(connection)

    async def _rest(self, connection: RequestHandler) -> None:
        """Let others have their turns before a connection is answered again. Its first call is answered at once."""
        now, turns = asyncio.get_running_loop().time(), self._server.turns if self._server else {}
        at = max(now, turns.get(connection, now))
        if connection.connected:
            turns[connection] = at + self._limits.rest_seconds
        if at > now:
            await asyncio.sleep(at - now)

    async def _answered(self, request: web.BaseRequest) -> web.Response:
        try:
            body = await self._body(request) if self._limits.max_body_bytes else b""
        finally:
            self._has_read(request.protocol)
        if isinstance(body, web.Response):
            self._unread(request, body)
            return body
        try:
            return await self._handler(request, body)
        except Exception as error:  # noqa: BLE001 - whoever called is to hear of any bug
            return refused(500, reported(error, request.path))

    async def _body(self, request: web.BaseRequest) -> bytes | web.Response:
        """Read the body, or answer why it is not."""
        most = self._limits.max_body_bytes
        too_large = partial(refused, 413, f"the body is larger than {most} bytes")
        if (request.content_length or 0) > most:
            return too_large()
        try:
            if request.content.is_eof():
                # All of it is there: it is put together once, where the library copies it into a buffer and out of it.
                body = request.content.read_nowait()
                return too_large() if len(body) > most else body
            async with asyncio.timeout(BODY_SECONDS):
                return await request.read()
        except web.HTTPRequestEntityTooLarge:
            return too_large()
        except TimeoutError:
            return refused(408, "the body did not come")
        except (web.RequestPayloadError, ClientError, OSError, RuntimeError) as error:
            # The last is what the library says where the client has gone after a call and half of another.
            if isinstance(error, RuntimeError) and request.protocol.connected:
                raise
            return refused(400, f"the body could not be read: {error}")


class _Bounded(web.Server):
    """Keeps no more than *most* connections, the newest; of those with TLS, by the contexts that are *admitted*."""

    most: int | None = None
    admitted: WeakSet[ssl.SSLContext]
    # From when on connections that were answered are answered again.
    turns: dict[RequestHandler, float]

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        context = transport.get_extra_info("sslcontext")
        if context is not None and context not in self.admitted:
            # Its handshake was under way when the authorities were replaced by which it was let in.
            transport.abort()
        if self.most:
            live = [each.transport for each in self.connections if each.transport is not None]
            for oldest in live[: -self.most]:
                # What its client has not read by now it will not get: a close would wait for that.
                oldest.abort()

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self.turns.pop(handler, None)


def refused(status: int, text: str) -> web.Response:
    """Answer what cannot be answered otherwise."""
    return web.Response(status=status, text=text)
