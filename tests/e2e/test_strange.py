"""Objects that the API server takes and shows as they were sent, though hardly anybody can read them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from tests.controlplane.client import Client
from tests.controlplane.plane import Plane
from tests.e2e.world import World, world

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
JSON = {"Content-Type": "application/json"}
STRANGE = {
    "deep": (b'{"a":' * 1100 + b"1" + b"}" * 1100, "nests deeper than 200 levels"),
    "half": (rb'{"a": "\ud800"}', "has text that is no Unicode"),
    "bytes": (b'{"a": "\xff"}', "has text that is no Unicode"),
    "number": (b'{"a": 123456789012345678901234567890}', "has a number of more than 64 bits"),
}
BODY = (
    b'{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "%s"}, "spec": {"devices": {'
    b'"requests": [{"name": "gpu", "exactly": {"deviceClassName": "%s"}}], '
    b'"config": [{"opaque": {"driver": "gpu.example.com", "parameters": %s}}]}}}'
)


@asynccontextmanager
async def configured(admin: Client, name: str, device_class: str, parameters: bytes) -> AsyncIterator[None]:
    """Have a claim with raw *parameters* for a driver; what is answered is not read: no library can read all of it."""
    body = BODY % (name.encode(), device_class.encode(), parameters)
    async with admin.session.post(CLAIMS, data=body, headers=JSON) as response:
        assert response.status == 201
    try:
        yield
    finally:
        # Whoever lists claims after this could not read it.
        async with admin.session.delete(f"{CLAIMS}/{name}") as response:
            assert response.status == 200


async def has_bound(here: World, name: str) -> str:
    await here.claim(name, here.request())
    return await here.bound(await here.pod(name, claims=(name,)))


async def test_claims_that_cannot_be_read_as_they_are_stop_nobody_else(control_plane: Plane) -> None:
    async with control_plane.client() as admin, AsyncExitStack() as there:
        for name, (parameters, _) in STRANGE.items():
            await there.enter_async_context(configured(admin, f"listed-{name}", "none", parameters))
        here = await there.enter_async_context(world(control_plane))
        await here.device_class()
        await here.node("a")
        await here.slice("a", [{"name": f"gpu-{index}"} for index in range(2)])
        assert await has_bound(here, "first") == "a"
        for name, (parameters, flaw) in STRANGE.items():
            await there.enter_async_context(configured(admin, here.full(name), here.full("gpu"), parameters))
            (note,) = await here.notes(await here.pod(name, claims=(name,)), "InvalidRequest")
            assert f"claim {here.full(name)}: devices.config[0].opaque: {flaw}" in note
        assert await has_bound(here, "last") == "a"
