"""Probes and metrics have a listener that only reads, and that nobody keeps from the kubelet."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from extender.telemetry.metrics import Metrics
from extender.web import listener as listener_module
from extender.web import server as module
from extender.web.exposition import Scrapes
from extender.web.listener import ListenerLimits
from extender.web.server import PROBES, Server
from tests.web.raw_client import Connection, connected
from tests.web.record import recorded
from tests.web.standin import StandIn, serving

PATHS = ("/livez", "/readyz", "/metrics")


def get(path: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: e", *headers, "", "")).encode()


async def probed(server: Server, request: bytes) -> int:
    async with connected(server.ports[1]) as connection:
        return (await connection.send(request)).status


@pytest.mark.parametrize("path", PATHS)
async def test_only_get_and_head_are_answered(path: str) -> None:
    async with serving(StandIn()) as server:
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
            assert await probed(server, get(path, "Content-Length: 0", method=method)) == 405
        async with connected(server.ports[1]) as connection:
            refusal = await connection.send(get(path, "Content-Length: 0", method="PUT"))
            assert refusal.headers["allow"] == "GET, HEAD"
        async with connected(server.ports[1]) as connection:
            connection.writer.write(get(path, "Connection: close", method="HEAD"))
            head, _, body = (await connection.ends()).partition(b"\r\n\r\n")
        assert (head.split()[1], body) == (b"200", b"")


@pytest.mark.parametrize(
    "path", ["/filter", "/prioritize", "/preempt", "/bind", "/v1/decisions/lab/trainer-0", "//livez"]
)
async def test_there_are_no_verbs_and_no_decisions(path: str) -> None:
    standin = StandIn()
    async with serving(standin) as server:
        assert await probed(server, get(path)) == 404
        async with connected(server.ports[1]) as connection:
            assert (await connection.post(path, recorded("filter-names"))).status == 405
    assert standin.asked == []


@pytest.mark.parametrize("header", ["Content-Length: 1000000000", "Transfer-Encoding: chunked"])
async def test_no_body_is_read(header: str) -> None:
    async with serving(StandIn()) as server, connected(server.ports[1]) as connection:
        # What is announced never comes, and is not waited for.
        assert (await connection.send(get("/livez", header))).status == 200
        assert await connection.ends() == b""


@pytest.mark.parametrize(
    "request_bytes",
    [
        get("/" + "x" * 5000),
        get("/livez", f"X-Long: {'x' * 5000}"),
        get("/livez", *(f"X-{number}: x" for number in range(200))),
    ],
    ids=["line", "header", "headers"],
)
async def test_headers_are_limited(request_bytes: bytes) -> None:
    async with serving(StandIn()) as server:
        assert await probed(server, request_bytes) == 400
        assert await probed(server, get("/livez")) == 200


async def test_whoever_holds_connections_open_keeps_nobody_out() -> None:
    assert PROBES.most_connections
    async with serving(StandIn()) as server, AsyncExitStack() as stack:

        async def holding(said: bytes) -> Connection:
            held = await stack.enter_async_context(connected(server.ports[1]))
            held.writer.write(said)
            return held

        # Some say nothing, some stop within a header, some do not read what they are answered.
        slow = [await holding(said) for said in (b"", b"GET /livez HTT", get("/metrics") * 500) for _ in range(40)]
        for _ in range(10):
            assert await probed(server, get("/livez")) == 200
        first = await asyncio.wait_for(ended(slow[0]), 20)
        assert first


async def ended(connection: Connection) -> bool:
    """Wait until the other side ends the connection."""
    try:
        return await connection.ends() == b""
    except ConnectionError:
        return True


async def test_whoever_does_not_read_holds_up_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROBES", replace(PROBES, shutdown_seconds=0.05, rest_seconds=0.0))
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serving(StandIn(), limits=ListenerLimits(shutdown_seconds=1000)))
        held = await stack.enter_async_context(connected(server.ports[1]))
        transport = held.writer.transport
        assert isinstance(transport, asyncio.ReadTransport)
        transport.pause_reading()
        held.writer.write(get("/metrics") * 500)
        probes = server._listeners[1]._server
        assert probes
        async with asyncio.timeout(20):
            while not any(each.writing_paused for each in probes.connections):  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.01)
        await asyncio.wait_for(server.stop(), 20)


async def test_a_header_that_does_not_end_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = replace(PROBES, keep_alive_seconds=0.2)
    monkeypatch.setattr(module, "PROBES", limits)
    async with serving(StandIn()) as server, connected(server.ports[1]) as connection:
        sending = asyncio.create_task(trickled(connection))
        assert await asyncio.wait_for(ended(connection), 20)
        sending.cancel()


async def trickled(connection: Connection) -> None:
    """Send a letter now and then."""
    connection.writer.write(b"GET /livez HTTP/1.1\r\nX-Slow: ")
    while True:
        connection.writer.write(b"x")
        await asyncio.sleep(0.02)


async def test_who_asks_again_and_again_waits_and_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROBES", replace(PROBES, shutdown_seconds=0.05, rest_seconds=1000))
    monkeypatch.setattr(listener_module, "READ_ON_SECONDS", 0.0)
    async with AsyncExitStack() as stack, serving(StandIn()) as server:
        for _ in range(2):
            restless = await stack.enter_async_context(connected(server.ports[1]))
            assert (await restless.send(get("/livez"))).status == 200
            restless.writer.write(get("/livez") * 50)
        for _ in range(10):
            assert await probed(server, get("/livez")) == 200
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(restless.answer(), 0.2)


async def test_who_asks_again_and_again_has_all_answers_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROBES", replace(PROBES, rest_seconds=0.001))
    async with serving(StandIn()) as server:
        async with connected(server.ports[1]) as connection:
            connection.writer.write(get("/livez") * 20)
            assert [(await connection.answer()).status for _ in range(20)] == [200] * 20
        probes = server._listeners[1]._server
        assert probes
        async with asyncio.timeout(20):
            while probes.turns:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.01)


async def test_a_slow_client_of_the_probes_costs_the_scheduler_nothing() -> None:
    async with serving(StandIn()) as server, AsyncExitStack() as stack:
        for _ in range(200):
            await stack.enter_async_context(connected(server.ports[1]))
        async with connected(server.ports[0]) as connection:
            assert (await connection.post("/filter", recorded("filter-names"))).status == 200


class Counting(Metrics):
    written = 0

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        self.written += 1
        return super().exposition(accept)


def test_metrics_are_not_written_anew_for_everybody_who_asks() -> None:
    metrics = Counting()
    scrapes = Scrapes(metrics)
    first = scrapes.exposition("")
    scrapes._until += 1000
    for accept in ("", "application/openmetrics-text; version=1.0.0"):
        assert scrapes.exposition(accept) is first
    assert metrics.written == 1
    scrapes._until = 0
    assert scrapes.exposition("") is not first
    assert metrics.written == 2
