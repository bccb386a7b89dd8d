"""Of the cluster autoscaler and pods that we reject: it asks no extender, but a kube-scheduler of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from extender.config.settings import Ownership, Settings
from tests.controlplane.client import Object
from tests.controlplane.plane import Plane
from tests.e2e.autoscaler import NUMA, PROGRAM, autoscaled
from tests.e2e.world import World, staged, world_on

pytestmark = pytest.mark.skipif(not Path(PROGRAM).is_file(), reason="CLUSTER_AUTOSCALER names no program")

TAINT = "dra-extender.x-k8s.io/owned"


@pytest_asyncio.fixture
async def owned(control_plane: Plane) -> AsyncIterator[World]:
    """Give a world whose devices the owner taint keeps from everybody else, the autoscaler's simulation among them."""
    async with (
        staged(control_plane, Settings(ownership=Ownership(owner_taint=TAINT))) as stage,
        world_on(stage) as here,
    ):
        await here.device_class()
        await here.taint_rule(TAINT)
        await here.template("all", here.request(count=8))
        yield here


async def test_pods_that_lack_devices_bring_nodes_which_go_after_them(owned: World) -> None:
    async with autoscaled(owned, most=3) as autoscaler:
        pods = [await owned.pod(f"p{number}", templates=("all",)) for number in range(3)]
        homes = [await owned.bound(pod) for pod in pods]
        assert set(homes) == await autoscaler.nodes()
        for pod in pods[:2]:
            await owned.finish(pod)
        await autoscaler.only(homes[2])


async def test_of_devices_apart_a_constraint_brings_a_node_and_a_policy_none(owned: World) -> None:
    await owned.template("one", owned.request(selectors=[_of_numa(0)]), owned.request("other", selectors=[_of_numa(1)]))
    await owned.template("constraint", owned.request(count=4), constraints=[{"matchAttribute": NUMA}])
    await owned.create(_by_policy(owned, "one-numa"))
    async with autoscaled(owned, most=2) as autoscaler:
        # Three devices are left on each NUMA node.
        assert await owned.bound(await owned.pod("one-of-each", templates=("one",))) == "first"
        by_policy = await owned.pod("policy", templates=("policy",))
        await owned.refused(by_policy, "no set of free devices is as the claim's placement policy wants it")
        await autoscaler.rounds()
        assert await autoscaler.nodes() == {"first"}
        assert await owned.bound(await owned.pod("constraint", templates=("constraint",))) != "first"
        assert await owned.bound(by_policy) != "first"


def _of_numa(number: int) -> Object:
    return {"cel": {"expression": f"device.attributes['resource.kubernetes.io'].numaNode == {number}"}}


def _by_policy(here: World, policy: str) -> Object:
    metadata = {"annotations": {"dra-extender.x-k8s.io/policy": policy}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": here.full("policy"), "namespace": here.namespace},
        "spec": {"metadata": metadata, "spec": {"devices": {"requests": [here.request(count=4)]}}},
    }
