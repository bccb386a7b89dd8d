"""What we write into claims is what kubelets and drivers read there: their own code, behind kube-scheduler and us."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.controlplane.client import Object
from tests.controlplane.plane import Plane
from tests.e2e.kubelets import Kubelets, handed, kubelets_of
from tests.e2e.test_conditions import READY, report
from tests.e2e.world import Stage, World, impatient, staged, stock, world_on

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = "resource.kubernetes.io/pcieRoot"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(control_plane: Plane) -> AsyncIterator[Stage]:
    async with staged(control_plane, changed=impatient) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kubelets(stage: Stage) -> AsyncIterator[Kubelets]:
    """Run the kubelet of one node for all tests of the module: its driver takes a second to start."""
    async with world_on(stage) as ground, kubelets_of(ground) as made:
        await ground.node("a")
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def here(stage: Stage, kubelets: Kubelets) -> AsyncIterator[World]:
    """Give a test that node, without a device. The kubelet may refuse nothing, and has everything back in the end."""
    made = World(stage, kubelets.here.name)
    yield made
    await kubelets.finish(*(item for item in made.made if item["kind"] == "Pod"))
    troubles, prepared, unprepared = kubelets.troubles(), kubelets.count("prepared"), kubelets.count("unprepared")
    # First all is as it was, so that what goes wrong here goes wrong in one test alone.
    await made.clear()
    await kubelets.publish("a", plain(0))
    await kubelets.known()
    kubelets.happened.clear()
    assert troubles == []
    assert unprepared == prepared


def plain(count: int, first: int = 0) -> Object:
    """Return a slice of so many devices."""
    return {"Devices": [{"name": f"gpu-{index}"} for index in range(first, first + count)]}


def rooted(kind: str, count: int, first: int = 0) -> Object:
    """Return a slice of so many devices, each on a PCIe root of its own."""
    numbers = range(first, first + count)
    return {"Devices": [{"name": f"{kind}-{n}", "attributes": {ROOT: {"string": f"pci{n:04x}:00"}}} for n in numbers]}


def container(name: str, **claim: str) -> Object:
    """Return a container that uses the first claim of its pod, or one request of it."""
    return {"name": name, "image": "none", "resources": {"claims": [{"name": "c0", **claim}]}}


def asking(name: str, resource: str, count: int) -> Object:
    """Return a container that asks for so much of an extended resource."""
    amounts = {resource: str(count)}
    return {"name": name, "image": "none", "resources": {"requests": amounts, "limits": amounts}}


def opaque(here: World, of: str, *requests: str, driver: str = "") -> Object:
    """Return configuration for the driver, of a class or, for these requests, of a claim."""
    inner = {"driver": driver or here.driver, "parameters": {"of": of}}
    return {"opaque": inner, **({"requests": [*requests]} if requests else {})}


def partition(name: str, memory: str) -> Object:
    draws = {"counterSet": "card", "counters": {"memory": {"value": memory}}}
    return {"name": name, "consumesCounters": [draws]}


async def on_a(here: World, kubelets: Kubelets, *slices: Object, **spec: Any) -> None:
    """Have a class, and the node's driver publish *slices*."""
    await here.device_class(**spec)
    await kubelets.publish("a", *slices)


async def test_one_device_of_a_template_is_handed_to_the_container(here: World, kubelets: Kubelets) -> None:
    await on_a(here, kubelets, plain(2))
    await here.template("one", here.request())
    pod = await here.pod("p", templates=("one",))
    containers = await kubelets.running(pod)
    claim = await here.allocated(await here.claim_of(pod))
    assert containers == {"main": handed(claim)}
    assert len(containers["main"]) == 1


async def test_a_container_that_names_a_request_is_handed_its_devices_alone(here: World, kubelets: Kubelets) -> None:
    await on_a(here, kubelets, plain(4))
    claim = await here.claim("c", here.request("one"), here.request("two", count=2))
    containers = [container("first", request="two"), container("second", request="one"), container("all")]
    pod = await here.pod("p", claims=("c",), containers=[*containers, {"name": "none", "image": "none"}])
    got = await kubelets.running(pod)
    claim = await here.allocated(claim)
    wanted = {"first": handed(claim, "two"), "second": handed(claim, "one"), "all": handed(claim), "none": []}
    assert got == wanted
    assert [len(wanted[name]) for name in ("first", "second", "all")] == [2, 1, 3]


