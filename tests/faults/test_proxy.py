"""What stands in between is no fault by itself."""

import asyncio
from contextlib import suppress

from tests.faults.proxy import Ends, Proxy

REFUSED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"
ENDED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nend\r\n0\r\n\r\n"
ANSWERED = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"


class Plain(Proxy):
    """Stands before a server that is asked without TLS."""

    async def _connected(self) -> Ends:
        host, _, port = self.url.rpartition(":")
        return await asyncio.open_connection(host, int(port))


class Upstream:
    """Refuses watches or ends them, answers everything else, on each connection for as long as somebody asks."""

    def __init__(self, watch: bytes = REFUSED) -> None:
        self.watch = watch
        self.tasks: list[asyncio.Task[object]] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.append(task)
        with suppress(ConnectionError):
            while line := await reader.readline():
                await reader.readuntil(b"\r\n")
                writer.write(self.watch if b"watch=" in line else ANSWERED)
        await closed(writer)


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def test_a_watch_that_is_refused_leaves_the_connection_to_the_next_request() -> None:
    upstream = Upstream()
    server = await asyncio.start_server(upstream.answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, asyncio.timeout(20):
        async with Plain(f"127.0.0.1:{port}", "") as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            for path, answer in (("/pods?watch=1", REFUSED), ("/pods", ANSWERED)):
                writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
                assert await reader.readexactly(len(answer)) == answer
            await closed(writer)
        await asyncio.gather(*upstream.tasks)


async def test_a_watch_that_the_server_ends_ends_its_connection() -> None:
    upstream = Upstream(ENDED)
    server = await asyncio.start_server(upstream.answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, asyncio.timeout(20):
        async with Plain(f"127.0.0.1:{port}", "") as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
            writer.write(b"GET /pods?watch=1 HTTP/1.1\r\n\r\n")
            told = await reader.readuntil(b"\r\n\r\n")
            assert b"Connection: close" in told
            assert (await reader.readuntil(b"0\r\n\r\n")).startswith(b"3\r\nend")
            with suppress(ConnectionError):
                assert await reader.read() == b""
            await closed(writer)
        await asyncio.gather(*upstream.tasks)
