"""The real kube-scheduler, run by the files that people apply, asks and obeys an extender as they say."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from tests.controlplane.client import Client, Object, until
from tests.controlplane.manifests import CONFIG, SCHEDULER
from tests.controlplane.objects import SCHEDULER as NAME
from tests.controlplane.objects import claim, device_class, node, pod
from tests.controlplane.plane import Plane, Scheduler

FEW = CONFIG / "few-device-nodes" / "scheduler.yaml"


class Echo:
    """An extender that lets every node pass, binds where it is told to, and remembers what it was asked."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.asked: list[tuple[str, Any]] = []

    def application(self) -> web.Application:
        application = web.Application()
        verbs = {"filter": self.filter, "prioritize": self.prioritize, "bind": self.bind}
        application.add_routes([web.post(f"/{verb}", handler) for verb, handler in verbs.items()])
        return application

    async def filter(self, request: web.Request) -> web.Response:
        return web.json_response({"NodeNames": (await self._noted("filter", request))["NodeNames"]})

    async def prioritize(self, request: web.Request) -> web.Response:
        names = (await self._noted("prioritize", request))["NodeNames"]
        return web.json_response([{"Host": name, "Score": int(name == max(names))} for name in names])

    async def bind(self, request: web.Request) -> web.Response:
        body = await self._noted("bind", request)
        metadata = {"name": body["PodName"], "namespace": body["PodNamespace"], "uid": body["PodUID"]}
        target = {"apiVersion": "v1", "kind": "Node", "name": body["Node"]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        path = f"/api/v1/namespaces/{body['PodNamespace']}/pods/{body['PodName']}/binding"
        reply = await self.client.call("POST", path, binding)
        return web.json_response({"Error": "" if reply.status == 201 else reply.message})

    async def _noted(self, verb: str, request: web.Request) -> Any:
        body = await request.json()
        self.asked.append((verb, body))
        return body


@pytest.fixture
async def extender(control_plane: Plane) -> AsyncIterator[Echo]:
    async with control_plane.client("extender") as client:
        yield Echo(client)


@pytest.fixture
async def address(extender: Echo) -> AsyncIterator[str]:
    """Serve the extender and return where."""
    runner = web.AppRunner(extender.application())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0]
    yield f"http://{host}:{port}"
    await runner.cleanup()


async def bound(admin: Client, name: str) -> str:
    """Return the node of a pod once it has one."""

    async def look() -> str | None:
        found: str | None = (await admin.read(pod(name)))["spec"].get("nodeName")
        return found

    return await until(look, f"{name} to be bound")


async def condition(admin: Client, name: str) -> Object:
    """Return what the scheduler says of a pod that it does not place."""

    async def look() -> Object | None:
        told = (await admin.read(pod(name))).get("status", {}).get("conditions", [])
        return next((each for each in told if each["type"] == "PodScheduled" and each.get("message")), None)

    return await until(look, f"a word about {name}")


def assert_rights_suffice(scheduler: Scheduler) -> None:
    """Nothing was refused to the scheduler's user."""
    lines = scheduler.log.read_text().splitlines()
    assert [line for line in lines if "forbidden" in line] == []


async def test_a_pod_is_filtered_scored_and_bound_by_the_extender(
    control_plane: Plane, admin: Client, extender: Echo, address: str
) -> None:
    for name in ("node-1", "node-2"):
        await admin.create(node(name))
    async with control_plane.scheduler(SCHEDULER, extender=address) as scheduler:
        await admin.create(pod("pod"))
        assert await bound(admin, "pod") == "node-2"
        assert_rights_suffice(scheduler)
    assert [verb for verb, _ in extender.asked] == ["filter", "prioritize", "bind"]
    assert sorted(extender.asked[0][1]["NodeNames"]) == ["node-1", "node-2"]
    assert extender.asked[0][1]["Nodes"] is None


async def test_a_pod_waits_for_its_claim_and_the_extender_is_not_asked_until_then(
    control_plane: Plane, admin: Client, extender: Echo, address: str
) -> None:
    for each in (node("node"), device_class(), pod("waiting", claims=["claim"])):
        await admin.create(each)
    async with control_plane.scheduler(SCHEDULER, extender=address) as scheduler:
        # One that waits for nothing, created later: when it is bound, the other was looked at.
        await admin.create(pod("plain"))
        await bound(admin, "plain")
        assert {body["Pod"]["metadata"]["name"] for verb, body in extender.asked if verb == "filter"} == {"plain"}
        await admin.create(claim("claim"))
        await bound(admin, "waiting")
        assert_rights_suffice(scheduler)


async def test_while_the_extender_cannot_be_reached_no_pod_is_bound(control_plane: Plane, admin: Client) -> None:
    await admin.create(node("node"))
    async with control_plane.scheduler(SCHEDULER, extender="http://127.0.0.1:9"):
        await admin.create(pod("pod"))
        told = await condition(admin, "pod")
    assert told["reason"] == "SchedulerError"
    assert "nodeName" not in (await admin.read(pod("pod")))["spec"]


async def test_pods_of_another_scheduler_are_left_alone(
    control_plane: Plane, admin: Client, extender: Echo, address: str
) -> None:
    await admin.create(node("node"))
    async with control_plane.scheduler(SCHEDULER, extender=address):
        await admin.create(pod("other", scheduler="default-scheduler"))
        await admin.create(pod("ours"))
        await bound(admin, "ours")
    assert {body["Pod"]["spec"]["schedulerName"] for verb, body in extender.asked if verb == "filter"} == {NAME}


async def test_with_few_device_nodes_only_these_are_offered(
    control_plane: Plane, admin: Client, extender: Echo, address: str
) -> None:
    marked = {"dra-extender.x-k8s.io/devices": "true"}
    for number in range(8):
        await admin.create(node(f"node-{number}", labels=marked if number in {2, 5} else None))
    async with control_plane.scheduler(FEW, extender=address) as scheduler:
        await admin.create(pod("pod"))
        assert await bound(admin, "pod") == "node-5"
        assert_rights_suffice(scheduler)
    assert sorted(extender.asked[0][1]["NodeNames"]) == ["node-2", "node-5"]


async def test_the_scheduler_leads_by_a_lease_of_its_own(control_plane: Plane, admin: Client, address: str) -> None:
    lease: Object = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "dra-scheduler", "namespace": "dra-extender"},
    }

    async def held() -> bool:
        return bool((await admin.read(lease))["spec"].get("holderIdentity"))

    async with control_plane.scheduler(SCHEDULER, extender=address):
        await until(held, "the scheduler to lead")
    assert not await held()
