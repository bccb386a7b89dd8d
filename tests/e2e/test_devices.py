"""What people can ask for, on a real control plane, answered by kube-scheduler and us."""

import pytest

from tests.controlplane.client import Object, RefusedError, until
from tests.e2e.world import SCHEDULER, World, stock

pytestmark = pytest.mark.asyncio(loop_scope="module")

SICK = "example.com/sick"


async def test_one_device(here: World) -> None:
    await here.node("a")
    await here.device_class()
    await here.slice("a", [{"name": "gpu-0"}, {"name": "gpu-1"}])
    claim = await here.claim("c", here.request())
    pod = await here.pod("p", claims=("c",))
    assert await here.bound(pod) == "a"
    assert await here.devices(claim) in (["a/gpu-0"], ["a/gpu-1"])


async def test_several_devices_with_one_value_of_an_attribute(here: World) -> None:
    await here.device_class()
    for node, numas in (("a", [0, 1, 0, 1]), ("b", [0, 0, 0, 1])):
        await here.node(node)
        devices = [{"name": f"gpu-{index}", "attributes": {"numa": {"int": numa}}} for index, numa in enumerate(numas)]
        await here.slice(node, devices)
    rule = {"requests": ["gpu"], "matchAttribute": f"{here.driver}/numa"}
    claim = await here.claim("c", here.request(count=3), constraints=[rule])
    pod = await here.pod("p", claims=("c",))
    assert await here.bound(pod) == "b"
    assert sorted(await here.devices(claim)) == ["b/gpu-0", "b/gpu-1", "b/gpu-2"]


async def test_a_freed_device_wakes_the_pod_that_waits_for_it(here: World) -> None:
    await here.node("a")
    await here.device_class()
    await here.slice("a", [{"name": "gpu-0"}])
    await here.template("one", here.request())
    first = await here.pod("first", templates=("one",))
    await here.bound(first)
    second = await here.pod("second", templates=("one",))
    await here.refused(second, "too few matching devices are free")
    await here.finish(first)
    assert await here.bound(second) == "a"


async def test_two_pods_race_for_one_device_and_one_is_told_why_it_lost(here: World) -> None:
    await here.node("a")
    await here.device_class()
    await here.slice("a", [{"name": "gpu-0"}])
    await here.template("one", here.request())
    pods = [await here.pod(f"p{index}", templates=("one",)) for index in range(2)]

    async def losers() -> list[Object] | None:
        left = [pod for pod in pods if not (await here.admin.read(pod))["spec"].get("nodeName")]
        return left if len(left) == 1 else None

    (loser,) = await until(losers)
    await here.refused(loser, "too few matching devices are free")


async def test_alternatives_take_the_first_that_there_is(here: World) -> None:
    await here.node("a")
    await here.device_class()
    await here.slice("a", [{"name": f"gpu-{index}", "attributes": {"big": {"bool": False}}} for index in range(2)])
    big = {"cel": {"expression": f"device.attributes['{here.driver}'].big"}}
    name = f"{here.name}-gpu"
    alternatives = [
        {"name": "big", "deviceClassName": name, "selectors": [big]},
        {"name": "two", "deviceClassName": name, "count": 2},
    ]
    claim = await here.claim("c", {"name": "gpu", "firstAvailable": alternatives})
    pod = await here.pod("p", claims=("c",))
    await here.bound(pod)
    assert sorted(await here.devices(claim)) == ["a/gpu-0", "a/gpu-1"]


async def test_a_shared_claim_serves_both_pods_on_its_node(here: World) -> None:
    await here.device_class()
    for node in ("a", "b"):
        await here.node(node)
        await here.slice(node, [{"name": "gpu-0"}])
    claim = await here.claim("c", here.request())
    pods = [await here.pod(f"p{index}", claims=("c",)) for index in range(3)]
    nodes = {await here.bound(pod) for pod in pods}
    assert len(nodes) == 1
    reserved = (await here.admin.read(claim))["status"]["reservedFor"]
    assert len(reserved) == 3