async def test_of_alternatives_what_is_there_is_handed_over(here: World, kubelets: Kubelets) -> None:
    await on_a(here, kubelets, plain(3))
    big = {"cel": {"expression": "has(device.attributes[device.driver].big)"}}
    name = here.full("gpu")
    alternatives = [
        {"name": "big", "deviceClassName": name, "selectors": [big]},
        {"name": "two", "deviceClassName": name, "count": 2},
    ]
    config = [opaque(here, "big", "gpu/big"), opaque(here, "two", "gpu/two"), opaque(here, "any", "gpu")]
    requests = {"name": "gpu", "firstAvailable": alternatives}, here.request("other")
    claim = await here.claim("c", *requests, config=config)
    pod = await here.pod("p", claims=("c",), containers=[container("main", request="gpu"), container("all")])
    got = await kubelets.running(pod)
    claim = await here.allocated(claim)
    assert got == {"main": handed(claim, "gpu"), "all": handed(claim)}
    assert {item["request"] for item in kubelets.prepared(claim)} == {"gpu/two", "other"}
    read = {tuple(item.get("parameters", ())) for item in kubelets.prepared(claim)}
    assert read == {('FromClaim {"of":"two"}', 'FromClaim {"of":"any"}'), ()}


async def test_all_devices_of_a_pool_of_several_slices_are_handed_over(here: World, kubelets: Kubelets) -> None:
    await on_a(here, kubelets, plain(10), plain(10, first=10), plain(3, first=20))
    claim = await here.claim("c", here.request(allocationMode="All"))
    pod = await here.pod("p", claims=("c",))
    assert await kubelets.running(pod) == {"main": handed(await here.allocated(claim))}
    assert len(kubelets.prepared(claim)) == 23


async def test_a_shared_claim_is_prepared_once_and_taken_back_after_the_last_pod(
    here: World, kubelets: Kubelets
) -> None:
    await on_a(here, kubelets, plain(2))
    claim = await here.claim("c", here.request())
    pods = [await here.pod(f"p{index}", claims=("c",)) for index in range(2)]
    got = [await kubelets.running(pod) for pod in pods]
    assert got == [{"main": handed(await here.allocated(claim))}] * 2
    assert len(kubelets.prepared(claim)) == 1
    await kubelets.finish(pods[0])
    assert kubelets.count("unprepared") == 0
    await kubelets.finish(pods[1])
    assert kubelets.count("unprepared") == 1
    await here.freed(claim)


async def test_configuration_of_the_class_comes_before_that_of_the_claim(here: World, kubelets: Kubelets) -> None:
    of_class = [opaque(here, "class"), opaque(here, "class too")]
    await on_a(here, kubelets, plain(2), config=of_class)
    of_claim = [opaque(here, "all"), opaque(here, "second", "second"), opaque(here, "elsewhere", driver="other.test")]
    claim = await here.claim("c", here.request("first"), here.request("second"), config=of_claim)
    await kubelets.running(await here.pod("p", claims=("c",)))
    read = {item["request"]: item["parameters"] for item in kubelets.prepared(claim)}
    classes = ['FromClass {"of":"class"}', 'FromClass {"of":"class too"}']
    assert [each for each in read["first"] if "elsewhere" not in each] == [*classes, 'FromClaim {"of":"all"}']
    assert read["second"][:4] == [*classes, 'FromClaim {"of":"all"}', 'FromClaim {"of":"second"}']


async def test_an_extended_resource_is_handed_to_each_container_that_asks_for_it(
    here: World, kubelets: Kubelets
) -> None:
    resource = f"{here.name}.example.com/gpu"
    await on_a(here, kubelets, plain(6), extendedResourceName=resource)
    containers = [asking("two", resource, 2), asking("one", resource, 1), {"name": "none", "image": "none"}]
    before = [asking("few", resource, 2), asking("many", resource, 4)]
    pod = await here.pod("p", containers=containers, initContainers=before)
    got = await kubelets.running(pod)
    claim = await here.allocated(await here.hidden_claim_of(pod))
    assert {name: len(ids) for name, ids in got.items()} == {"few": 2, "many": 4, "two": 2, "one": 1, "none": 0}
    assert not {*got["one"]} & {*got["two"]}
    # What runs before the others has what they will have, and one more where that is too few.
    assert got["few"] == got["two"]
    assert {*got["two"], *got["one"]} < {*got["many"]} == {*handed(claim)}
    await kubelets.finish(pod)
    await here.gone(claim)


