"""Requests to the API server over one session. What happens on the way is returned, never raised."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlencode

import aiohttp
import orjson
from yarl import URL

from extender.kube.access import Access, Credentials
from extender.kube.answer import Answer, Unanswered

if TYPE_CHECKING:
    from aiohttp.connector import Connection

Query = Sequence[tuple[str, str]]
T = TypeVar("T")

JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

# One for each request under way: each watch, and each write, of which some dozens are at once.
CONNECTIONS: Final = 64
# What a watch may hold unread before the socket is left alone: the API server drops a client that is slow to read.
WATCH_BUFFER_BYTES: Final = 8 << 20
# What is cut into lines in one go.
CHUNK_BYTES: Final = 128 << 10
# What a connection with TLS takes to be closed, when the request on it was cut short: the session forgets about it.
FAREWELL_S: Final = 0.1
SUCCESS: Final = 200
UNAUTHORIZED: Final = 401


def unhindered() -> str:
    """Keep nothing back."""
    return ""


class KeptBackError(Exception):
    """A request was not sent, for its sender must not send it any more."""


@dataclass(frozen=True, slots=True)
class Body:
    """What a request carries: JSON, of which a patch is a list, or bytes as they are.

    *why_not*, asked last, says what keeps it from being sent.
    """

    content: object
    content_type: str = JSON
    why_not: Callable[[], str] = unhindered


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
        self._was_cut_short = False
        self._session = aiohttp.ClientSession(
            headers={"User-Agent": agent},
            connector=aiohttp.TCPConnector(limit=connections),
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
        self, method: str, path: str, *, query: Query = (), body: Body | None = None, timeout_s: float = 10.0
    ) -> Answer | Unanswered:
        """Send one request and return the whole response, whatever its status."""
        return await self._asked(_Request(method, path, query, body), timeout_s)

    async def read_as(self, content_type: str, path: str, *, timeout_s: float = 10.0) -> Answer | Unanswered:
        """Get what is at *path* in another encoding than JSON."""
        request = _Request("GET", path)
        request.accept = content_type
        return await self._asked(request, timeout_s)

    async def ask_once(self, path: str, *, timeout_s: float = 10.0) -> Answer | Unanswered:
        """Get what is at *path*, and drop the connection: behind one address there may be several API servers."""
        return await self._asked(_Request("GET", path, is_last=True), timeout_s)

    async def open(self, path: str, query: Query = (), *, timeout_s: float = 10.0) -> Stream | Answer | Unanswered:
        """Begin to read a response that does not end; one that is no success is returned whole."""
        request = _Request("GET", path, query)
        return await self._within(timeout_s, request, self._opened(request))

    async def _asked(self, request: "_Request", timeout_s: float) -> Answer | Unanswered:
        began = time.perf_counter()
        reply = await self._within(timeout_s, request, self._whole(request))
        code = str(reply.status) if isinstance(reply, Answer) else "none"
        self._called(request.method, resource_of(request.path), code, time.perf_counter() - began)
        return reply

    async def _within(self, timeout_s: float, request: "_Request", work: Coroutine[Any, Any, T]) -> T | Unanswered:
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

    async def _whole(self, request: "_Request") -> Answer:
        return await _read(await self._respond(request))

    async def _opened(self, request: "_Request") -> Stream | Answer:
        response = await self._respond(request)
        is_stream = response.status == SUCCESS and response.content_type == JSON
        return Stream(response) if is_stream else await _read(response)

    async def _respond(self, request: "_Request") -> aiohttp.ClientResponse:
        """Send *request*; where our credentials are refused, once more with what they are now."""
        access = await self._credentials.access()
        response = await self._exchange(request, access)
        if response.status == UNAUTHORIZED:
            response.release()
            # Nothing was done, however long it takes to find out what else there is.
            request.was_sent = False
            await self._credentials.renew(access)
            response = await self._exchange(request, await self._credentials.access())
        return response

    async def _exchange(self, request: "_Request", access: Access) -> aiohttp.ClientResponse:
        request.check()
        _LEAVING.set(request)
        return await self._session.request(
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


class _Request:
    """A request, and whether any of it can have left. *is_last*: no other is sent over its connection."""

    def __init__(
        self, method: str, path: str, query: Query = (), body: Body | None = None, *, is_last: bool = False
    ) -> None:
        self.method = method
        self.path = path
        self.is_last = is_last
        self.accept = JSON
        self.target = f"{path}?{_encoded(tuple(query))}" if query else path
        self.data = None if body is None else _encoded_body(body.content)
        self.content_type = JSON if body is None else body.content_type
        self.why_not = unhindered if body is None else body.why_not
        self.was_sent = False

    def check(self) -> None:
        """Raise KeptBackError where it must not be sent any more."""
        why_not = self.why_not()
        if why_not:
            raise KeptBackError(why_not)


def _encoded_body(content: object) -> bytes:
    return content if isinstance(content, bytes) else orjson.dumps(content)


# Writes ask the same each time.
_encoded: Final = lru_cache(maxsize=64)(urlencode)
# Whose request the session is about to send.
_LEAVING: ContextVar[_Request] = ContextVar("_LEAVING")


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


def _headers(access: Access, request: _Request) -> dict[str, str]:
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
        return Answer(response.status, response.headers, await response.read())


def _told(error: BaseException) -> str:
    """Say what failed, but no address: in that of a proxy there may be a password."""
    match error:
        case aiohttp.ClientResponseError():
            told = f"{error.status} {error.message}"
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            told = "the address of the server, or of its proxy, cannot be used"
        case _:
            told = str(error)
    return f"{type(error).__name__}: {told}"
