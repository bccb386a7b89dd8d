"""Empties a cluster between tests."""

from functools import partial

from tests.controlplane.client import MERGE, Client, until

# In this order: what pods own goes with them.
KINDS = (
    "/api/v1/pods",
    "/apis/resource.k8s.io/v1/resourceclaims",
    "/apis/resource.k8s.io/v1/resourceclaimtemplates",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/deviceclasses",
    "/api/v1/nodes",
)


# What an extender puts on each driver that it owns, and leaves there.
RULES = "devicetaintrules"
OURS = "dra-extender-owned-"


async def sweep(admin: Client) -> None:
    """Delete what tests create, and what extenders under test do, and wait until it is gone."""
    for path in KINDS:
        await until(partial(_is_empty, admin, path), f"{path} to be empty")
    await _untaint(admin)


async def _untaint(admin: Client) -> None:
    for version in ("v1", "v1beta2"):
        path = f"/apis/resource.k8s.io/{version}/{RULES}"
        reply = await admin.call("GET", path)
        for each in reply.body["items"] if reply.status == 200 else ():
            if each["metadata"]["name"].startswith(OURS):
                await admin.must("DELETE", f"{path}/{each['metadata']['name']}")


async def _is_empty(admin: Client, path: str) -> bool:
    items = await admin.list(path)
    for collection in {_collection(path, each["metadata"].get("namespace")) for each in items}:
        await admin.must("DELETE", collection, gracePeriodSeconds="0")
    for each in items if path.endswith("claims") else ():
        # Whoever would take the finalizer off has no pod to go by any more.
        place = f"{_collection(path, each['metadata']['namespace'])}/{each['metadata']['name']}"
        await admin.call("PATCH", place, {"metadata": {"finalizers": None}}, content=MERGE)
    return not items


def _collection(path: str, namespace: str | None) -> str:
    root, _, plural = path.rpartition("/")
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else path
