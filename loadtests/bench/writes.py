"""What a write takes our thread, over the session's connections without the session, and with it.

A server in a thread of its own answers as the API server does, with two thousand bytes; its time is not counted.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from time import thread_time
from typing import cast
from unittest.mock import patch

import uvloop

from extender.kube.access import Access, Fixed
from extender.kube.answer import Answer
from extender.kube.api import Api
from extender.kube.request import JSON_PATCH, Body
from loadtests.bench.report import Report
from tests.controlplane.processes import free_port

PATH = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/claim/status"
QUERY = (("timeout", "3200ms"), ("fieldValidation", "Ignore"))
RESULT = {"request": "gpus", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
BODY = Body([{"op": "add", "path": "/status/allocation", "value": {"devices": {"results": [RESULT]}}}], JSON_PATCH)
HEADERS = "".join(f"X-Header-{number}: 7d6f2c3a-1111-2222-3333-444455556666\r\n" for number in range(5))
ANSWER = (
    f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{HEADERS}Content-Length: 2000\r\n\r\n{'x' * 2000}".encode()
)
HEAD = b" HTTP/1.1\r\n"
ROUNDS, WRITES = 7, 2000


class Answering(asyncio.Protocol):
    """Answers each request when its head comes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = cast("asyncio.Transport", transport).write

    def data_received(self, data: bytes) -> None:
        self._write(ANSWER * data.count(HEAD))


@contextmanager
def server() -> Iterator[str]:
    """Run it; yield its address."""
    loop, port = uvloop.new_event_loop(), free_port()
    listening = loop.run_until_complete(loop.create_server(Answering, "127.0.0.1", port))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        listening.close()
        loop.close()


async def spent_us(url: str, at_once: int) -> float:
    """Return what each of some writes took, of which so many are under way at once."""
    api = Api(Fixed(Access(server=url, authorization="Bearer token")))

    async def some(count: int) -> None:
        for _ in range(count):
            answer = await api.call("PATCH", PATH, query=QUERY, body=BODY, timeout_s=4.0)
            if not isinstance(answer, Answer):
                raise TypeError(answer.why)

    await some(at_once)
    began = thread_time()
    await asyncio.gather(*(some(WRITES // at_once) for _ in range(at_once)))
    took = thread_time() - began
    await api.close()
    return 1e6 * took / WRITES


def main() -> None:
    report = Report("writes")
    with server() as url:
        for at_once in (1, 8):
            ours, session = [], []
            for _ in range(ROUNDS):
                ours.append(uvloop.run(spent_us(url, at_once)))
                with patch("extender.kube.direct.METHODS", frozenset()):
                    session.append(uvloop.run(spent_us(url, at_once)))
            report.add(
                f"a write, {at_once} at once, us of CPU",
                f"{median(ours):.0f}",
                "",
                f"{median(session):.0f} with the session",
            )
    report.note(f"medians of {ROUNDS} rounds by turns, of {WRITES} writes each; plain HTTP")
    report.keep()


if __name__ == "__main__":
    main()
