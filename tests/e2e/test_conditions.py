"""Devices that a driver makes ready after they are allocated: binding waits, and gives up where that fails."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from extender.service.habits import Habits
from tests.controlplane.client import Object
from tests.controlplane.plane import Plane
from tests.e2e.test_obstacles import cpus
from tests.e2e.world import Stage, World, impatient, staged

pytestmark = pytest.mark.asyncio(loop_scope="module")

READY, BROKEN = "example.com/attached", "example.com/broken"
STAMP = "2026-01-01T00:00:00Z"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(control_plane: Plane) -> AsyncIterator[Stage]:
    async with staged(control_plane, changed=impatient) as made:
        yield made


async def attachable(here: World, *nodes: str) -> None:
    """Publish a device on each of *nodes* that is to be attached first."""
    await here.device_class()
    device = {"bindsToNode": True, "bindingConditions": [READY], "bindingFailureConditions": [BROKEN]}
    for node in nodes:
        await here.node(node)
        await here.slice(node, [{"name": "gpu-0", **device}])


async def report(here: World, claim: Object, condition: str) -> None:
    """Report *condition* for the devices of *claim*, as their driver does."""
    results = (await here.admin.read(claim))["status"]["allocation"]["devices"]["results"]
    true = {"type": condition, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": STAMP}
    devices = [{**{key: item[key] for key in ("driver", "pool", "device")}, "conditions": [true]} for item in results]
    await here.admin.patch(claim, {"status": {"devices": devices}}, "status")


async def test_a_pod_is_bound_once_its_conditions_are_met(here: World) -> None:
    await attachable(here, "a")
    claim = await here.claim("c", here.request())
    pod = await here.pod("p", claims=("c",))
    waiting = f"waiting for conditions: device {here.driver}/{here.full('a')}/gpu-0 is waiting for {READY}"
    await here.refused(pod, waiting)
    allocation = (await here.allocated(claim))["status"]["allocation"]
    assert allocation["devices"]["results"][0]["bindingConditions"] == [READY]
    assert allocation["allocationTimestamp"]
    await report(here, claim, READY)
    assert await here.bound(pod) == "a"
    after = await here.allocated(claim)
    assert after["status"]["allocation"] == allocation
    assert [item["name"] for item in after["status"]["reservedFor"]] == [pod["metadata"]["name"]]


async def test_while_conditions_are_waited_for_the_pod_is_offered_that_node_alone(here: World) -> None:
    await attachable(here, "a", "b")
    claim = await here.claim("c", here.request())
    pod = await here.pod("p", claims=("c",))
    await here.refused(pod, "waiting for conditions")
    (device,) = await here.devices(claim)
    seen = len(here.asked(pod))
    await here.until_asked(pod, seen + 1)
    assert await here.devices(claim) == [device]
    await report(here, claim, READY)
    assert await here.bound(pod) == device.partition("/")[0]


async def test_a_failed_condition_frees_the_device_and_the_pod_is_tried_elsewhere(here: World) -> None:
    await attachable(here, "a", "b")
    claim = await here.claim("c", here.request())
    pod = await here.pod("p", claims=("c",))
    await here.refused(pod, "waiting for conditions")
    (first,) = await here.devices(claim)
    await report(here, claim, BROKEN)
    other = {"a/gpu-0": "b/gpu-0", "b/gpu-0": "a/gpu-0"}[first]
    await here.when(claim, lambda read: here.holds(read, other), f"another device than {first}")
    await report(here, claim, READY)
    assert await here.bound(pod) == other.partition("/")[0]


async def test_a_condition_that_is_not_met_in_time_frees_the_device(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await attachable(here, "a", "b")
    claim = await here.claim("c", here.request())
    pod = await here.pod("p", claims=("c",))
    await here.refused(pod, "waiting for conditions")
    (first,) = await here.devices(claim)
    # From here on more than the ten minutes that a driver has are over.
    monkeypatch.setattr(here.service.answers.binds.binder, "clock", lambda: time.time() + 601)
    await here.notes(pod, "BindingConditionsFailed")
    monkeypatch.undo()
    other = {"a/gpu-0": "b/gpu-0", "b/gpu-0": "a/gpu-0"}[first]
    await here.when(claim, lambda read: here.holds(read, other), f"another device than {first}")
    await report(here, claim, READY)
    assert await here.bound(pod) == other.partition("/")[0]


async def test_nobody_goes_for_a_device_before_it_is_ready_and_it_is_kept_while_somebody_does(here: World) -> None:
    await attachable(here, "a")
    await here.node("b")
    await here.priority("high", 1000)
    claim = await here.claim("c", here.request())
    pod = await here.pod("p", claims=("c",), containers=cpus(20), priorityClassName=here.full("high"))
    await here.refused(pod, "waiting for conditions")
    # It takes the room between two tries. No kubelet ends it: it goes once it is deleted for good.
    low = await here.pod("low", containers=cpus(20), nodeSelector=here.on("a"), terminationGracePeriodSeconds=600)
    assert await here.bound(low) == "a"
    await here.refused(pod, "Insufficient cpu")
    for name in ("x", "y"):
        asked = len(here.asked(pod))
        await here.bound(await here.pod(name, containers=cpus(1), nodeSelector=here.on("b")))
        await here.until_asked(pod, asked + 1)
    assert not (await here.admin.read(low))["metadata"].get("deletionTimestamp")
    assert await here.devices(claim) == ["a/gpu-0"]
    await report(here, claim, READY)
    await here.when(low, lambda read: read["metadata"].get("deletionTimestamp"), "the other to be evicted")
    await here.slice("b", [{"name": "gpu-0"}])
    # So long that the device would be given up else.
    await asyncio.sleep(Habits().attempts + 2.0)
    assert await here.devices(claim) == ["a/gpu-0"]
    await here.admin.delete(low)
    assert await here.bound(pod) == "a"


async def test_a_pod_that_a_full_node_alone_keeps_from_its_device_is_tried_again_once_that_is_ready(
    here: World,
) -> None:
    await attachable(here, "a")
    await here.priority("high", 1000)
    claim = await here.claim("c", here.request())
    pod = await here.pod("p", claims=("c",), containers=cpus(20), priorityClassName=here.full("high"))
    await here.refused(pod, "waiting for conditions")
    # It takes the room between two tries, and nobody asks about the pod from then on.
    low = await here.pod("low", containers=cpus(20), nodeSelector=here.on("a"), terminationGracePeriodSeconds=0)
    assert await here.bound(low) == "a"
    await here.refused(pod, "Insufficient cpu")
    await asyncio.sleep(2.0)
    assert await here.bound(low) == "a"
    await report(here, claim, READY)
    await here.gone(low)
    assert await here.bound(pod) == "a"
