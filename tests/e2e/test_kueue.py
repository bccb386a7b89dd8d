"""Of Kueue and pods that it holds back, lets go, and takes away for others."""

from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from tests.controlplane.client import Object, until
from tests.controlplane.plane import Plane
from tests.e2e.kueue import API, PROGRAM, kueueing, queue
from tests.e2e.world import World, world

pytestmark = [
    pytest.mark.skipif(not PROGRAM.is_file(), reason="KUEUE names no folder with the program in it"),
    pytest.mark.asyncio(loop_scope="module"),
]

NUMA = "resource.kubernetes.io/numaNode"
USED_UP = "insufficient unused quota for gpus"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def here(control_plane: Plane) -> AsyncIterator[World]:
    """Give a world with Kueue, and two nodes with four devices each, two on each NUMA node."""
    async with world(control_plane) as made:
        for name in ("a", "b"):
            await made.node(name)
            devices = [{"name": f"gpu-{index}", "attributes": {NUMA: {"int": index // 2}}} for index in range(4)]
            await made.slice(name, devices)
        await made.device_class(extendedResourceName=f"{made.name}.example.com/gpu")
        async with kueueing(made):
            await made.template("one", made.request())
            await made.template("all", made.request(count=4))
            await made.create(_by_policy(made))
            yield made


async def test_a_pod_that_is_held_back_gets_nothing_until_there_is_quota(here: World) -> None:
    async with queue(here, "held", quota=2) as queued:
        first, second = [await queued.pod(name, "one") for name in ("first", "second")]
        await here.bound(first)
        await here.bound(second)
        third = await queued.held_back(await queued.pod("third", "one"), USED_UP)
        claim = await here.claim_of(third)
        assert await here.devices(claim) == []
        assert not third["status"].get("nominatedNodeName")
        assert here.asked(third) == []
        await here.succeed(first)
        await here.bound(third)
        assert len(await here.devices(claim)) == 1


async def test_whom_kueue_takes_a_pod_away_for_gets_its_devices(here: World) -> None:
    await here.create(_priority(here.full("high")))
    async with queue(here, "taken", quota=8) as queued:
        low = [await queued.pod(name, "all") for name in ("low-1", "low-2")]
        assert {await here.bound(pod) for pod in low} == {"a", "b"}
        high = await queued.pod("high", "all", labels={"kueue.x-k8s.io/priority-class": here.full("high")})
        # Their kubelets end one of them, and no more.
        await here.finish(await until(partial(_taken, here, low), "a pod to be taken away"))
        assert await here.bound(high) in {"a", "b"}
        assert len(await here.devices(await here.claim_of(high))) == 4


async def test_kueue_counts_devices_that_must_be_close_by_policy_or_constraint(here: World) -> None:
    await here.template("constraint", here.request(count=2), constraints=[{"matchAttribute": NUMA}])
    async with queue(here, "close", quota=4) as queued:
        for name in ("policy", "constraint"):
            pod = await queued.pod(name, name)
            await here.bound(pod)
            devices = {each.rpartition("/")[2] for each in await here.devices(await here.claim_of(pod))}
            assert devices in ({"gpu-0", "gpu-1"}, {"gpu-2", "gpu-3"})
        await queued.held_back(await queued.pod("one-more", "one"), USED_UP)


async def test_kueue_lets_a_pod_go_whose_policy_nothing_fulfils_and_it_waits_within_the_quota(here: World) -> None:
    for numa in (0, 1):
        of_numa = f"device.attributes['resource.kubernetes.io'].numaNode == {numa}"
        await here.template(f"numa-{numa}", here.request(selectors=[{"cel": {"expression": of_numa}}]))
    async with queue(here, "apart", quota=8) as queued:
        # One device is left on each NUMA node.
        for node in ("a", "b"):
            for numa in (0, 1):
                taker = await queued.pod(f"{node}-{numa}", f"numa-{numa}", nodeSelector=here.on(node))
                assert await here.bound(taker) == node
        waits = await queued.pod("waits", "policy")
        await here.refused(waits, "no set of free devices is as the claim's placement policy wants it")
        within = [await queued.pod(f"within-{number}", "one") for number in range(2)]
        assert {await here.bound(pod) for pod in within} <= {"a", "b"}
        await queued.held_back(await queued.pod("beyond", "one"), USED_UP)


async def test_kueue_counts_devices_that_are_asked_for_as_an_extended_resource(here: World) -> None:
    async with queue(here, "extended", quota=2) as queued:
        amounts = {f"{here.name}.example.com/gpu": "2"}
        containers = [{"name": "main", "image": "none", "resources": {"requests": amounts, "limits": amounts}}]
        first = await queued.pod("extended-1", containers=containers)
        await here.bound(first)
        assert len(await here.devices(await here.hidden_claim_of(first))) == 2
        second = await queued.held_back(await queued.pod("extended-2", containers=containers), "insufficient")
        await here.succeed(first)
        await here.bound(second)


async def _taken(here: World, pods: list[Object]) -> Object | None:
    read = [await here.admin.read(pod) for pod in pods]
    return next((pod for pod in read if "deletionTimestamp" in pod["metadata"]), None)


def _priority(name: str) -> Object:
    return {"apiVersion": API, "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": 100}


def _by_policy(here: World) -> Object:
    metadata = {"annotations": {"dra-extender.x-k8s.io/policy": "one-numa"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": here.full("policy"), "namespace": here.namespace},
        "spec": {"metadata": metadata, "spec": {"devices": {"requests": [here.request(count=2)]}}},
    }
