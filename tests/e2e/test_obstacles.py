"""What keeps a pod from a node beside its devices, and what becomes of its devices then."""

import pytest

from extender.service import lapses
from tests.controlplane.client import APPLY, Object
from tests.e2e.world import SCHEDULER, World

pytestmark = pytest.mark.asyncio(loop_scope="module")
CLIQUE = "nvidia.com/gpu.clique"


def cpus(count: int) -> list[Object]:
    return [{"name": "main", "image": "none", "resources": {"requests": {"cpu": str(count)}}}]


def claims_of(pod: Object) -> dict[str, str]:
    """Return what the claims of *pod* are called. Their order in its status is nobody's promise."""
    return {named["name"]: named["resourceClaimName"] for named in pod["status"]["resourceClaimStatuses"]}


async def device(here: World, node: str, count: int = 1, cpu: int = 4) -> None:
    await here.node(node, cpu)
    await here.slice(node, [{"name": f"gpu-{index}"} for index in range(count)])


async def test_a_claim_allocated_on_a_full_node_is_freed_and_the_pod_goes_elsewhere(here: World) -> None:
    await here.device_class()
    await device(here, "a")
    claim = await here.claim("c", here.request())
    first = await here.pod("first", claims=("c",))
    assert await here.bound(first) == "a"
    # Allocated and reserved by nobody: so the cluster's own scheduler leaves a claim whose pod it could not bind.
    await here.leave(claim, first)
    await here.bound(await here.pod("full", containers=cpus(4)))
    await device(here, "b")
    pod = await here.pod("p", claims=("c",), containers=cpus(1))
    assert await here.bound(pod) == "b"
    assert await here.devices(claim) == ["b/gpu-0"]


async def test_a_claim_in_use_on_a_full_node_keeps_its_allocation_and_the_pod_waits(here: World) -> None:
    await here.device_class()
    await device(here, "a")
    claim = await here.claim("c", here.request())
    user = await here.pod("user", claims=("c",), containers=cpus(4))
    assert await here.bound(user) == "a"
    await device(here, "b")
    pod = await here.pod("p", claims=("c",), containers=cpus(1))
    await here.refused(pod, "a claim of the pod is allocated on another node")
    await here.until_asked(pod, 1)
    assert await here.devices(claim) == ["a/gpu-0"]
    await here.finish(user)
    await here.bound(pod)


async def test_preemption_evicts_only_where_the_device_is(here: World) -> None:
    await here.device_class()
    await device(here, "a", 0)
    await device(here, "b", 1)
    await here.priority("high", 1000)
    on = {node: {"kubernetes.io/hostname": here.full(node)} for node in ("a", "b")}
    # No kubelet ends what is evicted: it goes at once.
    low = {
        node: await here.pod(f"low-{node}", nodeSelector=on[node], containers=cpus(4), terminationGracePeriodSeconds=0)
        for node in ("a", "b")
    }
    for node, pod in low.items():
        assert await here.bound(pod) == node
    await here.template("one", here.request())
    high = await here.pod("high", templates=("one",), containers=cpus(4), priorityClassName=here.full("high"))
    assert await here.bound(high) == "b"
    await here.gone(low["b"])
    assert await here.bound(low["a"]) == "a"
    assert not (await here.admin.read(low["a"]))["metadata"].get("deletionTimestamp")


async def test_preemption_of_pods_with_devices_evicts_no_more_than_it_has_to(here: World) -> None:
    await here.device_class()
    await here.priority("high", 1000)
    await here.template("one", here.request())
    nodes = tuple("abc")
    for node in nodes:
        await device(here, node)
    low = [
        await here.pod(f"low-{node}", templates=("one",), containers=cpus(4), terminationGracePeriodSeconds=0)
        for node in nodes
    ]
    assert {await here.bound(pod) for pod in low} == set(nodes)
    high = await here.pod("high", templates=("one",), containers=cpus(4), priorityClassName=here.full("high"))
    node = await here.bound(high)
    left = [pod for pod in low if (await here.admin.call("GET", await here.admin.path(pod))).status == 200]
    assert len(left) == len(nodes) - 1
    assert node not in [await here.bound(pod) for pod in left]


