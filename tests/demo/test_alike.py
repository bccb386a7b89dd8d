"""The stand-in scheduler and kube-scheduler itself, through the same day: an extender hears the same from both."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import orjson
import pytest
from aiohttp import web

from extender.demo.scheduler.extender import Extender
from extender.demo.scheduler.loop import Scheduler
from tests.controlplane.manifests import SCHEDULER
from tests.controlplane.plane import Plane
from tests.kube_objects import CLAIMS, NODES, PODS, claim, pod
from tests.servers import Cluster

Json = dict[str, Any]
Call = tuple[str, tuple[str, ...]]

NAME = "dra-scheduler"
MERGE = "application/merge-patch+json"
PATIENCE_S = 60
ALL = ("n0", "n1", "n2")
SCORED: list[Call] = [("filter", ALL), ("prioritize", ALL), ("bind", ("n1",))]


@dataclass
class Day:
    """An extender that answers as the test sets it, and remembers for each pod what it was asked."""

    cluster: Cluster
    fits: tuple[str, ...] = ALL
    is_for_one: bool = False
    bind_error: str = ""
    heard: dict[str, list[Call]] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        verb, read = request.path.strip("/"), orjson.loads(await request.read())
        name = read["PodName"] if verb == "bind" else read["Pod"]["metadata"]["name"]
        names = [read["Node"]] if verb == "bind" else sorted(read["NodeNames"])
        self.heard.setdefault(name, []).append((verb, tuple(names)))
        self.news.set()
        return web.json_response(await self.decide(verb, name, names))

    async def decide(self, verb: str, name: str, names: list[str]) -> object:
        if verb == "prioritize":
            return [{"Host": node, "Score": 10 if node == "n1" else 0} for node in names]
        if verb == "filter":
            fits = () if self.is_for_one and len(names) > 1 else self.fits
            failed = {node: "no devices" for node in names if node not in fits}
            fitting = [node for node in names if node in fits]
            return {"NodeNames": fitting, "FailedAndUnresolvableNodes": failed, "Error": ""}
        if self.bind_error:
            return {"Error": self.bind_error}
        binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": names[0]}}
        await self.cluster.create(f"{PODS}/{name}/binding", binding)
        return {"Error": ""}

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self.news.clear()
                await self.news.wait()

    async def add(self, name: str, **spec: object) -> None:
        await self.cluster.create(PODS, pod(name, schedulerName=NAME, **spec))

    async def change(self, name: str, change: Json, part: str = "") -> None:
        await self.cluster.do("PATCH", f"{PODS}/{name}{part}", change, MERGE)

    async def bound(self, name: str) -> list[Call]:
        """Wait until a pod was bound, and return what was asked about it, once each where it was asked again."""
        await self.until(lambda: self.heard.get(name, [("", ())])[-1][0] == "bind")
        return [call for call, _ in groupby(self.heard[name])]

    async def condition(self, name: str, reason: str) -> str:
        """Wait until a pod has no node for *reason*, and return what it says."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                status = (await self.cluster.do("GET", f"{PODS}/{name}"))["status"]
                for entry in status.get("conditions") or ():
                    if entry.get("reason") == reason:
                        return str(entry["message"])
                await asyncio.sleep(0.02)

    async def steer(self, name: str, node: str) -> None:
        """Have a pod nominated until it is bound: an attempt that is under way takes the nomination back."""
        async with asyncio.timeout(PATIENCE_S):
            while self.heard[name][-1][0] != "bind":
                status = (await self.cluster.do("GET", f"{PODS}/{name}"))["status"]
                if status.get("nominatedNodeName") != node:
                    await self.change(name, {"status": {"nominatedNodeName": node}}, "/status")
                await asyncio.sleep(0.02)


@asynccontextmanager
async def stand_in(day: Day, url: str) -> AsyncIterator[None]:
    assert day.cluster.embedded is not None
    extender = Extender(url)
    task = asyncio.create_task(Scheduler(day.cluster.embedded, extender, NAME, backoff_s=0.05).run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await extender.close()


@pytest.fixture
async def day(plane: Plane | None, api_server: Cluster) -> AsyncIterator[Day]:
    begun = Day(api_server)
    allocatable = {"cpu": "8", "memory": "8Gi", "pods": "100"}
    for name in ALL:
        status = {"allocatable": allocatable, "capacity": allocatable}
        await api_server.create(
            NODES, {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}, "status": status}
        )
    runner = web.ServerRunner(web.Server(begun.answer), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with AsyncExitStack() as stack:
        stack.push_async_callback(runner.cleanup)
        running = plane.scheduler(SCHEDULER, extender=url) if plane else stand_in(begun, url)
        await stack.enter_async_context(running)
        yield begun


async def test_an_extender_hears_the_same_from_both(day: Day) -> None:
    await scores(day)
    await waits_for_a_claim(day)
    await is_woken(day)
    await is_steered(day)
    await is_bound_again(day)


async def scores(day: Day) -> None:
    """The node with the best score is bound to; a single one is not scored."""
    await day.add("scored")
    assert await day.bound("scored") == SCORED
    day.fits = ("n2",)
    await day.add("single")
    assert await day.bound("single") == [("filter", ALL), ("bind", ("n2",))]
    day.fits = ALL


async def waits_for_a_claim(day: Day) -> None:
    """Nobody is asked about a pod before its claim is there."""
    await day.add("waiting", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
    await day.add("meanwhile")
    await day.bound("meanwhile")
    assert "waiting" not in day.heard
    await day.cluster.create(CLAIMS, claim("c"))
    assert await day.bound("waiting") == SCORED


async def is_woken(day: Day) -> None:
    """A rejected pod says why, and is woken by an annotation."""
    day.fits = ()
    await day.add("woken")
    said = await day.condition("woken", "Unschedulable")
    assert said.startswith("0/3 nodes are available: 3 no devices.")
    day.fits = ALL
    await day.change("woken", {"metadata": {"annotations": {"example.com/wake": "1"}}})
    assert await day.bound("woken") == SCORED


async def is_steered(day: Day) -> None:
    """A nominated node is tried alone."""
    day.fits = ()
    await day.add("steered")
    await day.condition("steered", "Unschedulable")
    # Whatever else wakes the pod, the condition itself among it, is in vain as well.
    day.fits, day.is_for_one = ("n2",), True
    await day.steer("steered", "n2")
    assert (await day.bound("steered"))[-2:] == [("filter", ("n2",)), ("bind", ("n2",))]
    day.is_for_one = False


async def is_bound_again(day: Day) -> None:
    """A bind that fails is told on the pod, and everything begins anew."""
    day.fits = ("n0",)
    day.bind_error = "waiting for conditions"
    await day.add("again")
    assert "waiting for conditions" in await day.condition("again", "SchedulerError")
    day.bind_error = ""
    await day.until(lambda: len(day.heard["again"]) > 3)
    assert day.heard["again"][:4] == [("filter", ALL), ("bind", ("n0",))] * 2
