"""Every manifest is taken by a real API server, and the policies among them act."""

from collections.abc import AsyncIterator, Callable

import pytest

from tests.controlplane.client import MERGE, Client, Object, until
from tests.controlplane.manifests import whole
from tests.controlplane.objects import claim, device_class, device_slice, exactly, node, pod, template
from tests.controlplane.plane import Plane
from tests.scheduler_config.conftest import ACTING
from tests.scheduler_config.tolerations import KEY, TOLERATIONS

FINALIZER = "resource.kubernetes.io/delete-protection"
STOCK = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
"""


def test_every_manifest_is_taken_as_it_is(applied: dict[str, Object]) -> None:
    assert {name.split()[0] for name in applied} >= ACTING | {"Deployment", "NetworkPolicy", "FlowSchema", "ConfigMap"}


def test_the_api_server_finds_nothing_to_warn_of_in_the_policies(applied: dict[str, Object]) -> None:
    assert "warning" not in str(applied["ValidatingAdmissionPolicy dra-extender-tolerations"].get("status", {})).lower()


def filled_in(written: object, stored: object) -> list[object]:
    """List what was stored otherwise than it is written; a list is written as a whole, whatever is in it."""
    if isinstance(written, dict) and isinstance(stored, dict):
        return [found for key, value in written.items() for found in filled_in(value, stored.get(key))]
    return [] if written == stored else [written]


def test_what_is_applied_again_is_unchanged(applied: dict[str, Object], control_plane: Plane) -> None:
    # Of a Deployment's lists kubectl knows what tells items apart. Others it sends again where the API server has
    # filled in a default, and says "configured" each time.
    manifests = [each for each in whole(control_plane.minor) if each["kind"] != "Deployment"]
    for each in manifests:
        assert filled_in(each, applied[f"{each['kind']} {each['metadata']['name']}"]) == []


async def test_the_pod_is_within_the_restrictions_of_its_namespace(applied: dict[str, Object], admin: Client) -> None:
    described = applied["Deployment dra-scheduler"]["spec"]["template"]
    metadata = {**described["metadata"], "name": "probe", "namespace": "dra-extender"}
    whole = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": described["spec"]}
    reply = await admin.call("POST", await admin.path(whole, name=False), whole, dryRun="All")
    assert reply.status == 201, reply.message
    assert "Warning" not in reply.headers


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("/api/v1/pods", "dra-extender"),
        ("/apis/coordination.k8s.io/v1/namespaces/dra-extender/leases/dra-extender", "dra-extender-leases"),
    ],
    ids=["writes", "leases"],
)
async def test_what_the_pod_asks_of_the_api_server_has_its_own_share(
    applied: dict[str, Object], control_plane: Plane, admin: Client, path: str, schema: str
) -> None:
    wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    account = "/api/v1/namespaces/dra-extender/serviceaccounts/dra-extender"
    token = (await admin.must("POST", f"{account}/token", wanted))["status"]["token"]
    flow = applied[f"FlowSchema {schema}"]["metadata"]["uid"]

    async with control_plane.client(token=token) as extender:

        async def shared() -> bool:
            headers = (await extender.call("GET", path)).headers
            return headers["X-Kubernetes-PF-FlowSchema-UID"] == str(flow)

        await until(shared, f"the flow schema {schema} to be in force")


@pytest.mark.parametrize("build", [claim, template], ids=["claim", "template"])
@pytest.mark.parametrize(
    ("toleration", "taken"),
    [pytest.param(toleration, taken, id=name) for name, toleration, taken in TOLERATIONS],
)
@pytest.mark.usefixtures("applied")
async def test_no_claim_tolerates_the_owner_taint(
    admin: Client, build: Callable[..., Object], toleration: Object, *, taken: bool
) -> None:
    alternative = {"name": "one", "deviceClassName": "gpu", "tolerations": [toleration]}
    for request in (exactly(tolerations=[toleration]), {"name": "either", "firstAvailable": [alternative]}):
        item = build("tolerant", exactly(name="plain"), request)
        reply = await admin.call("POST", await admin.path(item, name=False), item, dryRun="All")
        assert reply.status == (201 if taken else 403)
        assert taken or KEY in reply.message


@pytest.mark.parametrize("build", [claim, template], ids=["claim", "template"])
@pytest.mark.usefixtures("applied")
async def test_who_only_looks_may_tolerate_the_owner_taint(admin: Client, build: Callable[..., Object]) -> None:
    labels = {"resource.kubernetes.io/admin-access": "true"}
    space: Object = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": f"looks-{build.__name__}", "labels": labels},
    }
    await admin.create(space)
    looks = exactly(name="looks", adminAccess=True, tolerations=[{"operator": "Exists"}])
    for more, status in (((), 201), ((exactly(tolerations=[{"operator": "Exists"}]),), 403)):
        item = build("tolerant", looks, *more)
        item["metadata"]["namespace"] = space["metadata"]["name"]
        reply = await admin.call("POST", await admin.path(item, name=False), item, dryRun="All")
        assert reply.status == status, reply.message
    await admin.delete(space)


@pytest.mark.usefixtures("applied")
async def test_the_refusal_says_what_to_do(admin: Client) -> None:
    item = claim("tolerant", exactly(tolerations=[{"operator": "Exists"}]))
    reply = await admin.call("POST", await admin.path(item, name=False), item)
    assert reply.status == 403
    assert "a claim for devices of any driver may not tolerate" in reply.message
    assert reply.message.endswith("Name the keys of the taints to be tolerated.")


@pytest.mark.usefixtures("applied")
async def test_a_claim_is_created_with_its_finalizer_and_can_be_deleted(admin: Client) -> None:
    created = await admin.create(claim("claim"))
    assert created["metadata"]["finalizers"] == [FINALIZER]
    await admin.delete(created)

    async def gone() -> bool:
        return (await admin.call("GET", await admin.path(created))).status == 404

    await until(gone, "the resourceclaim controller to let the claim go")


@pytest.mark.usefixtures("applied")
async def test_a_finalizer_of_somebody_else_is_kept(admin: Client) -> None:
    kept = claim("claim")
    kept["metadata"]["finalizers"] = ["example.com/mine"]
    created = await admin.create(kept)
    assert sorted(created["metadata"]["finalizers"]) == ["example.com/mine", FINALIZER]
    await admin.must("PATCH", await admin.path(kept), {"metadata": {"finalizers": None}}, content=MERGE)


@pytest.fixture
async def stock(control_plane: Plane, admin: Client, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    """Run the cluster's own scheduler over a node with one device, and a pod that asks for it."""
    path = tmp_path_factory.mktemp("stock") / "scheduler.yaml"
    path.write_text(STOCK)
    async with control_plane.scheduler(path):
        for each in (node("node"), device_slice("node"), device_class(), claim("claim")):
            await admin.create(each)
        await admin.create(pod("pod", claims=["claim"], scheduler="default-scheduler"))
        yield admin


@pytest.mark.usefixtures("applied")
async def test_the_clusters_own_scheduler_does_not_allocate_what_is_owned(stock: Client) -> None:
    async def condition() -> Object | None:
        told = (await stock.read(pod("pod"))).get("status", {}).get("conditions", [])
        return next((each for each in told if each["type"] == "PodScheduled"), None)

    told = await until(condition, "the scheduler to decide")
    assert told["status"] == "False"
    assert "cannot allocate all claims" in told["message"]
