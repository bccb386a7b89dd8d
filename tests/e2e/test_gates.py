"""Features of an API server. Where they are off it does not store all that it is sent, and does not tell of that."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from extender.allocation.features import GATES, features_by_default
from tests.controlplane.client import until
from tests.controlplane.plane import OPTIONS, Plane
from tests.e2e.test_conditions import attachable
from tests.e2e.world import World, impatient, staged, world_on


@asynccontextmanager
async def without(plane: Plane, *gates: str) -> AsyncIterator[World]:
    """Have the extender speak to an API server without *gates*; devices are published where they are on."""
    off = ",".join(f"{gate}=false" for gate in gates)
    async with (
        plane.second_server(gates=off) as (url, _process),
        staged(plane, changed=impatient, url=url) as stage,
        world_on(stage) as here,
    ):
        yield here


async def test_an_api_server_has_by_default_the_features_that_are_assumed(control_plane: Plane) -> None:
    async with control_plane.client() as admin:
        told = await admin.must("GET", "/metrics")
    found = dict(re.findall(r'^kubernetes_feature_enabled\{name="(DRA\w+)".*\} (\d)$', told, re.MULTILINE))
    minor, set_here = control_plane.minor, " ".join(OPTIONS.get(control_plane.minor, ()))
    assumed = features_by_default(int(minor.partition(".")[2]))
    gates = [gate for gate in GATES if gate in found and gate not in set_here]
    assert gates
    assert {gate: found[gate] == "1" for gate in gates} == {gate: getattr(assumed, GATES[gate]) for gate in gates}


async def test_a_pod_is_not_bound_where_conditions_of_its_device_are_not_kept(control_plane: Plane) -> None:
    async with without(control_plane, "DRADeviceBindingConditions") as here:
        await attachable(here, "a")
        claim = await here.claim("c", here.request())
        pod = await here.pod("p", claims=("c",))
        await here.refused(pod, "the feature DRADeviceBindingConditions is off")
        await here.notes(pod, "BindFailed")
        await here.until_asked(pod, 2)
        assert await here.unbound(pod)
        await here.freed(claim)
        assert len(await here.notes(pod, "BindFailed")) == 1


async def test_a_pod_is_not_bound_where_its_share_is_not_kept(control_plane: Plane) -> None:
    ranges = () if control_plane.minor == "1.36" else ("DRAFractionalCapacityRange",)
    async with without(control_plane, "DRAConsumableCapacity", *ranges) as here:
        await here.node("a")
        await here.device_class()
        await here.slice("a", [{"name": "gpu-0", "allowMultipleAllocations": True}])
        claim = await here.claim("c", here.request())
        pod = await here.pod("p", claims=("c",))
        await here.refused(pod, "the feature DRAConsumableCapacity is off")
        assert await here.unbound(pod)
        await here.freed(claim)


async def test_a_pod_is_not_bound_where_its_status_does_not_keep_its_claim(control_plane: Plane) -> None:
    if control_plane.minor != "1.36":
        pytest.skip("DRAExtendedResource cannot be off since Kubernetes 1.37")
    async with without(control_plane, "DRAExtendedResource") as here:
        await here.node("a")
        await here.device_class()
        await here.slice("a", [{"name": "gpu-0"}])
        resource = f"deviceclass.resource.kubernetes.io/{here.full('gpu')}"
        amounts = {"requests": {resource: "1"}, "limits": {resource: "1"}}
        pod = await here.pod("p", containers=[{"name": "main", "image": "none", "resources": amounts}])
        await here.refused(pod, "the feature DRAExtendedResource is off")
        assert await here.unbound(pod)
        await here.finish(pod)

        async def is_over() -> bool:
            return not await here.claims()

        await until(is_over, "the claims of the pod to go")
