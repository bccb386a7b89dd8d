"""An API server for client tests: the embedded one, and the real one where its binaries are present."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from extender.demo.apiserver.server import ApiServer
from extender.kube.access import Access, Fixed
from extender.kube.answer import Answer
from extender.kube.api import Api, Body
from tests.controlplane.plane import Plane

Json = dict[str, Any]
NUMBERS = count(1)
TOKEN = "the-token"  # noqa: S105 - of a server that lives as long as a test


@dataclass
class Cluster:
    """An API server and a client of it; *embedded* is the server itself where it is the one in memory."""

    api: Api
    access: Access
    embedded: ApiServer | None = None

    def name(self, stem: str) -> str:
        """Return a name that no other test has."""
        return f"{stem}-{next(NUMBERS)}-{id(self) % 100_000}"

    async def create(self, path: str, item: Json) -> Json:
        return await self.do("POST", path, item)

    async def do(self, method: str, path: str, item: object = None, content_type: str = "application/json") -> Json:
        """Send a request that must succeed, and return the object in the answer."""
        body = None if item is None else Body(item, content_type)
        answer = await self.api.call(method, path, body=body, timeout_s=30)
        assert isinstance(answer, Answer), answer
        assert answer.is_success, answer
        return answer.json() or {}


@asynccontextmanager
async def embedded() -> AsyncIterator[Cluster]:
    server = ApiServer(token=TOKEN)
    access = Access(server=await server.start(), authorization=f"Bearer {TOKEN}")
    api = Api(Fixed(access))
    try:
        yield Cluster(api, access, server)
    finally:
        await api.close()
        await server.stop()


@asynccontextmanager
async def real(plane: Plane) -> AsyncIterator[Cluster]:
    tls = ssl.create_default_context(cafile=plane.authority)
    access = Access(server=plane.url, authorization=f"Bearer {plane.tokens['admin']}", tls=tls)
    api = Api(Fixed(access))
    try:
        yield Cluster(api, access)
    finally:
        await api.close()


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.xdist_group("control-plane"))])
def plane(request: pytest.FixtureRequest) -> Plane | None:
    """Return the real control plane, or nothing where the embedded API server is meant."""
    found: Plane | None = request.getfixturevalue("control_plane") if request.param == "real" else None
    return found


@pytest.fixture
async def api_server(plane: Plane | None) -> AsyncIterator[Cluster]:
    async with embedded() if plane is None else real(plane) as cluster:
        yield cluster
