"""The scheduling loop: one pod after another is filtered and scored, and bound while the next is looked at."""

import asyncio
import time
from contextlib import suppress
from typing import Final, NoReturn

from extender.demo.apiserver.failure import Failure
from extender.demo.apiserver.kinds import DRA, NODE, POD, Json
from extender.demo.apiserver.registry import now as timestamp
from extender.demo.apiserver.server import ApiServer
from extender.demo.apiserver.store import key_of
from extender.demo.scheduler.extender import Extender, Failed, Filtered
from extender.demo.scheduler.nodes import feasible, is_ready
from extender.demo.scheduler.queue import BACKOFF_S, Queue

UNSCHEDULABLE: Final = "Unschedulable"
ERROR: Final = "SchedulerError"


class Scheduler:
    """Schedules the pods that name it."""

    def __init__(self, server: ApiServer, extender: Extender, name: str, *, backoff_s: float = BACKOFF_S) -> None:
        self._server = server
        self._store = server.store
        self._claims = next(kind for path, kind in server.kinds.items() if path[::2] == (DRA, "resourceclaims"))
        self._classes = next(kind for path, kind in server.kinds.items() if path[::2] == (DRA, "deviceclasses"))
        self._extender = extender
        self._name = name
        self._queue = Queue(backoff_s)
        self._binding: dict[str, asyncio.Task[None]] = {}
        self._world: tuple[int, ...] = ()
        self._woken = asyncio.Event()

    async def run(self) -> NoReturn:
        """Schedule for ever."""
        self._woken = self._store.listen(POD, NODE, self._claims, self._classes)
        try:
            while True:
                self._woken.clear()
                self._look()
                uid = self._queue.next(time.monotonic())
                if uid is None:
                    await self._wait()
                else:
                    await self._cycle(uid)
        finally:
            self._store.leave(self._woken)
            for task in self._binding.values():
                task.cancel()

    async def _wait(self) -> None:
        until = self._queue.next_at()
        with suppress(TimeoutError):
            async with asyncio.timeout(None if until is None else max(0.0, until - time.monotonic())):
                await self._woken.wait()

    def _look(self) -> None:
        """See which pods wait, and whether anything happened that wakes all of them."""
        claims = {key_of(claim) for claim in self._store.each(self._claims)}
        self._queue.update((pod for pod in self._unbound() if is_ready(pod, claims)), time.monotonic())
        world = self._state()
        if world != self._world:
            self._world = world
            self._queue.wake_all()

    def _unbound(self) -> list[Json]:
        return [
            pod
            for pod in self._store.each(POD)
            if pod["spec"]["schedulerName"] == self._name
            and not pod["spec"].get("nodeName")
            and not pod["metadata"].get("deletionTimestamp")
            and pod["metadata"]["uid"] not in self._binding
        ]

    def _state(self) -> tuple[int, ...]:
        """Return what differs after anything that wakes pods: nodes, claims, classes and bound pods. Slices do not."""
        bound = frozenset(
            (pod["metadata"]["uid"], pod["status"].get("phase"))
            for pod in self._store.each(POD)
            if pod["spec"].get("nodeName")
        )
        return hash(bound), *(self._store.changed_at(kind) for kind in (NODE, self._claims, self._classes))

    async def _cycle(self, uid: str) -> None:
        pod = next((pod for pod in self._unbound() if pod["metadata"]["uid"] == uid), None)
        if pod is None:
            return
        filtered = await self._filter(pod)
        if isinstance(filtered, Filtered) and filtered.names:
            node = await self._choose(pod, filtered.names)
            bind = self._bind(pod, node)
            self._binding[uid] = asyncio.create_task(bind, name=f"bind {pod['metadata']['name']}")
        elif isinstance(filtered, Filtered):
            self._give_up(pod, UNSCHEDULABLE, summary(filtered.reasons))
        else:
            self._give_up(pod, ERROR, filtered.why)

    async def _filter(self, pod: Json) -> Filtered | Failed:
        """Try the nominated node alone first, then all."""
        names = feasible(pod, self._store.all(NODE))
        nominated = pod["status"].get("nominatedNodeName")
        if nominated in names:
            found = await self._extender.filter(pod, [nominated])
            if isinstance(found, Filtered) and found.names:
                return found
        return await self._extender.filter(pod, names) if names else Filtered((), ())

    async def _choose(self, pod: Json, names: tuple[str, ...]) -> str:
        """Return the node with the best score; a single node is not scored."""
        if len(names) == 1:
            return names[0]
        scores = await self._extender.prioritize(pod, names)
        return max(names, key=lambda name: scores.get(name, 0))

    async def _bind(self, pod: Json, node: str) -> None:
        try:
            failed = await self._extender.bind(pod, node)
        finally:
            del self._binding[pod["metadata"]["uid"]]
        if failed is None:
            self._queue.wake_all()
        else:
            self._look()
            self._give_up(pod, ERROR, failed.why)
        self._woken.set()

    def _give_up(self, pod: Json, reason: str, message: str) -> None:
        """Say on the pod why it has no node, and let it wait."""
        with suppress(Failure):
            self._server.registry.update(POD, key_of(pod), "status", lambda old: _with_condition(old, reason, message))
        self._queue.failed(pod["metadata"]["uid"], time.monotonic(), again=reason == ERROR)


def summary(reasons: tuple[str, ...]) -> str:
    """Say how many nodes there are for each reason, as kube-scheduler does."""
    counted = [f"{reasons.count(reason)} {reason}" for reason in sorted(set(reasons))]
    return f"0/{len(reasons)} nodes are available: {', '.join(counted)}."


def _with_condition(pod: Json, reason: str, message: str) -> Json:
    """Set the condition unless it says so already, which would wake the pod; a nomination is over."""
    said = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    conditions = pod["status"].get("conditions") or []
    if not any(said.items() <= entry.items() for entry in conditions):
        others = [entry for entry in conditions if entry.get("type") != "PodScheduled"]
        conditions = [*others, {**said, "lastTransitionTime": timestamp()}]
    status = {name: value for name, value in pod["status"].items() if name != "nominatedNodeName"}
    return {**pod, "status": {**status, "conditions": conditions} if conditions else status}
