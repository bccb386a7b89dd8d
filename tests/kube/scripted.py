"""A server that answers what a test has written down: each request gets the next answer of its path."""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

from extender.kube.access import Access, Fixed
from extender.kube.api import Api

Json = dict[str, Any]


@dataclass
class Script:
    """Raw answers by kind of request: "list", "watch", or a path. The last of a list of answers is given again.

    Whoever asks how far the cluster is gets those of "probe", and those of "list" where there are none.
    """

    answers: defaultdict[str, deque[bytes]] = field(default_factory=lambda: defaultdict(deque))
    asked: list[str] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    url: str = ""

    def add(self, kind: str, *answers: bytes) -> None:
        self.answers[kind].extend(answers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            target = head.split(" ")[1]
            self.asked.append(target)
            self.headers.append(head)
            kind = kind_of(target)
            answers = self.answers["list" if kind == "probe" and not self.answers[kind] else kind]
            answer = answers.popleft() if len(answers) > 1 else answers[0]
            writer.write(answer.removesuffix(HANGING))
            await writer.drain()
            if answer.endswith(HANGING):
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


# At the end of an answer: the connection stays open, and nothing more comes.
HANGING = b"(hanging)"


def kind_of(target: str) -> str:
    path, _, query = target.partition("?")
    if "watch=true" in query:
        return "watch"
    if "limit=" not in query:
        return path
    return "probe" if query.startswith("limit=1&") or query == "limit=1" else "list"


@asynccontextmanager
async def scripted() -> AsyncIterator[tuple[Script, Api]]:
    script = Script()
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    script.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    api = Api(Fixed(Access(server=script.url)))
    try:
        yield script, api
    finally:
        await api.close()
        server.close()


def response(body: bytes | Json, status: int = 200, *headers: str, kind: str = "application/json") -> bytes:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    lines = [f"HTTP/1.1 {status} Answer", f"Content-Type: {kind}", f"Content-Length: {len(raw)}", *headers]
    return "\r\n".join((*lines, "Connection: close", "", "")).encode() + raw


def failure(code: int, reason: str, *headers: str) -> bytes:
    return response(status(code, reason), code, *headers)


def status(code: int, reason: str) -> Json:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": f"told {reason}"}


def stream(*chunks: bytes, is_cut: bool = False) -> bytes:
    """Return a chunked response; one that *is_cut* ends without its last chunk."""
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    body = b"".join(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n" for chunk in chunks if chunk)
    return head + body + (b"" if is_cut else b"0\r\n\r\n")


def groups(*versions: str) -> bytes:
    """Return the groups of a server that has devices in *versions*."""
    offered = [{"groupVersion": f"resource.k8s.io/{version}", "version": version} for version in versions]
    return response({"groups": [{"name": "apps", "versions": []}, {"name": "resource.k8s.io", "versions": offered}]})


def resources(*names: str) -> bytes:
    return response({"resources": [{"name": name} for name in names]})


def page(version: str, names: Iterable[str], token: str = "") -> bytes:
    items = [{"metadata": {"name": name, "resourceVersion": "1"}} for name in names]
    return response({"kind": "NodeList", "metadata": {"resourceVersion": version, "continue": token}, "items": items})


def event(kind: str, version: int, name: str = "n", **more: Any) -> bytes:
    item = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "resourceVersion": str(version)}, **more}
    return orjson.dumps({"type": kind, "object": item}) + b"\n"


def error(code: int, reason: str) -> bytes:
    return orjson.dumps({"type": "ERROR", "object": status(code, reason)}) + b"\n"
