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


async def sweep(admin: Client) -> None:
    """Delete what tests create, and wait until it is gone."""
    for path in KINDS:
        await until(partial(_is_empty, admin, path), f"{path} to be empty")


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
