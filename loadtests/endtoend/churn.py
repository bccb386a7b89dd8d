"""Pods that come and go, whatever becomes of the API server."""

import asyncio
import json
import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from tests.controlplane.client import Object, RefusedError
from tests.faults import cluster
from tests.faults.scene import Scene
from tests.invariants.reading import name

PENDING: Final = 100
AWAY_S: Final = 0.5
AWAY: Final = (OSError, TimeoutError, RefusedError, aiohttp.ClientError, asyncio.IncompleteReadError)


@dataclass(slots=True)
class Churn:
    """Pods of every shape."""

    here: Scene
    chance: random.Random
    created: int = 0
    ended: int = 0
    alive: dict[str, Object] = field(default_factory=dict)

    @property
    def bound(self) -> list[Object]:
        return [pod for pod in self.alive.values() if pod["spec"].get("nodeName")]

    async def turn(self, goal: int) -> None:
        """Create pods as long as few wait, and end some as soon as many do, or when there are very many."""
        bound = self.bound
        waiting = len(self.alive) - len(bound)
        if waiting < PENDING and self.created < goal:
            await self._created(min(PENDING - waiting, goal - self.created, 40))
        room = len(self.here.nodes) * self.here.gpus
        # To and fro between a cluster with room and one that is full, so that pods wait for devices, too.
        most = room * (0.6 if self.created // 500 % 2 else 1.2)
        over = int(len(bound) - most) if waiting < PENDING else len(bound) // 10
        if over > 0:
            await self._ended(self.chance.sample(bound, min(over, len(bound))))

    async def _created(self, count: int) -> None:
        made: list[Object] = []
        while sum(item["kind"] == "Pod" for item in made) < count:
            made += cluster.work(f"s{next(cluster.NAMES):06d}", self.chance.choice(cluster.MIX))
        for kind in ("ResourceClaim", "Pod"):
            await asyncio.gather(*(self.surely("POST", item) for item in made if item["kind"] == kind))
        self.created += sum(item["kind"] == "Pod" for item in made)

    async def _ended(self, pods: list[Object]) -> None:
        """Let some succeed and be deleted later, and delete the others."""
        gone = [pod for pod in pods if pod["status"]["phase"] == "Succeeded" or self.chance.random() < 0.9]
        for pod in pods:
            if pod not in gone:
                with suppress(*AWAY):
                    await self.here.admin.patch(
                        {**pod, "apiVersion": "v1", "kind": "Pod"}, {"status": {"phase": "Succeeded"}}, "status"
                    )
        for pod in gone:
            self.alive.pop(name(pod), None)
        self.ended += len(gone)
        await asyncio.gather(*(self.surely("DELETE", {**pod, "apiVersion": "v1", "kind": "Pod"}) for pod in gone))

    async def surely(self, method: str, item: Object) -> None:
        """Create or delete, however long the API server is away."""
        while True:
            with suppress(OSError, TimeoutError, aiohttp.ClientError):
                if method == "DELETE":
                    reply = await self.here.admin.call(
                        "DELETE", await self.here.admin.path(item), gracePeriodSeconds="0"
                    )
                else:
                    reply = await self.here.admin.call("POST", await self.here.admin.path(item, name=False), item)
                if reply.status in {200, 201, 202, 404, 409}:
                    break
            await asyncio.sleep(AWAY_S)
        if method == "POST" and item["kind"] == "Pod":
            self.alive.setdefault(f"default/{item['metadata']['name']}", item | {"status": {"phase": "Pending"}})

    async def follow(self) -> None:
        """Know which pods there are, whatever becomes of the API server."""
        while True:
            with suppress(*AWAY):
                listed = await self.here.admin.must("GET", "/api/v1/pods")
                self.alive = {name(pod): pod for pod in listed["items"]}
                await self._watch(listed["metadata"]["resourceVersion"])
            await asyncio.sleep(AWAY_S)

    async def _watch(self, version: str) -> None:
        query = {"watch": "1", "resourceVersion": version}
        session = self.here.admin.session
        async with session.get("/api/v1/pods", params=query, read_bufsize=2**22, timeout=None) as stream:
            async for line in stream.content:
                event = json.loads(line)
                pod = event["object"]
                if event["type"] == "DELETED":
                    self.alive.pop(name(pod), None)
                elif "metadata" in pod and event["type"] != "ERROR":
                    self.alive[name(pod)] = pod
                else:
                    return
