"""The rules that keep it right, on a real control plane. Each test is named after its rule."""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from extender.allocation.features import Features
from extender.config.settings import Allocation, Settings
from extender.kube.answer import Answer, Unanswered
from tests.controlplane.client import Object, until
from tests.controlplane.plane import Plane
from tests.e2e.faults import Call, Late, allocation_of, binding, faulty
from tests.e2e.world import SCHEDULER, Stage, World, served, staged
from tests.scheduling.cast import promised

pytestmark = pytest.mark.asyncio(loop_scope="module")

# A profile of ours that looks at 100 nodes only, however many there are, and one that is not ours.
HASTY, UNSERVED = "dra-hasty", "somebody-else"


def with_profiles(configuration: Object) -> None:
    profile = copy.deepcopy(configuration["profiles"][0])
    configuration["profiles"].append({**profile, "schedulerName": HASTY, "percentageOfNodesToScore": 5})
    configuration["profiles"].append({**profile, "schedulerName": UNSERVED})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(control_plane: Plane) -> AsyncIterator[Stage]:
    async with staged(control_plane, Settings(schedulers=(SCHEDULER, HASTY)), changed=with_profiles) as made:
        yield made


async def devices(here: World, *nodes: str, count: int = 1, **spec: Any) -> None:
    """Publish *count* devices on each of *nodes*."""
    await here.device_class(**spec)
    for node in nodes:
        await here.node(node)
        await here.slice(node, [{"name": f"gpu-{index}"} for index in range(count)])


async def test_r1_a_late_write_of_devices_can_land_no_more_once_the_claim_was_touched(here: World) -> None:
    await devices(here, "a")
    claim = await here.claim("c", here.request())
    late = Late()
    with faulty(here.stage, allocation_of(claim), late):
        pod = await here.pod("p", claims=("c",))
        assert await here.bound(pod) == "a"
    before = await here.admin.read(claim)
    assert (await late.arrive()).status == 409
    assert await here.admin.read(claim) == before


async def test_r1_a_late_binding_can_land_no_more_once_the_pod_was_touched(here: World) -> None:
    await devices(here, "a")
    claim = await here.claim("c", here.request())
    late = Late()
    with faulty(here.stage, binding, late):
        pod = await here.pod("p", claims=("c",))
        assert await here.bound(pod) == "a"
    assert (await late.arrive()).status == 409
    assert [item["name"] for item in (await here.admin.read(claim))["status"]["reservedFor"]] == [here.full("p")]


@pytest.mark.parametrize("concerns", [allocation_of, lambda _: binding], ids=["devices", "binding"])
async def test_r1_a_write_that_landed_without_an_answer_is_found(
    here: World, concerns: Callable[[Object], Callable[[str, str], bool]]
) -> None:
    async def deaf(call: Call) -> Unanswered:
        await call()
        return Unanswered(was_sent=True, why="a test")

    await devices(here, "a")
    claim = await here.claim("c", here.request())
    with faulty(here.stage, concerns(claim), deaf):
        pod = await here.pod("p", claims=("c",))
        assert await here.bound(pod) == "a"
    assert await here.devices(claim) == ["a/gpu-0"]
    await here.notes(pod, "DevicesAllocated")


async def test_r2_two_claims_on_one_device_the_later_is_rolled_back(here: World) -> None:
    await devices(here, "a", "b")
    claim, theirs = await here.claim("ours", here.request()), await here.claim("theirs", here.request())
    taken: list[str] = []

    async def overtaken(call: Call) -> Answer | Unanswered:
        """Have another replica's write of the same device land just before ours."""
        (device,) = promised(here.service.belief)
        taken.append(f"{device.pool.removeprefix(here.name + '-')}/{device.device}")
        writer = here.service.belief.ownership.domain.writer
        await here.allocate(theirs, device.pool, device.device, fieldManager=writer)
        return await call()

    with faulty(here.stage, allocation_of(claim), overtaken):
        pod = await here.pod("p", claims=("ours",))
        node = await here.bound(pod)
    assert await here.devices(theirs) == taken
    assert await here.devices(claim) == [f"{node}/gpu-0"]
    assert await here.devices(claim) != taken
    (note,) = await here.notes(pod, "BindFailed")
    device = f"{here.driver}/{here.name}-{taken[0]}"
    assert note == f"claim {here.name}-ours: the earlier claim {here.namespace}/{here.name}-theirs holds {device}"


