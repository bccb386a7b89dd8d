"""Requests to the API server over one session. What happens on the way is returned, never raised."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar

import aiohttp
from yarl import URL

from extender.kube.access import Access, Credentials
from extender.kube.answer import Answer, Unanswered
from extender.kube.direct import Connector, Direct
from extender.kube.request import JSON, TOO_LARGE, UNAUTHORIZED, Body, KeptBackError, Query, Request

if TYPE_CHECKING:
    from aiohttp.connector import Connection

T = TypeVar("T")

# One for each request under way: each watch, and each write, of which some dozens are at once.
CONNECTIONS: Final = 64
# What a watch may hold unread before the socket is left alone: the API server drops a client that is slow to read.
WATCH_BUFFER_BYTES: Final = 8 << 20
# Of an answer that is longer no more is read. It is decoded in one go, and takes ten times as much where it is of small
# parts. Usual pages have less than a tenth of that; but an object may be of more than a million bytes, and there may be
# hundreds of those.
MOST_BYTES: Final = 32 << 20
# What is cut into lines in one go.
CHUNK_BYTES: Final = 128 << 10
# What a connection with TLS takes to be closed, when the request on it was cut short: the session forgets about it.
FAREWELL_S: Final = 0.1
SUCCESS: Final = 200
# How long the API server may take to answer, where nobody says otherwise.
TIMEOUT_S: Final = 10.0


class Stream:
    """A response that goes on for as long as the API server likes."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._ended_for = ""

    async def read(self, patience_s: float) -> bytes | Unanswered | None:
        """Return what has come since, waiting for it: empty at the end of the stream, None if nothing comes in time."""
        try:
            async with asyncio.timeout(patience_s):
                return await self._response.content.read(CHUNK_BYTES)
        except TimeoutError:
            return None
        except (aiohttp.ClientError, OSError) as error:
            return Unanswered(was_sent=True, why=self._ended_for or _told(error))

    def end(self, why: str) -> None:
        """Close it for a reason that whoever reads it is told."""
        self._ended_for = why
        self.close()

    def close(self) -> None:
        """Drop the connection at once: what a watch still has to say is of no use, and need not be taken leave of."""
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()


# Hears of each request: its verb, what it was about, its status or none at all, and how many seconds it took.
Called = Callable[[str, str, str, float], None]


def unheard(_verb: str, _resource: str, _code: str, _seconds: float) -> None:
    """Do nothing."""


