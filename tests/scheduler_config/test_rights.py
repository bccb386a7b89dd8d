"""The extender's rights are those it needs: every write that it makes is granted, and little else."""

from collections.abc import AsyncIterator

import pytest

from extender.kube.objects import kept, taint_rule
from extender.kube.rights import REVIEWS, review
from extender.scheduling.rights import NEEDS, OWNER_RIGHTS, Right
from tests.controlplane.client import MERGE, Client, Object, Reply
from tests.controlplane.manifests import RIGHTS, documents
from tests.controlplane.objects import (
    allocation,
    claim,
    device_class,
    device_slice,
    node,
    pod,
    reservation,
)
from tests.controlplane.plane import Plane

GPUS = "example.com/gpu"
EXTENDED = "resource.kubernetes.io/extended-resource-claim"
FINALIZER = "resource.kubernetes.io/delete-protection"
ROLE = next(each for each in documents(RIGHTS["extender"]) if each["kind"] == "ClusterRole")
# What a status says that has nothing of these any more.
NOTHING: Object = {"status": {"allocation": None, "reservedFor": None, "devices": None}}
EVENT: Object = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "pod.1", "namespace": "default"},
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "dra-extender",
    "reportingInstance": "dra-extender-0",
    "action": "Allocating",
    "reason": "Allocated",
    "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "pod"},
    "note": "told",
    "type": "Normal",
}
LEASE: Object = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "dra-extender", "namespace": "dra-extender"},
    "spec": {"holderIdentity": "tests"},
}


@pytest.fixture
async def extender(control_plane: Plane, admin: Client) -> AsyncIterator[Client]:
    """Be the extender in a cluster with a node, its devices, a claim, and a pod that asks for it."""
    for each in (node("node"), device_slice("node", 2), device_class(), claim("claim"), pod("pod", claims=["claim"])):
        await admin.create(each)
    async with control_plane.client("extender") as client:
        yield client


async def allocated(extender: Client) -> Reply:
    """Write an allocation of gpu-0 as bind does: finalizer first, then allocation and reservation together."""
    path = await extender.path(claim("claim"))
    await extender.must("PATCH", path, {"metadata": {"finalizers": [FINALIZER]}}, content=MERGE)
    waiting = await extender.read(pod("pod"))
    status = {"allocation": allocation("node", "gpu-0"), "reservedFor": [reservation(waiting)]}
    return await extender.call("PATCH", f"{path}/status", {"status": status}, content=MERGE)


async def test_an_allocation_is_written_and_the_pod_bound(extender: Client) -> None:
    reply = await allocated(extender)
    assert reply.status == 200, reply.message
    assert reply.body["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-0"
    waiting = await extender.read(pod("pod"))
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {key: waiting["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node"},
    }
    await extender.must("POST", f"{await extender.path(waiting)}/binding", binding)
    assert (await extender.read(pod("pod")))["spec"]["nodeName"] == "node"


@pytest.mark.parametrize("right", [*OWNER_RIGHTS, *(need.right for need in NEEDS)], ids=str)
async def test_no_right_is_missed_at_the_start_that_the_role_has(extender: Client, right: Right) -> None:
    asked = await extender.must("POST", REVIEWS, review(right))
    assert asked["status"]["allowed"] is True


async def test_an_allocation_is_taken_back(extender: Client) -> None:
    held = (await allocated(extender)).body
    released = await extender.must("PATCH", f"{await extender.path(held)}/status", NOTHING, content=MERGE)
    assert "allocation" not in released.get("status", {})


async def test_an_allocation_with_a_drivers_status_is_taken_back(extender: Client, admin: Client) -> None:
    held = (await allocated(extender)).body
    place = f"{await admin.path(held)}/status"
    held["status"]["devices"] = [{"driver": "gpu.example.com", "pool": "node", "device": "gpu-0", "data": {"up": True}}]
    await admin.must("PUT", place, held)
    reply = await extender.call("PATCH", place, NOTHING, content=MERGE)
    assert reply.status == 200, reply.message


async def test_without_the_right_to_bind_claims_an_allocation_is_invalid(extender: Client, admin: Client) -> None:
    role = await admin.path(ROLE)
    less = [rule for rule in ROLE["rules"] if rule["resources"] != ["resourceclaims/binding"]]
    assert len(less) == len(ROLE["rules"]) - 1
    await admin.must("PATCH", role, {"rules": less}, content=MERGE)
    try:
        reply = await allocated(extender)
    finally:
        await admin.must("PATCH", role, {"rules": ROLE["rules"]}, content=MERGE)
    assert reply.status == 422
    assert 'requires resource="resourceclaims/binding"' in reply.message


async def test_a_pod_is_woken_and_nominated(extender: Client) -> None:
    path = await extender.path(pod("pod"))
    await extender.must("PATCH", path, {"metadata": {"annotations": {"a.example.com/woken": "1"}}}, content=MERGE)
    await extender.must("PATCH", f"{path}/status", {"status": {"nominatedNodeName": "node"}}, content=MERGE)


async def test_a_pod_is_given_a_claim_for_its_extended_resources(extender: Client, admin: Client) -> None:
    waiting = await admin.create(pod("extended", **{GPUS: "1"}))
    hidden = claim("hidden")
    hidden["metadata"] |= {"annotations": {EXTENDED: "true"}, "ownerReferences": [owner(waiting)]}
    await extender.create(hidden)
    mapping = {"containerName": "main", "resourceName": GPUS, "requestName": "devices"}
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "hidden", "requestMappings": [mapping]}}
    await extender.patch(waiting, {"status": status}, "status")
    await extender.delete(hidden)


