"""The stand-in for the controllers of claims does what the real ones do: the same claims from both."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from extender.demo.apiserver.kinds import DRA, POD
from extender.demo.apiserver.server import ApiServer
from extender.demo.controller import FINALIZER, Controller
from tests.kube_objects import CLAIMS, PODS, allocation, claim, pod
from tests.servers import Cluster

Json = dict[str, Any]
TEMPLATES = CLAIMS.replace("resourceclaims", "resourceclaimtemplates")
MERGE = "application/merge-patch+json"
PATIENCE_S = 30


@pytest.fixture
async def cluster(api_server: Cluster) -> AsyncIterator[Cluster]:
    """Yield a cluster in which a controller runs: the real control plane brings its own."""
    if api_server.embedded is None:
        yield api_server
        return
    task = asyncio.create_task(Controller(api_server.embedded).run())
    yield api_server
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def eventually(ask: Callable[[], Awaitable[Json]], condition: Callable[[Json], object]) -> Json:
    """Ask until the answer fulfils *condition*."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            read = await ask()
            if condition(read):
                return read
            await asyncio.sleep(0.01)


def at(cluster: Cluster, path: str) -> Callable[[], Awaitable[Json]]:
    return lambda: cluster.do("GET", path)


async def claims_of(cluster: Cluster, name: str) -> list[Json]:
    listed = await cluster.do("GET", CLAIMS)
    return [item for item in listed["items"] if item["metadata"]["name"].startswith(f"{name}-")]


async def templated(cluster: Cluster) -> Json:
    """Create a pod with a claim from a template, and return it when the claim is there."""
    template, name = cluster.name("template"), cluster.name("pod")
    spec = {"metadata": {"labels": {"a": "b"}}, "spec": claim("x")["spec"]}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
    await cluster.create(TEMPLATES, {**kind, "metadata": {"name": template}, "spec": spec})
    entry = {"name": "gpu", "resourceClaimTemplateName": template}
    await cluster.create(PODS, pod(name, resourceClaims=[entry]))
    return await eventually(at(cluster, f"{PODS}/{name}"), lambda item: item["status"].get("resourceClaimStatuses"))


async def in_use(cluster: Cluster, user: Json) -> str:
    """Allocate the pod's claim as an owner of allocations does, and return its path."""
    path = f"{CLAIMS}/{user['status']['resourceClaimStatuses'][0]['resourceClaimName']}"
    await cluster.do("PATCH", path, {"metadata": {"finalizers": [FINALIZER]}}, MERGE)
    consumer = {"resource": "pods", "name": user["metadata"]["name"], "uid": user["metadata"]["uid"]}
    status = {"allocation": allocation(), "reservedFor": [consumer]}
    await cluster.do("PATCH", f"{path}/status", {"status": status}, MERGE)
    return path


async def test_a_claim_is_made_from_a_template(cluster: Cluster) -> None:
    user = await templated(cluster)
    name = user["metadata"]["name"]
    [made] = await claims_of(cluster, name)
    assert user["status"]["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": made["metadata"]["name"]}]
    assert made["metadata"]["labels"] == {"a": "b"}
    assert made["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
    assert made["metadata"]["generateName"] == f"{name}-gpu-"
    [owner] = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", user["metadata"]["uid"], True)


async def test_a_claim_of_a_finished_pod_goes(cluster: Cluster) -> None:
    user = await templated(cluster)
    path, place = await in_use(cluster, user), f"{PODS}/{user['metadata']['name']}"
    await cluster.do("PATCH", f"{place}/status", {"status": {"phase": "Succeeded"}}, MERGE)
    await eventually(at(cluster, CLAIMS), lambda read: path.rpartition("/")[2] not in names(read))


async def test_a_claim_that_is_nobodys_is_deallocated_and_stays(cluster: Cluster) -> None:
    direct, name = cluster.name("claim"), cluster.name("pod")
    await cluster.create(CLAIMS, claim(direct))
    made = await cluster.create(PODS, pod(name, resourceClaims=[{"name": "gpu", "resourceClaimName": direct}]))
    user = {**made, "status": {"resourceClaimStatuses": [{"resourceClaimName": direct}]}}
    path = await in_use(cluster, user)
    await cluster.do("DELETE", f"{PODS}/{name}")
    left = await eventually(at(cluster, path), lambda item: not item["status"].get("allocation"))
    assert not left["status"].get("reservedFor")
    await eventually(at(cluster, path), lambda item: not item["metadata"].get("finalizers"))


async def test_a_claim_that_is_deleted_while_nobody_reserves_it_goes(cluster: Cluster) -> None:
    direct = cluster.name("claim")
    await cluster.create(CLAIMS, claim(direct))
    await cluster.do("PATCH", f"{CLAIMS}/{direct}", {"metadata": {"finalizers": [FINALIZER]}}, MERGE)
    await cluster.do("PATCH", f"{CLAIMS}/{direct}/status", {"status": {"allocation": allocation()}}, MERGE)
    await cluster.do("DELETE", f"{CLAIMS}/{direct}")
    await eventually(at(cluster, CLAIMS), lambda read: direct not in names(read))


def names(listed: Json) -> set[str]:
    return {item["metadata"]["name"] for item in listed["items"]}


def test_a_claim_goes_of_a_pod_that_another_of_its_name_has_replaced_since_the_last_look() -> None:
    server = ApiServer()
    registry, kind = server.registry, server.kinds[DRA, "v1", "resourceclaims"]
    controller, key = Controller(server), ("default", "p")
    first = registry.create(POD, "default", pod("p"))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": first["metadata"]["uid"], "controller": True}
    registry.create(kind, "default", claim("c", ownerReferences=[owner]))
    controller.reconcile()
    assert server.store.get(kind, ("default", "c"))
    registry.delete(POD, key, {})
    registry.create(POD, "default", pod("p"))
    controller.reconcile()
    assert server.store.get(kind, ("default", "c")) is None
