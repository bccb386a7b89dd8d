"""What stands in between is no fault by itself."""

import asyncio

from tests.faults.proxy import Ends, Proxy

REFUSED = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"
ANSWERED = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"


class Plain(Proxy):
    """Stands before a server that is asked without TLS."""

    async def _connected(self) -> Ends:
        host, _, port = self.url.rpartition(":")
        return await asyncio.open_connection(host, int(port))


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Refuse watches and answer everything else, on one connection for as long as somebody asks."""
    while line := await reader.readline():
        await reader.readuntil(b"\r\n")
        writer.write(REFUSED if b"watch=" in line else ANSWERED)
    writer.close()


async def test_a_watch_that_is_refused_leaves_the_connection_to_the_next_request() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Plain(f"127.0.0.1:{port}", "") as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        async with asyncio.timeout(20):
            for path, answer in (("/pods?watch=1", REFUSED), ("/pods", ANSWERED)):
                writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
                assert await reader.readexactly(len(answer)) == answer
        writer.close()