def owner(of: Object) -> Object:
    reference = {"apiVersion": of["apiVersion"], "kind": of["kind"]}
    metadata = {key: of["metadata"][key] for key in ("name", "uid")}
    return {**reference, **metadata, "controller": True, "blockOwnerDeletion": True}


async def test_events_and_the_lease_are_written(extender: Client, admin: Client) -> None:
    await extender.create(EVENT)
    await extender.create(LEASE)
    lease = await extender.read(LEASE)
    lease["spec"]["holderIdentity"] = "others"
    await extender.must("PUT", await extender.path(LEASE), lease)
    for each in (EVENT, LEASE):
        await admin.delete(each)


@pytest.mark.parametrize(
    "resource",
    [
        "/api/v1/pods",
        "/api/v1/nodes",
        "/apis/resource.k8s.io/v1/resourceclaims",
        "/apis/resource.k8s.io/v1/resourceslices",
        "/apis/resource.k8s.io/v1/deviceclasses",
    ],
)
async def test_what_it_decides_by_is_listed_and_watched(control_plane: Plane, resource: str) -> None:
    async with control_plane.client("extender") as extender:
        listed = await extender.must("GET", resource, limit="250")
        version = listed["metadata"]["resourceVersion"]
        async with extender.session.get(resource, params={"watch": "1", "resourceVersion": version}) as watched:
            assert watched.status == 200


async def test_taint_rules_are_listed_in_the_version_that_is_served(control_plane: Plane) -> None:
    version = "v1beta2" if control_plane.minor == "1.36" else "v1"
    async with control_plane.client("extender") as extender:
        assert (await extender.call("GET", f"/apis/resource.k8s.io/{version}/devicetaintrules")).status == 200


@pytest.mark.parametrize("driver", ["gpu.example.com", "GPU.Example.com"])
async def test_the_owner_taint_is_put_and_put_back(control_plane: Plane, admin: Client, driver: str) -> None:
    version = "v1beta2" if control_plane.minor == "1.36" else "v1"
    rule = taint_rule(driver, "example.com/owner", version)
    async with control_plane.client("extender") as extender:
        created = await extender.create(rule)
        assert created["spec"]["taint"]["effect"] == "NoSchedule"
        await admin.patch(rule, {"spec": {"deviceSelector": {"pool": "one"}, "taint": {"key": "example.com/else"}}})
        restored = await extender.patch(rule, kept(driver, "example.com/owner"))
    await admin.delete(rule)
    assert restored["spec"]["deviceSelector"] == {"driver": driver}
    assert restored["spec"]["taint"]["key"] == "example.com/owner"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/api/v1/nodes/node"),
        ("PATCH", "/api/v1/nodes/node"),
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/configmaps"),
        ("DELETE", "/api/v1/namespaces/default/pods/pod"),
        ("POST", "/api/v1/namespaces/default/pods"),
        ("POST", "/api/v1/namespaces/default/pods/pod/eviction"),
        ("POST", "/api/v1/namespaces/default/pods/pod/exec"),
        ("DELETE", "/apis/resource.k8s.io/v1/resourceslices/node-gpu.example.com"),
        ("PATCH", "/apis/resource.k8s.io/v1/resourceslices/node-gpu.example.com"),
        ("POST", "/apis/resource.k8s.io/v1/deviceclasses"),
        ("PATCH", "/apis/resource.k8s.io/v1/deviceclasses/gpu"),
        ("DELETE", "/apis/resource.k8s.io/v1/devicetaintrules/dra-extender-owned"),
        ("DELETE", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"),
        ("DELETE", "/apis/coordination.k8s.io/v1/namespaces/dra-extender/leases/dra-scheduler"),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"),
        ("PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/dra-extender"),
        ("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/dra-extender-tolerations"),
    ],
)
async def test_what_it_does_not_need_is_forbidden(extender: Client, method: str, path: str) -> None:
    body: Object | None = {} if method in {"POST", "PATCH"} else None
    content = MERGE if method == "PATCH" else ""
    assert (await extender.call(method, path, body, content=content)).status == 403
