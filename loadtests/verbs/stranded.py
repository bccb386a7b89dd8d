"""Pods rejected though they fit: 95 % of the devices in use, and kube-scheduler offers a window of the nodes.

5,000 nodes of 8 devices, of which 250 nodes in a row are free: nine of ten windows of 500 have none of them. What
kube-scheduler does is played here: a window after the other, and a nominated node alone. A pod that was rejected is not
asked about again before the extender nominates a node for it, as on a cluster where nothing else happens.
"""

import asyncio
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import nan
from statistics import median
from typing import Any

import aiohttp
import orjson

from extender.scheduling.vocabulary import TEXTS, Word
from loadtests.bench.report import Report
from loadtests.endtoend.metrics import counted, scraped
from loadtests.load.bodies import window
from loadtests.verbs.stand import stand
from loadtests.verbs.world import Size

Json = dict[str, Any]
SIZE = Size(nodes=5000, devices=8, claims=19_000, is_full=True)
WINDOW = 500
SHAPES = "one,four"
NOT_THERE = "there is no claim"
# How long nothing may happen until the rest is given up.
PATIENCE_S = 20


@dataclass(slots=True)
class Play:
    """What kube-scheduler does, and what came of it."""

    session: aiohttp.ClientSession
    api: str
    extender: str
    nodes: Sequence[str]
    turns: int = 0
    calls: int = 0
    bound: int = 0
    steered: list[float] = field(default_factory=list)
    since: dict[str, float] = field(default_factory=dict)

    async def run(self, pods: list[Json]) -> list[Json]:
        """Try every pod in its window, then those that are nominated; return the pods that are left."""
        left = [pod for pod in pods if not await self._tried(pod, self._window())]
        for pod in left:
            self.since[pod["metadata"]["uid"]] = time.monotonic()
        last = time.monotonic()
        while left and time.monotonic() - last < PATIENCE_S:
            found = len(left)
            left = [pod for pod in left if not await self._nominated(pod)]
            if len(left) < found:
                last = time.monotonic()
            else:
                await asyncio.sleep(0.02)
        return left

    def _window(self) -> list[str]:
        self.turns += 1
        return window(self.nodes, self.turns, WINDOW)

    async def _nominated(self, pod: Json) -> bool:
        """Try a pod on its nominated node, and where that is refused on a window, as kube-scheduler does."""
        metadata = pod["metadata"]
        path = f"{self.api}/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        async with self.session.get(path) as reply:
            seen = orjson.loads(await reply.read())
        node = seen["status"].get("nominatedNodeName")
        if not node or seen["metadata"]["resourceVersion"] == metadata["resourceVersion"]:
            return False
        metadata["resourceVersion"] = seen["metadata"]["resourceVersion"]
        if not (await self._tried(pod, [node]) or await self._tried(pod, self._window())):
            return False
        self.steered.append(time.monotonic() - self.since[metadata["uid"]])
        return True

    async def _tried(self, pod: Json, names: list[str]) -> bool:
        told = await self._asked("filter", {"Pod": pod, "Nodes": None, "NodeNames": names})
        if told["Error"].startswith(NOT_THERE):
            await asyncio.sleep(0.01)
            return await self._tried(pod, names)
        self.calls += 1
        if not told["NodeNames"]:
            self._understood(told)
            return False
        metadata = pod["metadata"]
        asked = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
        bound = await self._asked("bind", {**asked, "Node": told["NodeNames"][0]})
        if bound["Error"]:
            raise RuntimeError(bound["Error"])
        self.bound += 1
        return True

    def _understood(self, told: Json) -> None:
        """See that it was rejected for the nodes that it was not offered, and nothing else."""
        texts = {*(told["FailedNodes"] or {}).values(), *(told["FailedAndUnresolvableNodes"] or {}).values()}
        if told["Error"] or texts != {TEXTS[Word.NOT_OFFERED]}:
            raise RuntimeError(told["Error"] or str(texts))

    async def _asked(self, verb: str, question: Json) -> Json:
        async with self.session.post(f"{self.extender}/{verb}", data=orjson.dumps(question)) as reply:
            told: Json = orjson.loads(await reply.read())
            return told


async def played(api: str, extender: str, count: int, at_once: int) -> tuple[Play, list[Json]]:
    """Have *count* pods scheduled, *at_once* of them at a time."""
    async with aiohttp.ClientSession(trust_env=False) as session:
        async with session.get(f"{api}/load/names") as reply:
            nodes = await reply.json()
        play, left = Play(session, api, extender, nodes), list[Json]()
        for _ in range(0, count, at_once):
            async with session.get(f"{api}/load/pods?count={at_once}&shapes={SHAPES}") as reply:
                pods = orjson.loads(await reply.read())
            left += await play.run(pods)
        return play, left


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--pods", type=int, default=200)
    arguments = parser.parse_args()
    report = Report("stranded")
    for at_once in (1, arguments.pods):
        with stand(SIZE) as here, here.extender() as ours:
            play, left = asyncio.run(played(here.url, ours.url, arguments.pods, at_once))
            text = asyncio.run(scraped(ours.probes))
        what = "one by one" if at_once == 1 else "all at once"
        tell(report, f"{arguments.pods} pods, {what}", play, len(left))
        nominated = counted(text, "dra_extender_wakes_total", way="nomination")
        report.add(f"{arguments.pods} pods, {what}: nominations", f"{nominated:.0f}")
    report.keep()


def tell(report: Report, what: str, play: Play, left: int) -> None:
    beside = f"windows of {WINDOW} of {SIZE.nodes:,} nodes, 95 % of the devices in use"
    report.add(f"{what}: rejected at first though some node fits", str(len(play.since)), "", beside)
    report.add(f"{what}: of these steered and bound", str(len(play.steered)))
    report.add(f"{what}: left, rejected though some node fits", str(left), "0")
    spent = play.steered or [nan]
    beside = f"longest {max(spent):.2f}; 50 pods a second are woken at most"
    report.add(f"{what}: from rejected to bound, s", f"{median(spent):.2f}", "", beside)
    report.add(f"{what}: filter calls", str(play.calls))


if __name__ == "__main__":
    main()