async def test_an_implicit_extended_resource_and_a_claim_go_together(here: World, kubelets: Kubelets) -> None:
    await on_a(here, kubelets, plain(3))
    resource = f"deviceclass.resource.kubernetes.io/{here.full('gpu')}"
    await here.template("one", here.request())
    main = asking("main", resource, 1)
    main["resources"]["claims"] = [{"name": "t0"}]
    pod = await here.pod("p", templates=("one",), containers=[main, asking("side", resource, 1)])
    got = await kubelets.running(pod)
    claims = [await here.allocated(await here.claim_of(pod)), await here.allocated(await here.hidden_claim_of(pod))]
    assert {name: len(ids) for name, ids in got.items()} == {"main": 2, "side": 1}
    assert sorted([*got["main"], *got["side"]]) == sorted([*handed(claims[0]), *handed(claims[1])])


async def test_shares_of_one_device_are_handed_over_as_far_as_it_goes(here: World, kubelets: Kubelets) -> None:
    capacity = {"memory": {"value": "40Gi"}}
    await on_a(here, kubelets, {"Devices": [{"name": "gpu-0", "allowMultipleAllocations": True, "capacity": capacity}]})
    await here.template("share", here.request(capacity={"requests": {"memory": "15Gi"}}))
    pods = [await here.pod(f"p{index}", templates=("share",)) for index in range(2)]
    got = [await kubelets.running(pod) for pod in pods]
    claims = [await here.allocated(await here.claim_of(pod)) for pod in pods]
    assert got == [{"main": handed(claim)} for claim in claims]
    assert got[0] != got[1]
    third = await here.pod("third", templates=("share",))
    await here.refused(third, "too few matching devices have enough capacity left")
    await kubelets.finish(pods[0])
    await kubelets.running(third)