async def test_an_extended_resource_is_served_by_its_class(here: World) -> None:
    await here.node("a")
    resource = f"{here.name}.example.com/gpu"
    await here.device_class(extendedResourceName=resource)
    await here.slice("a", [{"name": "gpu-0"}, {"name": "gpu-1"}])
    amounts = {"requests": {resource: "2"}, "limits": {resource: "2"}}
    pod = await here.pod("p", containers=[{"name": "main", "image": "none", "resources": amounts}])
    assert await here.bound(pod) == "a"
    status = (await here.admin.read(pod))["status"]["extendedResourceClaimStatus"]
    mapping = {"containerName": "main", "resourceName": resource, "requestName": "container-0-request-0"}
    assert status["requestMappings"] == [mapping]


async def test_a_pod_without_claims_is_bound_plainly(here: World) -> None:
    await here.node("a")
    pod = await here.pod("p")
    assert await here.bound(pod) == "a"


async def test_partitions_are_given_as_far_as_their_counters_go(here: World) -> None:
    await here.node("a")
    await here.device_class()
    pool = {"name": here.full("a"), "generation": 1, "resourceSliceCount": 2}
    counters = {"name": "card", "counters": {"memory": {"value": "80Gi"}}}
    await here.slice("a", None, sharedCounters=[counters], pool=pool)

    def partition(name: str, memory: str) -> Object:
        draws = {"counterSet": "card", "counters": {"memory": {"value": memory}}}
        return {"name": name, "consumesCounters": [draws]}

    halves = [partition(f"half-{index}", "40Gi") for index in range(3)]
    await here.slice("a", [*halves, partition("whole", "80Gi")], pool=pool)
    claims = [await here.claim(f"c{index}", here.request()) for index in range(2)]
    for index, claim in enumerate(claims):
        await here.bound(await here.pod(f"p{index}", claims=(f"c{index}",)))
        assert (await here.devices(claim))[0].startswith("a/half-")
    await here.claim("more", here.request())
    await here.refused(await here.pod("more", claims=("more",)), "the counters of the devices' pool do not suffice")


async def test_many_pods_that_share_a_claim_are_not_refused_for_what_the_others_write(here: World) -> None:
    await here.node("a", cpus=100)
    await here.device_class()
    await here.slice("a", [{"name": "gpu-0"}])
    claim = await here.claim("c", here.request())
    pods = [await here.pod(f"p{index}", claims=("c",)) for index in range(40)]
    for pod in pods:
        assert await here.bound(pod) == "a"
    assert len((await here.admin.read(claim))["status"]["reservedFor"]) == 40
    # The first may be writing still when the scheduler asks about the next.
    assert [said for said in here.refusals() if "kept changing" in said] == []


async def test_shares_of_a_device_are_given_as_far_as_its_capacity_goes(here: World) -> None:
    await here.node("a")
    await here.device_class()
    capacity = {"memory": {"value": "40Gi"}}
    await here.slice("a", [{"name": "gpu-0", "allowMultipleAllocations": True, "capacity": capacity}])
    await here.template("share", here.request(capacity={"requests": {"memory": "15Gi"}}))
    pods = [await here.pod(f"p{index}", templates=("share",)) for index in range(2)]
    results = []
    for pod in pods:
        await here.bound(pod)
        claim = await here.allocated(await here.claim_of(pod))
        results += claim["status"]["allocation"]["devices"]["results"]
    assert [item["consumedCapacity"] for item in results] == [{"memory": "15Gi"}] * 2
    assert len({item["shareID"] for item in results}) == 2
    third = await here.pod("third", templates=("share",))
    await here.refused(third, "too few matching devices have enough capacity left")
    await here.finish(pods[0])
    assert await here.bound(third) == "a"


