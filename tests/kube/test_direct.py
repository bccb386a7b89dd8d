"""Writes go over the session's connections, and mean what they would mean if the session sent them."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import Mock

import aiohttp
import pytest

from extender.kube.access import Access, Fixed
from extender.kube.answer import Answer, Unanswered
from extender.kube.api import Api
from extender.kube.direct import Connector, Direct
from extender.kube.request import JSON, JSON_PATCH, Body, Request
from tests.kube.scripted import HANGING

PATH = "/api/v1/things"
UNUSABLE = "InvalidURL: the address of the server, or of its proxy, cannot be used"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"


@dataclass
class Peer:
    """A server that answers in its order what is written down, over as many connections as are opened.

    After *unasked*, where that is set, it says once more what was not asked for.
    """

    answers: list[bytes]
    url: str = ""
    asked: list[bytes] = field(default_factory=list)
    connections: int = 0
    unasked: bytes = b""
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    said: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._answered(reader, writer):
                    pass
        finally:
            self.closed.set()
            writer.close()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer once; tell whether the connection goes on."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")), 0)
        self.asked.append(head + await reader.readexactly(length))
        answer = self.answers.pop(0)
        writer.write(answer.removesuffix(HANGING).removesuffix(CLOSING))
        await writer.drain()
        if answer.endswith(HANGING):
            await reader.read()
        if self.unasked:
            await self.ready.wait()
            writer.write(self.unasked)
            self.unasked = b""
            await writer.drain()
            self.said.set()
        return not answer.endswith((HANGING, CLOSING))


# At the end of an answer: the connection is closed after it.
CLOSING = b"(closing)"


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


@pytest.mark.parametrize(("path", "knows"), [("", "Bearer t"), ("/below/%7Esome", "Bearer t"), ("", "")])
async def test_the_session_would_say_the_same(path: str, knows: str) -> None:
    async with peer(OK, OK, path=path, knows=knows) as (server, api):
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


@pytest.mark.parametrize(
    ("method", "body", "proxy", "is_direct"),
    [
        ("POST", Body({}), None, True),
        ("PUT", Body({}), None, False),
        ("DELETE", Body({}), None, False),
        ("POST", None, None, False),
        ("PATCH", Body({}), "http://proxy:1", False),
    ],
)
def test_what_may_be_sent_twice_has_no_body_or_goes_through_a_proxy_is_left_to_the_session(
    method: str, body: Body | None, proxy: str | None, *, is_direct: bool
) -> None:
    assert Direct.takes(Request(method, PATH, (), body), Access(server="http://s", proxy=proxy)) is is_direct


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the certificate of a server that is called "api", with its key, which nobody vouches for."""
    folder = tmp_path_factory.mktemp("certified")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=api"]
    named = ["-addext", "subjectAltName=DNS:api", "-keyout", "both.pem", "-out", "api.crt"]
    try:
        subprocess.run([*command, *named], check=True, cwd=folder, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    with (folder / "both.pem").open("a") as both:
        both.write((folder / "api.crt").read_text())
    return folder


@pytest.mark.parametrize("method", ["PATCH", "PUT"], ids=["direct", "session"])
@pytest.mark.parametrize(
    ("is_trusted", "name", "is_sent"),
    [(True, "api", True), (False, "api", False), (True, None, False), (True, "other", False)],
    ids=["known", "unknown", "by its address", "another"],
)
async def test_nothing_is_sent_to_who_does_not_prove_to_be_the_server(
    certified: Path, method: str, name: str | None, *, is_trusted: bool, is_sent: bool
) -> None:
    trusted = ssl.create_default_context(cafile=certified / "api.crt") if is_trusted else None
    shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    shown.load_cert_chain(certified / "both.pem")
    made = Peer([OK])
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=shown)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    api = Api(Fixed(Access(server=url, tls=trusted, server_name=name)))
    got = await write(api, method)
    await api.close()
    server.close()
    assert (isinstance(got, Answer), len(made.asked)) == (is_sent, int(is_sent))
    assert isinstance(got, Answer) or not got.was_sent


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
            if isinstance(late, Unanswered) and late.was_sent:
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
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", id="another"),
    ],
)
async def test_a_connection_that_cannot_be_trusted_is_used_once(answer: bytes) -> None:
    async with peer(answer, OK) as (server, api):
        for _ in range(2):
            assert isinstance(await write(api), Answer)
        assert server.connections == 2