async def test_partitions_are_handed_over_as_far_as_their_counters_go(here: World, kubelets: Kubelets) -> None:
    counters = {"SharedCounters": [{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]}
    halves = [partition(f"half-{index}", "40Gi") for index in range(3)]
    await on_a(here, kubelets, counters, {"Devices": [*halves, partition("whole", "80Gi")]})
    await here.template("any", here.request())
    pods = [await here.pod(f"p{index}", templates=("any",)) for index in range(3)]
    (last,) = await here.left(pods, 1)
    await here.refused(last, "the counters of the devices' pool do not suffice")
    first, second = [pod for pod in pods if pod is not last]
    for pod in (first, second):
        assert await kubelets.running(pod) == {"main": handed(await here.allocated(await here.claim_of(pod)))}
    await kubelets.finish(first)
    await kubelets.running(last)


async def test_admin_access_is_handed_a_device_that_somebody_has(here: World, kubelets: Kubelets) -> None:
    await on_a(here, kubelets, plain(1))
    user = await here.claim("user", here.request())
    await kubelets.running(await here.pod("user", claims=("user",)))
    await here.own_namespace(**{"resource.kubernetes.io/admin-access": "true"})
    claim = await here.claim("admin", here.request(adminAccess=True, allocationMode="All"))
    pod = await here.pod("admin", claims=("admin",))
    assert await kubelets.running(pod) == {"main": handed(await here.allocated(user))}
    assert handed(await here.allocated(claim)) == handed(await here.allocated(user))


async def test_a_device_that_is_made_ready_first_is_prepared_after_that(here: World, kubelets: Kubelets) -> None:
    conditions = {"bindsToNode": True, "bindingConditions": [READY], "bindingFailureConditions": ["example.com/broken"]}
    await on_a(here, kubelets, {"Devices": [{"name": "gpu-0", **conditions}]})
    claim = await here.claim("c", here.request())
    pod = await here.pod("p", claims=("c",))
    await here.refused(pod, "waiting for conditions")
    await report(here, claim, READY)
    assert await kubelets.running(pod) == {"main": handed(await here.allocated(claim))}


async def test_a_tainted_device_is_prepared_for_who_tolerates_it(here: World, kubelets: Kubelets) -> None:
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    await on_a(here, kubelets, {"Devices": [{"name": "gpu-0", "taints": [taint]}]})
    tolerations = [{**taint, "operator": "Exists"}, {"key": "example.com/other", "operator": "Exists"}]
    claim = await here.claim("c", here.request(tolerations=tolerations))
    pod = await here.pod("p", claims=("c",))
    assert await kubelets.running(pod) == {"main": handed(await here.allocated(claim))}


async def test_the_device_of_a_pod_that_ended_is_the_next_ones(here: World, kubelets: Kubelets) -> None:
    await on_a(here, kubelets, plain(1))
    await here.template("one", here.request())
    for index in range(3):
        pod = await here.pod(f"p{index}", templates=("one",))
        await kubelets.running(pod)
        await kubelets.succeed(pod)


async def test_a_claim_that_kube_scheduler_allocated_is_shared_as_it_was(here: World, kubelets: Kubelets) -> None:
    await on_a(here, kubelets, plain(2), config=[opaque(here, "class")])
    # As sent from here, with spaces: the API server keeps them, and kube-scheduler does.
    claim = await here.claim("c", here.request(), config=[opaque(here, "claim")])
    async with stock(here.stage.plane):
        first = await here.pod("first", claims=("c",), schedulerName="default-scheduler")
        got = await kubelets.running(first)
    second = await here.pod("second", claims=("c",))
    assert await kubelets.running(second) == got == {"main": handed(await here.allocated(claim))}
    await kubelets.finish(first, second)
    await here.freed(claim)


async def test_devices_of_two_drivers_on_one_pcie_root_are_handed_over_by_both(here: World, kubelets: Kubelets) -> None:
    nics = f"{here.name}.nic.example.com"
    await on_a(here, kubelets, rooted("gpu", 3))
    await kubelets.publish("a", rooted("nic", 2, first=2), driver=nics)
    await here.device_class("nic", selectors=[{"cel": {"expression": f"device.driver == '{nics}'"}}])
    together = [{"matchAttribute": ROOT}]
    claim = await here.claim("c", here.request(), here.request("nic", "nic"), constraints=together)
    pod = await here.pod("p", claims=("c",), containers=[container("both"), container("nic", request="nic")])
    got = await kubelets.running(pod)
    claim = await here.allocated(claim)
    assert got == {"both": handed(claim), "nic": handed(claim, "nic")}
    assert {item["device"] for item in kubelets.prepared(claim)} == {"gpu-2", "nic-2"}
    await kubelets.publish("a", driver=nics)


async def test_a_device_of_each_pool_of_a_driver_is_handed_over(here: World, kubelets: Kubelets) -> None:
    await on_a(here, kubelets)
    await kubelets.publish("a", plain(1), near=[plain(1)], far=[plain(1), plain(1, first=1)])
    claim = await here.claim("c", here.request(count=4))
    pod = await here.pod("p", claims=("c",))
    assert await kubelets.running(pod) == {"main": handed(await here.allocated(claim))}
    pools = sorted(item["pool"].removeprefix(f"{here.name}-") for item in kubelets.prepared(claim))
    assert pools == ["a", "far", "far", "near"]


async def test_a_sidecar_keeps_its_device_beside_the_containers_after_it(here: World, kubelets: Kubelets) -> None:
    resource = f"{here.name}.example.com/gpu"
    await on_a(here, kubelets, plain(6), extendedResourceName=resource)
    sidecar = {**asking("sidecar", resource, 1), "restartPolicy": "Always"}
    before = [asking("first", resource, 1), sidecar, asking("second", resource, 3)]
    pod = await here.pod("p", initContainers=before, containers=[asking("main", resource, 2)])
    got = await kubelets.running(pod)
    assert {name: len(ids) for name, ids in got.items()} == {"first": 1, "sidecar": 1, "second": 3, "main": 2}
    assert got["first"] == got["sidecar"]
    assert not {*got["sidecar"]} & {*got["main"], *got["second"]}
    assert {*got["main"]} < {*got["second"]}


async def test_an_alternative_has_tolerations_and_capacity_of_its_own(here: World, kubelets: Kubelets) -> None:
    taint = {"key": "example.com/slow", "effect": "NoExecute"}
    capacity = {
        "memory": {"value": "40Gi", "requestPolicy": {"default": "8Gi", "validRange": {"min": "8Gi", "step": "4Gi"}}}
    }
    shared = {"allowMultipleAllocations": True, "capacity": capacity, "taints": [taint]}
    await on_a(here, kubelets, {"Devices": [{"name": "gpu-0", **shared}]})
    tolerated = [{**taint, "operator": "Exists", "tolerationSeconds": 600}]
    name = here.full("gpu")
    alternatives = [
        {"name": "clean", "deviceClassName": name},
        {
            "name": "slow",
            "deviceClassName": name,
            "tolerations": tolerated,
            "capacity": {"requests": {"memory": "9Gi"}},
        },
    ]
    await here.template(
        "any", {"name": "gpu", "firstAvailable": alternatives}, here.request("other", tolerations=tolerated)
    )
    pod = await here.pod("p", templates=("any",))
    got = await kubelets.running(pod)
    claim = await here.allocated(await here.claim_of(pod))
    assert got == {"main": handed(claim)}
    results = claim["status"]["allocation"]["devices"]["results"]
    assert {item["request"]: item["consumedCapacity"]["memory"] for item in results} == {
        "gpu/slow": "12Gi",
        "other": "8Gi",
    }