async def test_r3_an_allocation_on_a_device_that_an_earlier_claim_holds_is_not_honoured(here: World) -> None:
    await devices(here, "a")
    earlier, later = await here.claim("earlier", here.request()), await here.claim("later", here.request())
    assert await here.bound(await here.pod("first", claims=("earlier",))) == "a"
    await here.allocate(later, here.full("a"), "gpu-0")
    pod = await here.pod("p", claims=("later",))
    (note,) = await here.notes(pod, "ClaimContested")
    first, device = f"{here.namespace}/{here.name}-earlier", f"{here.driver}/{here.name}-a/gpu-0"
    assert note == (
        "a claim of the pod holds devices that do not suffice for it and earlier claims: "
        f"claim {here.name}-later: the earlier claim {first} holds {device}"
    )
    await here.freed(later)
    assert await here.devices(earlier) == ["a/gpu-0"]
    await here.refused(pod, "too few matching devices are free")
    await here.node("b")
    await here.slice("b", [{"name": "gpu-0"}])
    assert await here.bound(pod) == "b"


async def test_r4_a_claim_on_a_node_that_is_gone_is_freed_and_the_pod_woken_elsewhere(here: World) -> None:
    await devices(here, "a", "b")
    claim = await here.claim("c", here.request())
    first = await here.pod("first", claims=("c",))
    node = await here.bound(first)
    await here.leave(claim, first)
    other = {"a": "b", "b": "a"}[node]
    await here.admin.delete({"apiVersion": "v1", "kind": "Node", "metadata": {"name": here.full(node)}})
    pod = await here.pod("p", claims=("c",))
    assert await here.bound(pod) == other
    assert await here.devices(claim) == [f"{other}/gpu-0"]


async def test_r4_a_stale_claim_for_extended_resources_is_deleted_and_another_is_made(here: World) -> None:
    resource = f"{here.name}.example.com/gpu"
    await devices(here, "a", extendedResourceName=resource)
    amounts = {"requests": {resource: "1"}, "limits": {resource: "1"}}
    containers = [{"name": "main", "image": "none", "resources": amounts}]
    pod = await here.pod("p", containers=containers, schedulingGates=[{"name": "example.com/later"}])
    stale = await here.hidden_claim(pod)
    await here.admin.patch(pod, {"spec": {"schedulingGates": []}})
    assert await here.bound(pod) == "a"
    await here.gone(stale)
    assert (await here.hidden_claim_of(pod))["metadata"]["name"] != stale["metadata"]["name"]


async def test_r5_of_a_burst_of_pods_for_few_devices_no_bind_is_refused(here: World) -> None:
    await devices(here, "a", "b", "c", "d", count=2)
    await here.template("one", here.request())
    pods = await asyncio.gather(*(here.pod(f"p{index}", templates=("one",)) for index in range(24)))

    async def all_given() -> list[Object] | None:
        read = await asyncio.gather(*map(here.admin.read, pods))
        bound = [pod for pod in read if pod["spec"].get("nodeName")]
        return bound if len(bound) == 8 else None

    await until(all_given)
    assert here.refusals() == []


async def test_r6_a_pod_that_comes_back_unbound_is_offered_other_nodes(here: World) -> None:
    await devices(here, "a")
    await here.node("b")
    await here.slice("b", [{"name": f"gpu-{index}"} for index in range(3)])
    await here.bar_bindings("a")
    claim = await here.claim("c", here.request())
    pod = await here.pod("p", claims=("c",))
    assert await here.bound(pod) == "b"
    assert (await here.devices(claim))[0].startswith("b/")
    (note,) = await here.notes(pod, "BindFailed")
    assert note.startswith("the Binding was refused: ")