async def test_a_share_is_rounded_up_as_kubernetes_own_scheduler_does_it(here: World) -> None:
    await here.node("a")
    await here.device_class()
    policy = {"default": "1", "validRange": {"min": "100m", "step": "100m", "max": "2"}}
    capacity = {"cores": {"value": "4", "requestPolicy": policy}}
    await here.slice("a", [{"name": "gpu-0", "allowMultipleAllocations": True, "capacity": capacity}])
    await here.template("share", here.request(capacity={"requests": {"cores": "250m"}}))
    taken = []
    async with stock(here.stage.plane):
        for scheduler in (SCHEDULER, "default-scheduler"):
            pod = await here.pod(f"of-{scheduler}", templates=("share",), schedulerName=scheduler)
            await here.bound(pod)
            claim = await here.allocated(await here.claim_of(pod))
            taken += [item["consumedCapacity"] for item in claim["status"]["allocation"]["devices"]["results"]]
    assert taken[0] == taken[1]


async def test_admin_access_reaches_a_device_in_use_and_needs_the_label_of_its_namespace(here: World) -> None:
    await here.node("a")
    await here.device_class()
    await here.slice("a", [{"name": "gpu-0"}])
    await here.claim("user", here.request())
    await here.bound(await here.pod("user", claims=("user",)))
    with pytest.raises(RefusedError, match="admin access"):
        await here.claim("admin", here.request(adminAccess=True))
    await here.own_namespace(**{"resource.kubernetes.io/admin-access": "true"})
    claim = await here.claim("admin", here.request(adminAccess=True))
    assert await here.bound(await here.pod("admin", claims=("admin",))) == "a"
    results = (await here.allocated(claim))["status"]["allocation"]["devices"]["results"]
    assert [(item["device"], item["adminAccess"]) for item in results] == [("gpu-0", True)]


async def test_a_tainted_device_is_for_claims_that_tolerate_it(here: World) -> None:
    await here.node("a")
    await here.device_class()
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    await here.slice("a", [{"name": "gpu-0", "taints": [taint]}])
    await here.claim("plain", here.request())
    plain = await here.pod("plain", claims=("plain",))
    await here.refused(plain, "matching devices are tainted or cannot be used on the node")
    tolerated = await here.claim("tolerant", here.request(tolerations=[{**taint, "operator": "Exists"}]))
    assert await here.bound(await here.pod("tolerant", claims=("tolerant",))) == "a"
    assert await here.devices(tolerated) == ["a/gpu-0"]
    assert await here.unbound(plain)


async def test_a_taint_rule_keeps_pods_away_until_it_is_deleted(here: World) -> None:
    await here.node("a")
    await here.device_class()
    await here.slice("a", [{"name": "gpu-0"}])
    rule = await here.taint_rule("example.com/maintenance")
    await here.claim("c", here.request())
    pod = await here.pod("p", claims=("c",))
    await here.refused(pod, "matching devices are tainted or cannot be used on the node")
    await here.admin.delete(rule)
    assert await here.bound(pod) == "a"


async def sicken(here: World, device: str) -> None:
    """Have pods that have *device* evicted, and wait until we know of it, too."""
    node, _, name = device.partition("/")
    rule = await here.taint_rule(SICK, "NoExecute", pool=here.full(node), device=name)

    async def known() -> bool:
        return rule["metadata"]["name"] in here.service.belief.cluster.snapshot.rules

    await until(known, "the extender to know the rule")


async def test_a_claim_whose_pods_are_evicted_for_a_taint_takes_no_others_and_is_given_a_healthy_device_after_the_last(
    here: World,
) -> None:
    await here.device_class()
    for node in ("a", "b"):
        await here.node(node)
        await here.slice(node, [{"name": "gpu-0"}])
    claim = await here.claim("c", here.request())
    # No kubelet ends what is evicted: it goes at once, or stays until somebody deletes it by force.
    quick = await here.pod("quick", claims=("c",), terminationGracePeriodSeconds=0)
    slow = await here.pod("slow", claims=("c",))
    node = await here.bound(quick)
    assert await here.bound(slow) == node
    await sicken(here, f"{node}/gpu-0")
    await here.gone(quick)
    await here.when(slow, lambda read: read["metadata"].get("deletionTimestamp"), "the other to be evicted")
    later = await here.pod("later", claims=("c",))
    (note,) = await here.notes(later, "ClaimTainted")
    assert f"has taint {SICK}=:NoExecute" in note
    assert await here.unbound(later)
    await here.finish(slow)
    other = {"a": "b", "b": "a"}[node]
    assert await here.bound(later) == other
    assert await here.devices(claim) == [f"{other}/gpu-0"]