class Api:
    """The API server. One session, whose connections outlive requests; close it when done. *called* hears of each.

    *agent* is what we call ourselves, and so the field manager that objects name after each write of ours.
    """

    def __init__(
        self,
        credentials: Credentials,
        connections: int = CONNECTIONS,
        called: Called = unheard,
        agent: str = "dra-extender",
    ) -> None:
        self._credentials = credentials
        self._called = called
        # Told until when the certificate holds by which we are known, each time that it may be another.
        self.lasts: Callable[[float | None], None] = lambda _until: None
        self._access: Access | None = None
        self._was_cut_short = False
        connector = Connector(limit=connections)
        self._direct = Direct(connector, agent)
        self._session = aiohttp.ClientSession(
            headers={"User-Agent": agent},
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None),
            request_class=_Leaving,
            trust_env=False,  # reading the environment for each request doubles what it costs
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def close(self) -> None:
        await self._session.close()
        if self._was_cut_short:
            await asyncio.sleep(FAREWELL_S)

    async def call(
        self, method: str, path: str, *, query: Query = (), body: Body | None = None, timeout_s: float = TIMEOUT_S
    ) -> Answer | Unanswered:
        """Send one request and return the whole response, whatever its status; TOO_LARGE where that is too long."""
        return await self._asked(Request(method, path, query, body), timeout_s)

    async def read_as(self, content_type: str, path: str, *, timeout_s: float = TIMEOUT_S) -> Answer | Unanswered:
        """Get what is at *path* in another encoding than JSON."""
        request = Request("GET", path)
        request.accept = content_type
        return await self._asked(request, timeout_s)

    async def ask_once(self, path: str) -> Answer | Unanswered:
        """Get what is at *path*, and drop the connection: behind one address there may be several API servers."""
        return await self._asked(Request("GET", path, is_last=True), TIMEOUT_S)

    async def open(self, path: str, query: Query = ()) -> Stream | Answer | Unanswered:
        """Begin to read a response that does not end; one that is no success is returned whole."""
        request = Request("GET", path, query)
        return await self._within(TIMEOUT_S, request, self._admitted(request, self._streamed))

    async def _asked(self, request: Request, timeout_s: float) -> Answer | Unanswered:
        began = time.perf_counter()
        reply = await self._within(timeout_s, request, self._admitted(request, self._answered))
        code = str(reply.status) if isinstance(reply, Answer) else "none"
        self._called(request.method, resource_of(request.path), code, time.perf_counter() - began)
        return reply

    async def _within(self, timeout_s: float, request: Request, work: Coroutine[Any, Any, T]) -> T | Unanswered:
        try:
            async with asyncio.timeout(timeout_s):
                return await work
        except asyncio.CancelledError:
            self._was_cut_short = True
            raise
        except TimeoutError:
            self._was_cut_short = True
            return Unanswered(request.was_sent, f"no answer within {timeout_s:g} s")
        except (aiohttp.ClientError, OSError) as error:
            return Unanswered(request.was_sent, _told(error))
        except KeptBackError as error:
            return Unanswered(request.was_sent, str(error))

    async def _answered(self, request: Request, access: Access) -> Answer:
        if self._direct.takes(request, access):
            return await self._direct.send(request, access)
        return await _read(await self._exchange(request, access))

    async def _streamed(self, request: Request, access: Access) -> Stream | Answer:
        response = await self._exchange(request, access)
        is_stream = response.status == SUCCESS and response.content_type == JSON
        return Stream(response) if is_stream else await _read(response)

    async def _admitted(self, request: Request, send: Callable[[Request, Access], Awaitable[T]]) -> T:
        """Send *request*; where our credentials are refused, once more with what they are now."""
        access = await self._known()
        reply = await send(request, access)
        if isinstance(reply, Answer) and reply.status == UNAUTHORIZED:
            await self._credentials.renew(access)
            reply = await send(request, await self._known())
        return reply

    async def _known(self) -> Access:
        access = await self._credentials.access()
        if access is not self._access:
            self._access = access
            self.lasts(access.until)
        return access

    async def _exchange(self, request: Request, access: Access) -> aiohttp.ClientResponse:
        request.check()
        _LEAVING.set(request)
        response = await self._session.request(
            request.method,
            URL(f"{access.server}{request.target}", encoded=True),
            data=request.data,
            headers=_headers(access, request),
            ssl=access.tls or True,
            server_hostname=access.server_name,
            proxy=access.proxy,
            allow_redirects=False,
            read_bufsize=WATCH_BUFFER_BYTES,
        )
        request.heard(response.status)
        return response


# Whose request the session is about to send.
_LEAVING: ContextVar[Request] = ContextVar("_LEAVING")


class _Leaving(aiohttp.ClientRequest):
    """Keeps back what must not leave any more, and notes what does.

    The session's tracing would tell that, too, for a tenth of what a request costs.
    """

    async def send(self, conn: "Connection") -> aiohttp.ClientResponse:
        request = _LEAVING.get()
        # Again: for a connection one may have to wait, and what the session repeats was checked long ago.
        request.check()
        request.was_sent = True
        return await super().send(conn)


def resource_of(path: str) -> str:
    """Return what *path* is about, without names: "pods/binding"; empty where it is about no resource."""
    parts = path.strip("/").split("/")
    inside = parts[2:] if parts[0] == "api" else parts[3:]
    if len(inside) > 2 and inside[0] == "namespaces":
        inside = inside[2:]
    return "/".join(inside[:1] + inside[2:3])


def _headers(access: Access, request: Request) -> dict[str, str]:
    # Unpacking costs us, and packing the API server, more than the bytes do between neighbours.
    headers = {"Accept": request.accept, "Accept-Encoding": "identity"}
    if access.authorization:
        headers["Authorization"] = access.authorization
    if request.data is not None:
        headers["Content-Type"] = request.content_type
    if request.is_last:
        headers["Connection"] = "close"
    return headers


async def _read(response: aiohttp.ClientResponse) -> Answer:
    async with response:
        parts, length = list[bytes](), 0
        while part := await response.content.readany():
            parts.append(part)
            length += len(part)
            if length > MOST_BYTES:
                response.close()
                return Answer(TOO_LARGE, {}, b"the answer is longer than is read of one")
        return Answer(response.status, response.headers, b"".join(parts))


def _told(error: BaseException) -> str:
    """Say what failed, but no address: in that of a proxy there may be a password."""
    match error:
        case aiohttp.ClientResponseError():
            told = f"{error.status} {error.message}"
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            told = "the address of the server, or of its proxy, cannot be used"
        case aiohttp.ClientConnectorError() if not isinstance(error, aiohttp.ClientConnectorCertificateError):
            # The library tells the context of TLS as well, by where that is in memory: each one is another reason.
            told = f"Cannot connect to host {error.host}:{error.port} [{error.strerror or error.os_error}]"
        case _:
            told = str(error)
    return f"{type(error).__name__}: {told}"
