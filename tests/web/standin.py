"""Someone who answers as a test says, and remembers what was asked."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from extender.model.names import ObjectKey
from extender.model.node import Pod
from extender.scheduling.endings import Order
from extender.telemetry.metrics import Metrics
from extender.web.server import Address, Application, Options, Server
from extender.web.verbs import (
    Failed,
    Filtered,
    Scores,
    Victims,
)
from tests.web.raw_client import Connection

ANYWHERE = Address("127.0.0.1", 0)


T = TypeVar("T")


@dataclass
class StandIn:
    filtered: Filtered | Exception | None = None
    scores: Scores | Exception = None
    accepted: Mapping[str, Victims] | Failed | Exception | None = None
    bound: str | Exception = ""
    known: Mapping[ObjectKey, object] = field(default_factory=dict)
    lacking: Sequence[str] = ()
    worries: Sequence[str] = ()
    alive: bool = True
    asked: list[Any] = field(default_factory=list)

    async def hear(self, pod: Pod) -> None: ...

    def filter(self, pod: Pod, names: Sequence[str]) -> Filtered:
        self.asked.append((pod, names))
        return given(Filtered(names=names) if self.filtered is None else self.filtered)

    def prioritize(self, pod: Pod, names: Sequence[str]) -> Scores:
        self.asked.append((pod, names))
        return given(self.scores)

    def preempt(self, pod: Pod, victims: Mapping[str, Victims]) -> Mapping[str, Victims] | Failed:
        self.asked.append((pod, victims))
        if isinstance(self.accepted, Exception):
            raise self.accepted
        return victims if self.accepted is None else self.accepted

    async def bind(self, order: Order) -> str:
        self.asked.append(order)
        return given(self.bound)

    def unasked(self, pod: ObjectKey) -> str:
        return f"{pod.name} is not known" if pod.name == "unknown" else ""

    def of(self, pod: ObjectKey) -> object | None:
        return self.known.get(pod)

    def is_alive(self) -> bool:
        return self.alive

    def lost(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self.alive = task.exception() is None

    def missing(self) -> Sequence[str]:
        return self.lacking

    def warnings(self) -> Sequence[str]:
        return self.worries


def given(answer: T | Exception) -> T:
    if isinstance(answer, Exception):
        raise answer
    return answer


@asynccontextmanager
async def serving(standin: StandIn, **options: Any) -> AsyncIterator[Server]:
    """Serve on real sockets, on ports that are free."""
    application = Application(standin, standin, standin, Metrics())
    server = Server(application, Options(verbs=ANYWHERE, probes=ANYWHERE, **options))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def begun(server: Server, connection: Connection, body: bytes) -> bytes:
    """Call filter with a part of *body*, wait until that is being read, and return the rest."""
    connection.writer.write(_head(body) + body[: len(body) // 2])
    while not server._listeners[0]._answering:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.001)
    return body[len(body) // 2 :]


async def come(server: Server, connection: Connection, body: bytes, *, turns: int, head: str = "") -> bytes:
    """Do the same, but wait only for the turn of the loop in which that comes, and *turns* more."""
    listener = server._listeners[0]
    while not (listener._server and listener._server.connections):  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.001)
    handler = listener._server.connections[0]
    connection.writer.write((head.encode() or _head(body)) + body[: len(body) // 2])
    while not handler._messages:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    return body[len(body) // 2 :]


def _head(body: bytes) -> bytes:
    return f"POST /filter HTTP/1.1\r\nHost: extender\r\nContent-Length: {len(body)}\r\n\r\n".encode()