@pytest.mark.parametrize("fleet", [{"a": 1, "b": 1}, {"a": 2}], ids=["on another node", "on the node"])
async def test_who_is_evicted_as_it_tolerates_a_taint_for_a_time_gets_a_healthy_device_the_next_time(
    here: World, fleet: dict[str, int]
) -> None:
    await here.device_class()
    for node, count in fleet.items():
        await here.node(node)
        await here.slice(node, [{"name": f"gpu-{index}"} for index in range(count)])
    toleration = {"key": SICK, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    await here.template("one", here.request(tolerations=[toleration]))
    first = await here.pod("first", templates=("one",), terminationGracePeriodSeconds=0)
    await here.bound(first)
    claim = await here.claim_of(first)
    (sick,) = await here.devices(claim)
    await sicken(here, sick)
    await here.gone(first)
    # What is in use would not be given again, taint or no taint.
    await here.gone(claim)
    second = await here.pod("second", templates=("one",))
    await here.bound(second)
    assert await here.devices(await here.claim_of(second)) != [sick]


async def test_a_pod_with_a_direct_claim_and_claims_from_templates_has_all_of_them_on_one_node(here: World) -> None:
    await here.device_class()
    for node, count in (("a", 2), ("b", 4)):
        await here.node(node)
        await here.slice(node, [{"name": f"gpu-{index}"} for index in range(count)])
    direct = await here.claim("direct", here.request())
    await here.template("one", here.request())
    await here.template("two", here.request(count=2))
    pod = await here.pod("p", claims=("direct",), templates=("one", "two"))
    assert await here.bound(pod) == "b"
    made = [direct, await here.claim_of(pod, 0), await here.claim_of(pod, 1)]
    devices = [device for claim in made for device in await here.devices(claim)]
    assert sorted(devices) == [f"b/gpu-{index}" for index in range(4)]


async def test_a_node_whose_device_plugin_serves_an_extended_resource_is_left_to_it(here: World) -> None:
    resource = f"{here.name}.example.com/gpu"
    await here.device_class(extendedResourceName=resource)
    await here.node("plugin", 32, **{resource: "1"})
    await here.node("devices")
    await here.slice("devices", [{"name": "gpu-0"}])
    amounts = {"requests": {resource: "1"}, "limits": {resource: "1"}}
    containers = [{"name": "main", "image": "none", "resources": amounts}]
    pods = [await here.pod(f"p{index}", containers=containers) for index in range(2)]
    nodes = [await here.bound(pod) for pod in pods]
    assert sorted(nodes) == ["devices", "plugin"]
    third = await here.pod("third", containers=containers)
    said = await here.refused(third, "too few matching devices are free")
    assert said.startswith(f"0/2 nodes are available: 1 Insufficient {resource}, 1 too few matching devices are free.")
    statuses = [(await here.admin.read(pod))["status"].get("extendedResourceClaimStatus") for pod in pods]
    assert [bool(status) for status in statuses] == [node == "devices" for node in nodes]


async def test_a_device_that_all_nodes_reach_serves_pods_on_different_nodes(here: World) -> None:
    await here.device_class()
    for node in ("a", "b"):
        await here.node(node)
    pool = {"name": here.full("net"), "generation": 1, "resourceSliceCount": 1}
    await here.slice("net", [{"name": "net-0"}], nodeName=None, allNodes=True, pool=pool)
    claim = await here.claim("c", here.request())
    for node in ("a", "b"):
        assert await here.bound(await here.pod(node, claims=("c",), nodeSelector=here.on(node))) == node
    read = await here.admin.read(claim)
    assert "nodeSelector" not in read["status"]["allocation"]
    assert len(read["status"]["reservedFor"]) == 2
