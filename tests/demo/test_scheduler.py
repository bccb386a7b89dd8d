"""The stand-in for kube-scheduler calls an extender as kube-scheduler does."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
import pytest
from aiohttp import web

from extender.demo.apiserver.kinds import DRA, NODE, POD
from extender.demo.apiserver.server import ApiServer
from extender.demo.scheduler.extender import Extender
from extender.demo.scheduler.loop import Scheduler, summary
from extender.demo.scheduler.queue import Queue
from tests.kube_objects import claim, pod

Json = dict[str, Any]
NAME = "device-scheduler"
PATIENCE_S = 20


class Tried(NamedTuple):
    """What became of one attempt to schedule a pod: the *node* that it was bound to, or why it has none."""

    name: str
    node: str = ""
    reason: str = ""


@dataclass
class Stand:
    """A cluster with a scheduler, and an extender that answers as the test sets it; *calls* are its verbs and pods."""

    server: ApiServer
    calls: list[tuple[str, str, list[str]]] = field(default_factory=list)
    tried: list[Tried] = field(default_factory=list)
    fits: Callable[[list[str]], list[str]] = lambda names: names
    scores: dict[str, int] = field(default_factory=dict)
    error: dict[str, str] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        verb, read = request.path.strip("/"), orjson.loads(await request.read())
        name = read["PodName"] if verb == "bind" else read["Pod"]["metadata"]["name"]
        names = [read["Node"]] if verb == "bind" else read["NodeNames"]
        self.calls.append((verb, name, names))
        self.news.set()
        return web.json_response(self.decide(verb, name, names))

    def decide(self, verb: str, name: str, names: list[str]) -> object:
        if self.error.get(verb):
            return {"Error": self.error[verb]}
        if verb == "prioritize":
            return [{"Host": node, "Score": self.scores.get(node, 0)} for node in names]
        if verb == "bind":
            self.server.registry.bind(POD, ("default", name), {"target": {"name": names[0]}})
            return {"Error": ""}
        fitting = self.fits(names)
        failed = {node: "no devices" for node in names if node not in fitting}
        return {"NodeNames": fitting, "FailedAndUnresolvableNodes": failed, "Error": ""}

    def tell(self, tried: Tried) -> None:
        self.tried.append(tried)
        self.news.set()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self.news.clear()
                await self.news.wait()

    def add_pod(self, name: str, **spec: object) -> Json:
        return self.server.registry.create(POD, "default", pod(name, schedulerName=NAME, **spec))

    def change(self, name: str, part: str = "", **changed: Json) -> None:
        """Merge fields into parts of a pod."""

        def merged(old: Json) -> Json:
            return {**old, **{place: {**old[place], **more} for place, more in changed.items()}}

        self.server.registry.update(POD, ("default", name), part, merged)

    def filters(self) -> list[list[str]]:
        return [names for verb, _, names in self.calls if verb == "filter"]

    def bound_to(self, name: str) -> str:
        return str(self.server.registry.get(POD, ("default", name))["spec"].get("nodeName", ""))


class Watched(Scheduler):
    """Tells a stand of every attempt."""

    def __init__(self, stand: Stand, extender: Extender) -> None:
        super().__init__(stand.server, extender, NAME, backoff_s=0.01)
        self.stand = stand

    async def _bind(self, pod: Json, node: str) -> None:
        await super()._bind(pod, node)
        name = pod["metadata"]["name"]
        if self.stand.bound_to(name):
            self.stand.tell(Tried(name, node))

    def _give_up(self, pod: Json, reason: str, message: str) -> None:
        super()._give_up(pod, reason, message)
        self.stand.tell(Tried(pod["metadata"]["name"], reason=message))


@asynccontextmanager
async def standing(nodes: int = 3) -> AsyncIterator[Stand]:
    stand = Stand(ApiServer())
    for number in range(nodes):
        stand.server.registry.create(NODE, "", {"metadata": {"name": f"node-{number}"}})
    runner = web.ServerRunner(web.Server(stand.answer), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    extender = Extender(f"http://127.0.0.1:{runner.addresses[0][1]}/")
    task = asyncio.create_task(Watched(stand, extender).run())
    try:
        yield stand
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await extender.close()
        await runner.cleanup()


async def test_the_node_with_the_best_score_gets_the_pod() -> None:
    async with standing() as stand:
        stand.scores = {"node-1": 7, "node-2": 3}
        stand.add_pod("p")
        await stand.until(lambda: stand.tried)
        assert stand.bound_to("p") == "node-1"
    assert [verb for verb, _, _ in stand.calls] == ["filter", "prioritize", "bind"]
    assert (stand.tried[0].name, stand.tried[0].node) == ("p", "node-1")


async def test_a_single_node_is_not_scored() -> None:
    async with standing() as stand:
        stand.fits = lambda _names: ["node-2"]
        stand.add_pod("p")
        await stand.until(lambda: stand.tried)
        assert stand.bound_to("p") == "node-2"
    assert [verb for verb, _, _ in stand.calls] == ["filter", "bind"]


async def test_pods_of_other_schedulers_are_left_alone() -> None:
    async with standing() as stand:
        stand.server.registry.create(POD, "default", pod("other"))
        stand.add_pod("ours")
        await stand.until(lambda: stand.tried)
    assert {name for _, name, _ in stand.calls} == {"ours"}


async def test_nobody_is_asked_before_the_claim_is_there() -> None:
    async with standing() as stand:
        stand.add_pod("waits", resourceClaims=[{"name": "gpu", "resourceClaimName": "c"}])
        stand.add_pod("goes")
        await stand.until(lambda: stand.tried)
        assert {name for _, name, _ in stand.calls} == {"goes"}
        stand.server.registry.create(stand.server.kinds[DRA, "v1", "resourceclaims"], "default", claim("c"))
        await stand.until(lambda: len(stand.tried) == 2)
        assert stand.bound_to("waits")


async def test_a_rejected_pod_says_why_and_rests() -> None:
    async with standing() as stand:
        stand.fits = lambda _names: []
        stand.add_pod("p")
        # Its own new condition wakes it once; then the condition says the same, and it rests.
        await stand.until(lambda: len(stand.tried) == 2)
        [condition] = stand.server.registry.get(POD, ("default", "p"))["status"]["conditions"]
        assert (condition["reason"], condition["message"]) == (
            "Unschedulable",
            "0/3 nodes are available: 3 no devices.",
        )
        stand.add_pod("next")
        await stand.until(lambda: len(stand.tried) == 4)
    assert [tried.name for tried in stand.tried] == ["p", "p", "next", "next"]


async def rejected(stand: Stand) -> None:
    """Have a pod rejected, and at rest; then let everything fit."""
    stand.fits = lambda _names: []
    stand.add_pod("p")
    await stand.until(lambda: len(stand.tried) == 2)
    stand.fits = lambda names: names
    stand.calls.clear()


async def test_a_slice_wakes_nobody() -> None:
    async with standing() as stand:
        await rejected(stand)
        stand.server.registry.create(stand.server.kinds[DRA, "v1", "resourceslices"], "", {"metadata": {"name": "s"}})
        stand.server.registry.create(POD, "default", pod("other"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert stand.calls == []


async def test_an_annotation_wakes_the_pod() -> None:
    async with standing() as stand:
        await rejected(stand)
        stand.change("p", metadata={"annotations": {"a": "b"}})
        await stand.until(lambda: len(stand.tried) == 3)
        assert stand.bound_to("p")


async def test_a_nomination_wakes_the_pod_and_is_tried_alone() -> None:
    async with standing() as stand:
        await rejected(stand)
        stand.change("p", "status", status={"nominatedNodeName": "node-2"})
        await stand.until(lambda: len(stand.tried) == 3)
        assert stand.bound_to("p") == "node-2"
    assert stand.filters() == [["node-2"]]


async def test_a_nomination_that_does_not_fit_is_followed_by_all_nodes_and_cleared() -> None:
    async with standing() as stand:
        await rejected(stand)
        stand.fits = lambda _names: []
        stand.change("p", "status", status={"nominatedNodeName": "node-2"})
        await stand.until(lambda: len(stand.tried) >= 3)
        assert "nominatedNodeName" not in stand.server.registry.get(POD, ("default", "p"))["status"]
    assert stand.filters()[:2] == [["node-2"], ["node-0", "node-1", "node-2"]]


async def test_an_error_is_tried_again_after_the_back_off() -> None:
    async with standing() as stand:
        stand.error["filter"] = "not synced"
        stand.add_pod("p")
        await stand.until(lambda: len(stand.tried) > 2)
        assert stand.tried[0].reason == "not synced"
        stand.error.clear()
        await stand.until(lambda: stand.tried[-1].node)


async def test_a_bind_that_fails_is_tried_again_from_the_start() -> None:
    async with standing() as stand:
        stand.error["bind"] = "waiting for conditions"
        stand.add_pod("p")
        await stand.until(lambda: len(stand.tried) > 1)
        [condition] = stand.server.registry.get(POD, ("default", "p"))["status"]["conditions"]
        assert (condition["reason"], condition["message"]) == ("SchedulerError", "waiting for conditions")
        stand.error.clear()
        await stand.until(lambda: stand.tried[-1].node)


async def test_a_cordoned_node_and_one_without_the_labels_are_not_offered() -> None:
    async with standing(nodes=0) as stand:
        for name, spec, labels in [("a", {}, {"x": "y"}), ("b", {"unschedulable": True}, {"x": "y"}), ("c", {}, {})]:
            item = {"metadata": {"name": name, "labels": labels}, "spec": spec}
            stand.server.registry.create(NODE, "", item)
        stand.add_pod("p", nodeSelector={"x": "y"})
        await stand.until(lambda: stand.tried)
    assert stand.filters() == [["a"]]


def waiting(name: str, priority: int = 0) -> Json:
    return {"metadata": {"uid": name}, "spec": {"priority": priority}, "status": {}}


def test_priority_goes_before_age() -> None:
    queue = Queue()
    queue.update([waiting("old")], 1.0)
    queue.update([waiting("old"), waiting("new"), waiting("first", 5)], 2.0)
    assert queue.next(3.0) == "first"
    queue.update([waiting("old"), waiting("new")], 3.0)
    assert queue.next(3.0) == "old"


def test_a_woken_pod_still_waits_for_its_back_off() -> None:
    queue = Queue(backoff_s=10.0)
    queue.update([waiting("p")], 0.0)
    queue.failed("p", 1.0, again=False)
    assert (queue.next(2.0), queue.next_at()) == (None, None)
    queue.wake_all()
    assert (queue.next(2.0), queue.next_at()) == (None, 11.0)
    assert queue.next(11.0) == "p"


@pytest.mark.parametrize(
    ("reasons", "text"),
    [
        ((), "0/0 nodes are available: ."),
        (("b", "a", "b"), "0/3 nodes are available: 1 a, 2 b."),
    ],
)
def test_reasons_are_counted(reasons: tuple[str, ...], text: str) -> None:
    assert summary(reasons) == text
