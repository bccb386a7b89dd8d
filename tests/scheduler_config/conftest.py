import asyncio
from collections.abc import Iterator

import pytest

from tests.controlplane.client import Client, Object, until
from tests.controlplane.manifests import whole
from tests.controlplane.objects import claim, exactly
from tests.controlplane.plane import Plane
from tests.controlplane.programs import Missing, kustomize

# These act on what other tests do, so they are gone when this module is done.
ACTING = {
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "DeviceTaintRule",
}


@pytest.fixture(scope="module")
def applied(control_plane: Plane) -> Iterator[dict[str, Object]]:
    """Apply the overlay of this version, as it is, and return what the API server made of it, by kind and name."""
    try:
        kustomize()
    except Missing as why:
        pytest.skip(str(why))
    manifests = whole(control_plane.minor)
    yield asyncio.run(_applied(control_plane, manifests))
    asyncio.run(_deleted(control_plane, [each for each in manifests if each["kind"] in ACTING]))


async def _applied(plane: Plane, manifests: list[Object]) -> dict[str, Object]:
    async with plane.client() as admin:
        replies = {f"{each['kind']} {each['metadata']['name']}": await admin.apply(each) for each in manifests}
        refused = {name: reply.message for name, reply in replies.items() if reply.status not in {200, 201}}
        assert refused == {}
        await until(lambda: _acting(admin), "the policies to act")
        quotas = [each for each in manifests if each["kind"] == "ResourceQuota"]
        await until(lambda: _counted(admin, quotas), "the quotas to count")
        return {name: reply.body for name, reply in replies.items()}


async def _acting(admin: Client) -> bool:
    """Whether both policies are in force, which is a while after they are stored."""
    tolerant = claim("probe", exactly(tolerations=[{"operator": "Exists"}]))
    refused = await admin.call("POST", await admin.path(tolerant, name=False), tolerant, dryRun="All")
    plain = await admin.call("POST", await admin.path(tolerant, name=False), claim("probe"), dryRun="All")
    return refused.status == 403 and "finalizers" in plain.body["metadata"]


async def _counted(admin: Client, quotas: list[Object]) -> bool:
    """Whether what quotas allow has been counted, before which they let nobody in."""
    return all([(await admin.read(each)).get("status", {}).get("used") for each in quotas])


async def _deleted(plane: Plane, manifests: list[Object]) -> None:
    async with plane.client() as admin:
        for each in manifests:
            await admin.delete(each)
        await until(lambda: _resting(admin), "the policies to end")


async def _resting(admin: Client) -> bool:
    tolerant = claim("probe", exactly(tolerations=[{"operator": "Exists"}]))
    reply = await admin.call("POST", await admin.path(tolerant, name=False), tolerant, dryRun="All")
    return reply.status == 201 and "finalizers" not in reply.body["metadata"]