@pytest.mark.parametrize("method", ["PATCH", "PUT"], ids=["direct", "session"])
async def test_what_is_said_unasked_is_no_answer_to_what_is_written_next(method: str) -> None:
    """A proxy may say that it is tired of waiting; taken for an answer, a write would not be known to have landed."""
    async with peer(OK, OK) as (server, api):
        server.unasked = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
        assert isinstance(await write(api), Answer)
        server.ready.set()
        await asyncio.wait_for(server.said.wait(), 10)
        while not _waiting(api):  # noqa: ASYNC110 - what has come is read when it is there, and nobody is told
            await asyncio.sleep(0.001)
        second = await write(api, method)
        assert isinstance(second, Answer)
        assert (second.status, server.connections, len(server.asked)) == (200, 2, 2)


async def test_a_server_that_speaks_before_it_is_asked_is_given_up_after_as_many_connections_as_may_be_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = list[Mock]()

    async def loud(*_: object) -> Mock:
        made.append(Mock(protocol=Mock(should_close=True)))
        return made[-1]

    monkeypatch.setattr(aiohttp.TCPConnector, "connect", loud)
    async with Connector(limit=3) as connector:
        with pytest.raises(aiohttp.ClientConnectionError, match="speaks before it is asked"):
            await connector.connect(Mock(), [], aiohttp.ClientTimeout())
    assert len(made) == 4
    assert all(each.close.called for each in made)


def _waiting(api: Api) -> bool:
    """Tell whether something waits to be read on a connection that nobody uses."""
    (idle,) = api._direct._connector._conns.values()
    return all(protocol.should_close for protocol, _ in idle)


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
async def test_an_answer_may_end_with_its_connection(version: bytes) -> None:
    async with peer(b"HTTP/" + version + b" 409 Conflict\r\n\r\n" + b"x" * 100_000 + CLOSING) as (_, api):
        answer = await write(api)
        assert isinstance(answer, Answer)
        assert (answer.status, answer.body) == (409, b"x" * 100_000)


async def test_what_the_server_does_not_let_in_was_not_acted_on_however_its_answer_ends() -> None:
    refused = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\n\r\nno" + CLOSING
    async with peer(refused) as (_, api):
        got = await write(api)
        assert isinstance(got, Unanswered)
        assert not got.was_sent


async def test_it_is_asked_again_once_there_is_a_connection_whether_a_write_may_leave() -> None:
    async with peer(OK) as (server, api):
        answers = ["", "not leading", "", ""]
        body = Body({}, JSON_PATCH, lambda: answers.pop(0))
        assert await api.call("PATCH", PATH, body=body) == Unanswered(was_sent=False, why="not leading")
        assert server.asked == []
        # The connection was given back, and not as one that is in use.
        assert isinstance(await api.call("PATCH", PATH, body=body), Answer)


async def test_nothing_is_written_once_it_is_closed() -> None:
    async with peer(OK) as (server, api):
        await api.close()
        got = await write(api)
        assert got == Unanswered(was_sent=False, why="ClientConnectionError: closed by us")
        assert server.connections == 0


async def test_an_answer_that_comes_before_all_was_sent_ends_the_connection() -> None:
    read_on = asyncio.Event()

    async def hasty(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await read_on.wait()
        writer.close()

    server = await asyncio.start_server(hasty, "127.0.0.1", 0)
    api = Api(Fixed(Access(server=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")))
    answer = await api.call("POST", PATH, body=Body(b"x" * (32 << 20)))
    assert isinstance(answer, Answer)
    assert not api._direct._connector._conns
    read_on.set()
    await api.close()
    server.close()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(CLOSING, id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndo" + CLOSING, id="half-of-it"),
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
        got = await write(api)
        assert got == Unanswered(was_sent=False, why="ClientError: a header of ours would be two")
        assert server.asked == []


@pytest.mark.parametrize("server", ["ftp://127.0.0.1:1", "http://me:secret@127.0.0.1:1"])
async def test_a_server_that_is_none_is_told_without_its_address(server: str) -> None:
    api = Api(Fixed(Access(server=server)))
    got = await write(api)
    await api.close()
    assert isinstance(got, Unanswered)
    assert (got.was_sent, got.why) == (False, UNUSABLE.replace("InvalidURL", "NonHttpUrlClientError"))


async def test_what_goes_through_a_proxy_is_left_to_the_session() -> None:
    async with peer(OK) as (server, _):
        through = Api(Fixed(Access(server="http://elsewhere:1", proxy=server.url)), agent="us")
        assert isinstance(await through.call("POST", PATH, body=Body({}, JSON)), Answer)
        await through.close()
        assert server.asked[0].startswith(b"POST http://elsewhere:1/api/v1/things HTTP/1.1\r\n")
