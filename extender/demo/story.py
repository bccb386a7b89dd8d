"""The demonstration: pods arrive, each decision is told in a line, some end and others wake."""

import asyncio
from collections.abc import Callable
from itertools import cycle, islice
from time import perf_counter

from extender.demo.cluster import ARRIVALS, HOPELESS, NAMESPACE, PLACES, objects, pod
from extender.kube.answer import Json, Unanswered
from extender.kube.api import Api
from extender.kube.request import Body
from extender.scheduling.decision import Decided, Decision
from extender.service.parts import Service

Tell = Callable[[str], None]
PATIENCE_S = 30.0
WORDS = {
    Decided.BOUND: "bound",
    Decided.REJECTED: "waits",
    Decided.WAITING: "waits",
    Decided.FAILED: "failed",
    Decided.OFFERED: "offered",
}


class Story:
    """A demonstration on a cluster behind *api* that *service* serves."""

    def __init__(self, api: Api, service: Service, tell: Tell) -> None:
        self._api, self._service, self._tell = api, service, tell
        self._news = asyncio.Event()
        self._placed: set[str] = set()
        self._said: dict[str, str] = {}
        self._began = perf_counter()
        service.journal.heard = self._heard

    async def furnish(self, nodes: int) -> None:
        """Create nodes, devices, classes and templates."""
        for item in objects(nodes):
            await self._create(item)
        self._tell(f"{nodes} nodes, {8 * nodes} GPUs")

    async def play(self, pods: int, pause_s: float) -> int:
        """Let pods arrive, then end half of those that run; return how many were placed."""
        names = []
        for number, template in enumerate(islice(cycle(ARRIVALS), pods)):
            names.append(f"{template}-{number}")
            await self._create(pod(names[-1], template))
            await asyncio.sleep(pause_s)
        await self._until(lambda: all(name in self._said for name in names))
        ended = [name for name in names if name in self._placed][: pods // 2]
        self._tell(f"{len(ended)} pods end; whoever fits now is woken")
        for name in ended:
            await self._do("DELETE", f"{PLACES['Pod']}/{name}", {"gracePeriodSeconds": 0})
        waiting = {name for name in names if not name.startswith(HOPELESS)}
        await self._until(lambda: waiting <= self._placed)
        # What is decided until everything has stopped is no part of it.
        self._service.journal.heard = lambda _decision: None
        return len(self._placed)

    async def _create(self, item: Json) -> None:
        await self._do("POST", PLACES[item["kind"]], item)

    async def _do(self, method: str, path: str, body: Json) -> None:
        answer = await self._api.call(method, path, body=Body(body))
        if isinstance(answer, Unanswered) or not answer.is_success:
            raise RuntimeError(f"{method} {path}: {answer}")

    async def _until(self, is_so: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not is_so():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            self._tell("(not all pods that wait fit, even now)")

    def _heard(self, decision: Decision) -> None:
        """Tell a decision, unless it was told before."""
        name = decision.pod.name
        if decision.pod.namespace != NAMESPACE or decision.outcome is Decided.OFFERED:
            return
        if decision.outcome is Decided.BOUND:
            self._placed.add(name)
        key = f"{decision.outcome} {decision.reason} {decision.node}"
        if self._said.get(name) != key:
            self._said[name] = key
            text = f"{WORDS[decision.outcome]:<6} {name:<22} {line(decision)}"
            self._tell(f"{perf_counter() - self._began:6.2f} s  {text}")
        self._news.set()


def line(decision: Decision) -> str:
    """Tell a decision in a line: devices without what they have in common, and of reasons only the nearest miss."""
    if decision.outcome is not Decided.BOUND:
        return decision.detail or decision.reason
    requests = dict.fromkeys(item.request for item in decision.given)
    parts = (
        f"{request}: {' '.join(item.device.device for item in decision.given if item.request == request)}"
        for request in requests
    )
    score = next((item for item in decision.best if item.node == decision.node), None)
    beside = f" ({score.words})" if score and score.words else ""
    return f"on {decision.node}  {', '.join(parts)}{beside}"