async def test_r7_what_waits_for_conditions_is_answered_with_an_error_and_stays_allocated(here: World) -> None:
    await here.device_class()
    await here.node("a")
    await here.slice("a", [{"name": "gpu-0", "bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}])
    claim = await here.claim("c", here.request())
    pod = await here.pod("p", claims=("c",))
    said = await here.refused(pod, "waiting for conditions")
    assert said.endswith(f"waiting for conditions: device {here.driver}/{here.name}-a/gpu-0 is waiting for ready")
    assert await here.devices(claim) == ["a/gpu-0"]
    assert await here.unbound(pod)


async def test_q1_a_hopeless_pod_is_not_retried_by_its_own_rejection(here: World) -> None:
    await devices(here, "a")
    await here.claim("c", here.request(count=2))
    pod = await here.pod("p", claims=("c",))
    await here.refused(pod, "too few devices match the claim's requests")
    await asyncio.sleep(1)
    # Once, and once more for the condition that was written on it first.
    assert len(here.asked(pod)) <= 2


async def test_q1_a_pod_that_fits_only_where_it_may_not_run_is_not_retried_for_ever(here: World) -> None:
    await devices(here, "a", "b")
    await here.bound(await here.pod("full", containers=cpus(32), nodeSelector=here.on("a")))
    await here.claim("other", here.request())
    await here.bound(await here.pod("other", claims=("other",), nodeSelector=here.on("b")))
    await here.claim("c", here.request())
    pod = await here.pod("p", claims=("c",), containers=cpus(1))
    await here.refused(pod, "too few matching devices are free")
    await asyncio.sleep(2)
    assert len(here.asked(pod)) <= 10


async def test_q3_a_pod_is_not_sent_to_free_devices_where_it_may_not_run(here: World) -> None:
    await devices(here, "a", "b")
    await here.template("one", here.request())
    await here.bound(await here.pod("user", templates=("one",), nodeSelector=here.on("a")))
    before = here.stage.counted("wakes_total")
    pod = await here.pod("p", templates=("one",), nodeSelector=here.on("a"))
    await here.refused(pod, "too few matching devices are free")
    await asyncio.sleep(2)
    assert here.stage.counted("wakes_total") == before
    assert len(here.asked(pod)) <= 10


async def test_q2_a_new_device_wakes_one_pod_the_most_important(here: World) -> None:
    await devices(here, "a", "b", count=0)
    await here.template("one", here.request())
    await here.priority("high", 1000)
    low = [await here.pod(f"low-{index}", templates=("one",)) for index in range(3)]
    high = await here.pod("high", templates=("one",), priorityClassName=here.full("high"))
    for pod in (*low, high):
        await here.refused(pod, "no devices are published for the node")
    waiting, woken = [high, *low], 0.0

    async def lucky() -> list[Object]:
        return [pod for pod in waiting if not await here.unbound(pod)]

    # kube-scheduler wakes nobody for this, while it would for a pod that ends. It may be about to try a pod once more,
    # for something that came while it looked at it; that pod needs no waking then.
    while waiting and not woken:
        before, pool = here.stage.counted("wakes_total"), {"generation": 1, "resourceSliceCount": 1}
        await here.slice("a", [{"name": "gpu-0"}], pool={"name": f"new-{len(waiting)}", **pool})
        (found,) = await until(lucky, "one of those who wait to be bound")
        woken = here.stage.counted("wakes_total") - before
        assert not woken or found is high or high not in waiting
        waiting.remove(found)
    assert woken == 1
    assert all([await here.unbound(pod) for pod in waiting])


async def test_q2_a_freed_device_goes_to_one_of_those_who_wait_and_the_others_wait_on(here: World) -> None:
    await devices(here, "a")
    await here.template("one", here.request())
    user = await here.pod("user", templates=("one",))
    await here.bound(user)
    waiting = [await here.pod(f"p{index}", templates=("one",)) for index in range(3)]
    while waiting:
        for pod in waiting:
            await here.refused(pod, "too few matching devices are free")
        await here.finish(user)

        async def lucky() -> list[Object]:
            return [pod for pod in waiting if not await here.unbound(pod)]

        (user,) = await until(lucky)
        waiting.remove(user)


async def all_offered(here: World, count: int) -> None:
    """Wait until the scheduler offers so many nodes: it hears of each by itself, and that it is ready later still."""
    scout = await here.pod("scout", templates=("one",))

    async def all_are() -> bool:
        return any(len(nodes) == count for nodes in here.asked(scout))

    await until(all_are, f"{count} nodes to be offered")
    await here.finish(scout)
    await here.gone(scout)


async def test_q3_a_pod_that_fits_outside_of_the_node_budget_is_steered_there(here: World) -> None:
    await here.device_class()
    await asyncio.gather(*(here.node(f"n{index}") for index in range(130)))
    await here.template("one", here.request())
    await all_offered(here, 130)
    pods = [await here.pod(f"p{index}", templates=("one",), schedulerName=HASTY) for index in range(3)]
    for pod in pods:
        await here.refused(pod, "no devices are published for the node")
    assert all(len(nodes) == 100 for pod in pods for nodes in here.asked(pod))
    for index, node in enumerate(("n7", "n77", "n127")):
        await here.slice(node, [{"name": f"gpu-{index}"}])
    assert {await here.bound(pod) for pod in pods} == {"n7", "n77", "n127"}
    # Free already when the pod comes, on one node of which nobody knows whether it is among the hundred.
    for index, node in enumerate(("n5", "n55", "n125")):
        await here.slice(node, [{"name": f"gpu-{index}"}])
        pod = await here.pod(f"late-{index}", templates=("one",), schedulerName=HASTY)
        assert await here.bound(pod) == node
        assert len(here.asked(pod)) <= 4


async def test_q4_a_stale_view_is_an_error_and_not_a_verdict(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    await devices(here, "a")
    await here.claim("c", here.request())
    monkeypatch.setattr(here.service.health, "max_age_s", -1.0)
    pod = await here.pod("p", claims=("c",))
    said = await here.refused(pod, "not ready: ")
    assert not any(letter.isdigit() for letter in said.partition("not ready: ")[2])
    conditions = (await here.admin.read(pod))["status"]["conditions"]
    assert [item["reason"] for item in conditions if item["type"] == "PodScheduled"] == ["SchedulerError"]
    monkeypatch.undo()
    assert await here.bound(pod) == "a"


async def test_q5_one_bad_device_does_not_stop_a_fleet(here: World) -> None:
    await here.device_class()
    for node, attributes in (("a", {}), ("b", {"numa": {"int": 0}})):
        await here.node(node)
        await here.slice(node, [{"name": "gpu-0", "attributes": attributes}])
    expression = f"device.attributes['{here.driver}'].numa == 0"
    await here.template("one", here.request(selectors=[{"cel": {"expression": expression}}]))
    assert await here.bound(await here.pod("p", templates=("one",))) == "b"
    (note,) = await here.notes(await here.pod("q", templates=("one",)), "InUse")
    assert f"selector 0 on device {here.driver}/{here.name}-a/gpu-0: no such key: numa" in note
    assert expression in note


async def test_w1_filter_and_bind_answer_errors_and_the_others_fail(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(here.service.health, "max_age_s", -1.0)
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": []}}
    asked = {"Pod": pod, "Nodes": None, "NodeNames": ["n"]}
    victims = {"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": {"n": {"Pods": [{"UID": "v"}]}}}
    order = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "n"}
    for verb, body in (("filter", asked), ("bind", order)):
        status, text = await here.stage.post(verb, body)
        assert (status, '"Error":"not ready: ' in text) == (200, True)
    assert (await here.stage.post("preempt", victims))[0] == 500
    for verb in ("filter", "prioritize", "preempt", "bind"):
        assert (await here.stage.post(verb, b"[not json"))[0] == 400


def newer(pod: Object) -> Object:
    """Return *pod* in a version that our watch has not shown: in one that it has, the scheduler's copy is not read."""
    return {**pod, "metadata": {**pod["metadata"], "resourceVersion": f"{pod['metadata']['resourceVersion']}0"}}


async def test_w2_a_pod_of_a_scheduling_group_is_refused_with_its_own_reason(here: World) -> None:
    await devices(here, "a")
    await here.claim("c", here.request())
    pod = await here.pod("p", claims=("c",), schedulingGates=[{"name": "example.com/later"}])
    # This API server has no such field: it is what a later one would send.
    later = {**newer(pod), "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": "g"}}}
    status, text = await here.stage.post("filter", {"Pod": later, "Nodes": None, "NodeNames": [here.full("a")]})
    assert status == 200
    assert '"pods of a scheduling group are not supported"' in text
    assert '"NodeNames":[]' in text


async def test_w2_a_claim_entry_of_a_kind_that_is_not_known_is_refused(here: World) -> None:
    await devices(here, "a")
    pod = await here.pod("p", schedulingGates=[{"name": "example.com/later"}])
    later = {**newer(pod), "spec": {**pod["spec"], "resourceClaims": [{"name": "c", "resourceClaimOfTomorrow": "x"}]}}
    _, text = await here.stage.post("filter", {"Pod": later, "Nodes": None, "NodeNames": [here.full("a")]})
    assert '"the claim or its class says something that this version does not know"' in text


async def test_w2_a_feature_whose_gate_is_off_is_refused_and_not_left_out(here: World, control_plane: Plane) -> None:
    await here.device_class()
    await here.node("a")
    capacity = {"memory": {"value": "40Gi"}}
    await here.slice("a", [{"name": "gpu-0", "allowMultipleAllocations": True, "capacity": capacity}])
    await here.claim("c", here.request(capacity={"requests": {"memory": "10Gi"}}))
    pod = await here.pod("p", claims=("c",), schedulingGates=[{"name": "example.com/later"}])
    asked = {"Pod": pod, "Nodes": None, "NodeNames": [here.full("a")]}
    off = Settings(allocation=Allocation(features=Features(consumable_capacity=False)))
    async with served(control_plane, off) as older:
        status, text = await older.post("filter", asked)
    assert (status, '"NodeNames":[]' in text) == (200, True)
    assert '"the claim\'s request cannot be answered as it is written"' in text


async def test_a_pod_of_a_profile_that_we_do_not_serve_is_refused_devices_or_not(here: World) -> None:
    await devices(here, "a")
    await here.claim("c", here.request())
    for pod in (
        await here.pod("plain", schedulerName=UNSERVED),
        await here.pod("asking", claims=("c",), schedulerName=UNSERVED),
    ):
        await here.refused(pod, "the pod's scheduler is not served by this extender")


async def test_the_scheduler_has_its_say_where_a_pod_prefers_a_node_and_elsewhere_is_offered_the_best_alone(
    here: World,
) -> None:
    await devices(here, "a", "b", count=2)
    await here.template("one", here.request())
    pod = await here.pod("p", templates=("one",))
    assert await here.bound(pod) == "a"
    name = {"key": "metadata.name", "operator": "In", "values": [here.full("b")]}
    wish = {"weight": 100, "preference": {"matchFields": [name]}}
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    picky = await here.pod("q", templates=("one",), affinity=affinity)
    assert await here.bound(picky) == "b"
    assert [(await here.stage.decided(each))["offered"] for each in (pod, picky)] == [1, 2]


def cpus(count: int) -> list[Object]:
    return [{"name": "main", "image": "none", "resources": {"requests": {"cpu": str(count)}}}]
