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
from extender.kube.api import Api
from extender.kube.request import Body
from tests.controlplane.plane import Plane
from tests.controlplane.sweep import sweep

Json = dict[str, Any]
NUMBERS = count(1)
REAL = [pytest.mark.control_plane, pytest.mark.xdist_group("control-plane")]
TOKEN = "the-token"  # noqa: S105 - of a server that lives as long as a test


@dataclass
class Cluster:
    """An API server, a client with the extender's rights, and one with all; *embedded* is the server in memory."""

    api: Api
    admin: Api
    embedded: ApiServer | None = None

    def name(self, stem: str) -> str:
        """Return a name that no other test has."""
        return f"{stem}-{next(NUMBERS)}-{id(self) % 100_000}"

    async def create(self, path: str, item: Json) -> Json:
        return await self.do("POST", path, item)

    async def do(self, method: str, path: str, item: object = None, content_type: str = "application/json") -> Json:
        """Send a request that must succeed, and return the object in the answer."""
        body = None if item is None else Body(item, content_type)
        answer = await self.admin.call(method, path, body=body, timeout_s=30)
        assert isinstance(answer, Answer), answer
        assert answer.is_success, answer
        return answer.json() or {}


@asynccontextmanager
async def embedded() -> AsyncIterator[Cluster]:
    server = ApiServer(token=TOKEN)
    access = Access(server=await server.start(), authorization=f"Bearer {TOKEN}")
    api = Api(Fixed(access))
    try:
        yield Cluster(api, api, server)
    finally:
        await api.close()
        await server.stop()


@asynccontextmanager
async def real(plane: Plane) -> AsyncIterator[Cluster]:
    tls = ssl.create_default_context(cafile=plane.authority)
    api, admin = (Api(Fixed(access_of(plane, user, tls))) for user in ("extender", "admin"))
    try:
        yield Cluster(api, admin)
    finally:
        await api.close()
        await admin.close()
        async with plane.client() as sweeper:
            await sweep(sweeper)


def access_of(plane: Plane, user: str, tls: ssl.SSLContext) -> Access:
    return Access(server=plane.url, authorization=f"Bearer {plane.tokens[user]}", tls=tls)


@pytest.fixture(params=["embedded", pytest.param("real", marks=REAL)])
def plane(request: pytest.FixtureRequest) -> Plane | None:
    """Return the real control plane, or nothing where the embedded API server is meant."""
    found: Plane | None = request.getfixturevalue("control_plane") if request.param == "real" else None
    return found


@pytest.fixture
async def api_server(plane: Plane | None) -> AsyncIterator[Cluster]:
    async with embedded() if plane is None else real(plane) as cluster:
        yield cluster
