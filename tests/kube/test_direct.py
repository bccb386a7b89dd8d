"""Writes go over the session's connections, and mean what they would mean if the session sent them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from extender.kube.access import Access, Fixed
from extender.kube.answer import Answer, Unanswered
from extender.kube.api import Api
from extender.kube.request import JSON, JSON_PATCH, Body
from tests.kube.scripted import HANGING

PATH = "/api/v1/things"
UNUSABLE = "InvalidURL: the address of the server, or of its proxy, cannot be used"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"


@dataclass
class Peer:
    """A server that answers in its order what is written down, over as many connections as are opened."""

    answers: list[bytes]
    url: str = ""
    asked: list[bytes] = field(default_factory=list)
    connections: int = 0
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")), 0
                )
                self.asked.append(head + await reader.readexactly(length))
                answer = self.answers.pop(0)
                writer.write(answer.removesuffix(HANGING))
                await writer.drain()
                if answer.endswith(HANGING):
                    await reader.read()
                if not answer or answer.endswith(HANGING):
                    break
        self.closed.set()
        writer.close()


@asynccontextmanager
async def peer(*answers: bytes, path: str = "", knows: str = "") -> AsyncIterator[tuple[Peer, Api]]:
    made = Peer(list(answers))
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    api = Api(Fixed(Access(server=made.url + path, authorization=knows)), agent="us")
    try:
        yield made, api
    finally:
        await api.close()
        server.close()


async def write(api: Api, method: str = "PATCH", path: str = PATH, timeout_s: float = 10.0) -> Answer | Unanswered:
    return await api.call(method, path, query=[("a", "b c")], body=Body([1], JSON_PATCH), timeout_s=timeout_s)


def headers(asked: bytes) -> Sequence[str]:
    return sorted(asked.partition(b"\r\n\r\n")[0].decode().lower().split("\r\n")[1:])


@pytest.mark.parametrize("path", ["", "/below/some"])
async def test_the_session_would_say_the_same(path: str) -> None:
    async with peer(OK, OK, path=path, knows="Bearer t") as (server, api):
        # What is idempotent goes through the session.
        direct, through = await write(api), await write(api, "PUT")
    assert isinstance(direct, Answer)
    assert isinstance(through, Answer)
    assert (direct.status, direct.body, direct.headers) == (through.status, through.body, through.headers)
    first, second = server.asked
    assert first.startswith(f"PATCH {path}{PATH}?a=b+c HTTP/1.1\r\n".encode())
    assert second.startswith(f"PUT {path}{PATH}?a=b+c HTTP/1.1\r\n".encode())
    assert headers(first) == headers(second)
    assert first.partition(b"\r\n\r\n")[2] == second.partition(b"\r\n\r\n")[2] == b"[1]"


async def test_one_connection_carries_many_writes_and_what_the_session_sends() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    nothing = b"HTTP/1.1 204 No Content\r\n\r\n"
    continued = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK
    async with peer(OK, chunked, OK, nothing, continued) as (server, api):
        answers = [await write(api), await write(api, "POST"), await api.call("GET", PATH)]
        answers += [await write(api), await write(api)]
    told = [(answer.status, answer.body) for answer in answers if isinstance(answer, Answer)]
    assert told == [(200, b"done"), (200, b"abcde"), (200, b"done"), (204, b""), (200, b"done")]
    assert server.connections == 1


async def test_a_late_answer_is_never_taken_for_that_of_another_write() -> None:
    async with peer(HANGING, OK) as (server, api):
        # As long as this machine needs to send it.
        for timeout_s in (0.05, 0.5, 5.0):
            late = await write(api, timeout_s=timeout_s)
            if server.asked:
                break
        assert late == Unanswered(was_sent=True, why=f"no answer within {timeout_s:g} s")
        await asyncio.wait_for(server.closed.wait(), 10)
        assert isinstance(await write(api), Answer)
        assert server.connections >= 2


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(OK + OK, id="two-answers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\ndone", id="asked-to-close"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\ndone", id="of-old"),
    ],
)
async def test_a_connection_that_cannot_be_trusted_is_used_once(answer: bytes) -> None:
    async with peer(answer, OK) as (server, api):
        for _ in range(2):
            assert isinstance(await write(api), Answer)
        assert server.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"SSH-2.0-nobody\r\n\r\n", id="another-protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\ndone", id="two-lengths"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"x" * 100_000 + b"\r\n\r\n", id="a-long-header"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", id="no-chunks"),
    ],
)
async def test_a_write_that_is_answered_with_what_is_no_answer_may_have_been_acted_on(answer: bytes) -> None:
    async with peer(answer, OK) as (server, api):
        got = await write(api)
        assert isinstance(got, Unanswered)
        assert got.was_sent
        assert server.url not in got.why
        assert isinstance(await write(api), Answer)


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/a\n", "/a\x00"])
async def test_a_name_cannot_begin_another_header(path: str) -> None:
    async with peer(OK) as (server, api):
        got = await write(api, path=path)
        assert got == Unanswered(was_sent=False, why=UNUSABLE)
        assert server.asked == []


async def test_a_token_cannot_begin_another_header() -> None:
    async with peer(OK, knows="Bearer t\r\nX: y") as (server, api):
        with pytest.raises(ValueError, match="more than one line"):
            await write(api)
        assert server.asked == []


async def test_what_goes_through_a_proxy_is_left_to_the_session() -> None:
    async with peer(OK) as (server, api):
        through = Api(Fixed(Access(server="http://elsewhere:1", proxy=server.url)), agent="us")
        assert isinstance(await through.call("POST", PATH, body=Body({}, JSON)), Answer)
        await through.close()
        assert server.asked[0].startswith(b"POST http://elsewhere:1/api/v1/things HTTP/1.1\r\n")
        assert isinstance(api, Api)