async def test_a_node_that_a_pod_is_sent_to_in_vain_is_not_kept_for_it(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await here.device_class()
    await device(here, "a", 1, cpu=8)
    await device(here, "b", 0, cpu=8)
    for name in ("c", "d"):
        await here.claim(name, here.request())
    # Of ports the extender knows nothing.
    port = [{"containerPort": 8080, "hostPort": 8080}]
    holder = [{**item, "ports": port} for item in cpus(1)]
    await here.bound(await here.pod("holder", containers=holder, nodeSelector=here.on("a")))
    # The scheduler leaves the nomination of a pod that may evict nobody as it is, and keeps its CPU from others.
    await here.priority("meek", 0, preemptionPolicy="Never")
    asking = [{**item, "ports": port} for item in cpus(4)]
    vain = await here.pod("vain", claims=("c",), containers=asking, priorityClassName=here.full("meek"))
    await here.when(vain, lambda read: read["status"].get("nominatedNodeName") == here.full("a"))
    for name, seconds in (("REST_S", 1.0), ("LOOK_S", 0.2)):
        monkeypatch.setattr(lapses, name, seconds)
    await here.when(vain, lambda read: not read["status"].get("nominatedNodeName"))
    fitting = await here.pod("fitting", claims=("d",), containers=cpus(4))
    assert await here.bound(fitting) == "a"


async def test_a_free_device_is_not_kept_for_a_pod_for_which_its_node_has_no_room(here: World) -> None:
    await here.device_class()
    await device(here, "a")
    await here.template("one", here.request())
    user = await here.pod("user", templates=("one",))
    await here.bound(user)
    big = await here.pod("big", templates=("one",), containers=cpus(4))
    await here.refused(big, "too few matching devices are free")
    # It is refused for its CPU alone from now on, so that the scheduler does not try it when it is nominated.
    full = await here.pod("full", containers=cpus(3))
    await here.bound(full)
    await here.refused(big, "Insufficient cpu")
    await here.finish(user)
    small = await here.pod("small", templates=("one",), containers=cpus(1))
    assert await here.bound(small) == "a"
    for pod in (small, full):
        await here.finish(pod)
    assert await here.bound(big) == "a"


async def test_a_pod_for_which_others_can_make_room_is_tried_when_devices_come(here: World) -> None:
    await here.device_class()
    for node in ("a", "b"):
        await here.node(node, 4)
    await here.priority("high", 1000)
    low = await here.pod("low", nodeSelector=here.on("a"), containers=cpus(4), terminationGracePeriodSeconds=0)
    await here.bound(low)
    await here.template("one", here.request())
    high = await here.pod("high", templates=("one",), containers=cpus(4), priorityClassName=here.full("high"))
    await here.refused(high, "no devices are published for the node")
    # Of slices the scheduler hears nothing.
    await here.slice("a", [{"name": "gpu-0"}])
    assert await here.bound(high) == "a"
    await here.gone(low)


async def test_a_pod_of_a_scheduler_that_we_do_not_serve_is_refused_at_bind(here: World) -> None:
    await here.device_class()
    await device(here, "a")
    claim = await here.claim("c", here.request())
    pod = await here.pod("p", claims=("c",), schedulerName="somebody-else")
    order = {
        "PodName": pod["metadata"]["name"],
        "PodNamespace": "default",
        "PodUID": pod["metadata"]["uid"],
        "Node": here.full("a"),
    }
    status, answer = await here.stage.post("bind", order)
    assert (status, answer) == (200, '{"Error":"scheduler \'somebody-else\' is not configured here"}')
    assert await here.unbound(pod)
    assert not await here.devices(claim)
    assert pod["spec"]["schedulerName"] != SCHEDULER


async def test_a_pod_whose_controller_takes_back_one_name_for_the_other_is_bound(here: World) -> None:
    await here.device_class()
    await device(here, "a")
    await here.template("one", here.request())
    pod = await here.pod("p", templates=("one", "one"))
    before = here.stage.counted("wakes_total", way="claims unnamed", result="done")
    read = await here.when(pod, lambda read: len(read["status"].get("resourceClaimStatuses", ())) == 2)
    # What the controller of 1.36 does where it has heard of one claim only. From then on it does so for ever.
    first = read["status"]["resourceClaimStatuses"][:1]
    partial = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "status": {"resourceClaimStatuses": first}}
    path = f"{await here.admin.path(pod)}/status"
    await here.admin.must("PATCH", path, partial, content=APPLY, fieldManager="ResourceClaimController", force="true")
    await device(here, "b", 2)
    assert await here.bound(pod) == "b"
    mended = here.stage.counted("wakes_total", way="claims unnamed", result="done") - before
    # The later one mends that itself, as a rule before we do.
    assert mended == 1 if here.stage.plane.minor == "1.36" else mended <= 1
    assert claims_of(await here.admin.read(pod)) == claims_of(read)


