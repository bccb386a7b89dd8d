"""An extender that decides nothing: nodes and devices by counting on, and the writes that ours makes."""

import argparse
import asyncio
import itertools
import json
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final
from uuid import uuid4

import aiohttp
import orjson
import yaml
from aiohttp import web

from extender.service.sending import FEWEST_BEFORE
from tests.controlplane.client import Object

DRIVER: Final = "gpu.example.com"
CLAIMS: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
PODS: Final = "/api/v1/namespaces/default/pods"
EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/default/events"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
EVENTS_PER_SECOND: Final = 20
WATCH_BUFFER: Final = 8 << 20


@dataclass(slots=True)
class Static:
    """Gives pod after pod the next devices of the next node."""

    session: aiohttp.ClientSession
    nodes: int
    count: int
    scheduler: str
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _places: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    # Pods that have a place and were not asked about yet.
    _ahead: set[str] = field(default_factory=set)
    _claims: dict[str, str] = field(default_factory=dict)
    _told: asyncio.Queue[tuple[str, str]] = field(default_factory=lambda: asyncio.Queue(1000))

    async def filter(self, request: web.Request) -> web.Response:
        asked = orjson.loads(await request.read())
        pod = asked["Pod"]
        node, _ = self._place(pod)
        self._ahead.discard(pod["metadata"]["uid"])
        return _answered({"NodeNames": [node], "FailedNodes": {}, "Error": ""})

    async def bind(self, request: web.Request) -> web.Response:
        order = orjson.loads(await request.read())
        claim, (node, devices) = self._claims[order["PodUID"]], self._places[order["PodUID"]]
        await self._patch(f"{CLAIMS}/{claim}/status", _allocation(order, node, devices), JSON_PATCH)
        await self._post(f"{PODS}/{order['PodName']}/binding", _binding(order))
        with suppress(asyncio.QueueFull):
            self._told.put_nowait((order["PodName"], order["PodUID"]))
        return _answered({"Error": ""})

    async def ahead(self) -> None:
        """Send pods to their nodes as soon as their claims are made."""
        listed = await self.session.get("/api/v1/pods", params={"limit": "1"})
        version = (await listed.json())["metadata"]["resourceVersion"]
        while True:
            # The API server ends the watch of a client that is slow: go on where it ended.
            version = await self._watched(version)

    async def _watched(self, version: str) -> str:
        selector = f"spec.nodeName=,spec.schedulerName={self.scheduler}"
        query = {"fieldSelector": selector, "watch": "1", "resourceVersion": version}
        async with self.session.get("/api/v1/pods", params=query, read_bufsize=WATCH_BUFFER) as stream:
            async for line in stream.content:
                told = orjson.loads(line)
                pod = told["object"]
                version = pod["metadata"]["resourceVersion"]
                if told["type"] == "MODIFIED" and pod["metadata"]["uid"] not in self._places:
                    asyncio.get_running_loop().create_task(self._nominate(pod))
        return version

    async def tell(self) -> None:
        """Write an event for each pod, so many a second."""
        while True:
            name, uid = await self._told.get()
            await self._post(EVENTS, _event(name, uid))
            await asyncio.sleep(1 / EVENTS_PER_SECOND)

    def _place(self, pod: Object) -> tuple[str, list[str]]:
        uid = pod["metadata"]["uid"]
        self._claims[uid] = pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        if uid not in self._places:
            number = next(self._numbers)
            first = number // self.nodes * self.count
            devices = [f"gpu-{index}" for index in range(first, first + self.count)]
            self._places[uid] = f"n{number % self.nodes:05d}", devices
        return self._places[uid]

    async def _nominate(self, pod: Object) -> None:
        if not pod["status"].get("resourceClaimStatuses"):
            return
        node, _ = self._place(pod)
        self._ahead.add(pod["metadata"]["uid"])
        # Ours leaves out the same.
        if len(self._ahead) <= FEWEST_BEFORE:
            return
        patch = {"status": {"nominatedNodeName": node}}
        await self._patch(f"{PODS}/{pod['metadata']['name']}/status", patch, MERGE_PATCH)

    async def _patch(self, path: str, patch: object, kind: str) -> None:
        headers = {"Content-Type": kind}
        async with self.session.patch(path, data=orjson.dumps(patch), headers=headers) as response:
            response.raise_for_status()
            await response.read()

    async def _post(self, path: str, what: object) -> None:
        headers = {"Content-Type": "application/json"}
        async with self.session.post(path, data=orjson.dumps(what), headers=headers) as response:
            response.raise_for_status()
            await response.read()


def _answered(what: object) -> web.Response:
    return web.Response(body=orjson.dumps(what), content_type="application/json")


async def _prioritize(request: web.Request) -> web.Response:
    asked = orjson.loads(await request.read())
    return _answered([{"Host": name, "Score": 10} for name in asked["NodeNames"]])


def _allocation(order: Object, node: str, devices: list[str]) -> object:
    results = [{"request": "gpu", "driver": DRIVER, "pool": node, "device": name} for name in devices]
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    allocation = {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": terms},
        "allocationTimestamp": _now(),
    }
    consumer = {"resource": "pods", "name": order["PodName"], "uid": order["PodUID"]}
    status = {"allocation": allocation, "reservedFor": [consumer]}
    return [{"op": "add", "path": "/status", "value": status}]


def _binding(order: Object) -> object:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": order["PodName"], "namespace": order["PodNamespace"], "uid": order["PodUID"]},
        "target": {"apiVersion": "v1", "kind": "Node", "name": order["Node"]},
    }


def _event(pod: str, uid: str) -> object:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{pod}.{uuid4().hex[:16]}", "namespace": "default"},
        "eventTime": datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "reportingController": "static",
        "reportingInstance": "static",
        "action": "Binding",
        "reason": "Placed",
        "note": "on the next node, with the next devices",
        "type": "Normal",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": pod, "namespace": "default", "uid": uid},
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


async def serve(arguments: argparse.Namespace) -> None:
    """Answer for ever."""
    with open(arguments.kubeconfig) as file:  # noqa: ASYNC230, PTH123 - once, at the start
        access = yaml.safe_load(file)
    cluster, token = access["clusters"][0]["cluster"], access["users"][0]["user"]["token"]
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=cluster["certificate-authority"]), limit=64)
    headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"}
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        cluster["server"], connector=connector, headers=headers, timeout=timeout
    ) as session:
        static = Static(session, arguments.nodes, arguments.count, arguments.scheduler)
        app = web.Application(client_max_size=64 << 20)
        app.add_routes([web.post("/filter", static.filter), web.post("/bind", static.bind)])
        app.add_routes([web.post("/prioritize", _prioritize)])
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", arguments.port).start()
        print(json.dumps("ready"), flush=True)
        await asyncio.gather(static.tell(), *([static.ahead()] if arguments.ahead else []))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--scheduler", default="dra-scheduler")
    parser.add_argument("--ahead", action="store_true")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
