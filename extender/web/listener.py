"""An address that is listened on: requests with their bodies to a handler, its answers with their lengths back."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from aiohttp import ClientError, StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from extender.web.crash import reported

MEBIBYTE: Final = 1 << 20
# A request of 15,000 names is 700 KB: with the usual buffer of 64 KiB its connection would be paused ten times.
READ_BUFFER: Final = 4 * MEBIBYTE
BODY_SECONDS: Final = 30

Handler = Callable[[web.BaseRequest, bytes], Awaitable[web.Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a listener grants its clients."""

    # kube-scheduler keeps idle connections for 90 s, and does not repeat a call on one that we closed before.
    keep_alive_seconds: float = 180
    max_body_bytes: int = 64 * MEBIBYTE
    shutdown_seconds: float = 20


class Listener:
    """Listens on one address."""

    def __init__(self, handler: Handler, terms: Terms, context: ssl.SSLContext | None = None) -> None:
        self._handler, self._terms, self._context = handler, terms, context
        self._runner: web.ServerRunner | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port: 0 takes any that is free."""
        server = web.Server(
            self._answer,
            request_factory=self._request,
            keepalive_timeout=self._terms.keep_alive_seconds,
            read_bufsize=READ_BUFFER,
            access_log=None,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=self._terms.shutdown_seconds)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=self._context)
        await site.start()
        return site.port

    async def stop(self) -> None:
        """Take no more calls, and let those in progress end."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> web.BaseRequest:
        return web.BaseRequest(
            message, payload, protocol, writer, task, task.get_loop(), client_max_size=self._terms.max_body_bytes
        )

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        too_large = partial(refused, 413, f"the body is larger than {self._terms.max_body_bytes} bytes")
        if (request.content_length or 0) > self._terms.max_body_bytes:
            return too_large()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return too_large()
        except TimeoutError:
            return refused(408, "the body did not come")
        except (web.RequestPayloadError, ClientError, OSError) as error:
            return refused(400, f"the body could not be read: {error}")
        try:
            return await self._handler(request, body)
        except Exception as error:  # noqa: BLE001 - whoever called is to hear of any bug
            return refused(500, reported(error, request.path))


def refused(status: int, text: str) -> web.Response:
    """Answer what cannot be answered otherwise."""
    return web.Response(status=status, text=text)