async def test_a_quota_of_claims_that_is_used_up_is_told_and_its_end_lets_the_pod_go_on(here: World) -> None:
    resource = f"{here.name}.example.com/gpu"
    await here.device_class(extendedResourceName=resource)
    await device(here, "a", 2)
    await here.own_namespace()
    hard = {"hard": {"count/resourceclaims.resource.k8s.io": "1"}}
    metadata = {"name": "claims", "namespace": here.namespace}
    quota = await here.create({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": hard})
    await here.when(quota, lambda read: read.get("status", {}).get("used"), "the quota to be counted")
    asked = {"requests": {resource: "1"}, "limits": {resource: "1"}}
    containers = [{"name": "main", "image": "none", "resources": asked}]
    first = await here.pod("first", containers=containers)
    await here.bound(first)
    second = await here.pod("second", containers=containers)
    await here.refused(second, "the claim for extended resources could not be made")
    assert "exceeded quota" in (await here.notes(second, "BindFailed"))[0]
    await here.finish(first)
    await here.bound(second)


async def test_a_webhook_that_is_down_is_named_and_the_pod_goes_on_once_it_is_back(here: World) -> None:
    await here.device_class()
    await device(here, "a")
    await here.own_namespace()
    await here.template("one", here.request())
    hook = await here.break_claims()
    pod = await here.pod("p", templates=("one",))
    assert "failed calling webhook" in (await here.notes(pod, "BindFailed"))[0]
    await here.admin.delete(hook)
    assert await here.bound(pod) == "a"


async def test_pods_that_must_be_near_each_other_get_devices_within_one_clique(here: World) -> None:
    """So workers of one NVLink domain of several nodes ask for it."""
    await here.device_class()
    for number in range(6):
        await device(here, f"n{number}")
        name = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": here.full(f"n{number}")}}
        await here.admin.patch(name, {"metadata": {"labels": {CLIQUE: f"c{number % 2}"}}})
    await here.template("one", here.request())
    near = {"topologyKey": CLIQUE, "labelSelector": {"matchLabels": {"job": here.name}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    metadata = {"labels": {"job": here.name}}
    made = [
        await here.pod(f"worker-{number}", templates=("one",), metadata=metadata, affinity=affinity)
        for number in range(4)
    ]
    (last,) = await here.left(made, 1)
    homes = [await here.bound(pod) for pod in made if pod is not last]
    assert len({int(home[1:]) % 2 for home in homes}) == 1
    await here.refused(last, "didn't match pod affinity rules")
    assert len(set(homes)) == 3
