"""An extender that thinks of nothing: aiohttp as the extender has it, the same replies always, the same writes.

What is left of a call when all thought is taken out of it: reading a body, writing one, and for bind the two writes.
"""

import asyncio
import sys
from argparse import ArgumentParser
from itertools import count
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from extender.kube.access import Access, Fixed
from extender.kube.api import Api
from extender.kube.request import JSON, JSON_PATCH, Body
from extender.web.listener import Listener, ListenerLimits
from tests import fleet

Json = dict[str, Any]
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{PodNamespace}/resourceclaims/{PodName}-gpus/status"
BINDING = "/api/v1/namespaces/{PodNamespace}/pods/{PodName}/binding"


class Static:
    """Answers *names*, whoever asks."""

    def __init__(self, api: Api, names: list[str]) -> None:
        self.api = api
        told: Json = {
            "NodeNames": names,
            "Nodes": None,
            "FailedNodes": {},
            "FailedAndUnresolvableNodes": {},
            "Error": "",
        }
        scores = [{"Host": name, "Score": 10 - number % 11} for number, name in enumerate(names)]
        self.replies = {"/filter": orjson.dumps(told), "/prioritize": orjson.dumps(scores)}
        self.numbers = count()

    async def answer(self, request: web.BaseRequest, body: bytes) -> web.Response:
        reply = self.replies.get(request.path) or await self.bind(orjson.loads(body))
        return web.Response(body=reply, content_type=JSON)

    async def bind(self, asked: dict[str, str]) -> bytes:
        """Write what the extender writes, without a look at what is there."""
        device = f"gpu-{next(self.numbers) % 8}"
        result = {"request": "gpus", "driver": fleet.DRIVER, "pool": asked["Node"], "device": device}
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [asked["Node"]]}]}
        allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}}
        user = {"resource": "pods", "name": asked["PodName"], "uid": asked["PodUID"]}
        patch = [
            {"op": "add", "path": "/status/reservedFor", "value": [user]},
            {"op": "add", "path": "/status/allocation", "value": allocation},
        ]
        target = {"metadata": {}, "target": {"apiVersion": "v1", "kind": "Node", "name": asked["Node"]}}
        await self.api.call("PATCH", CLAIMS.format(**asked), body=Body(patch, JSON_PATCH))
        await self.api.call("POST", BINDING.format(**asked), body=Body(target))
        return b'{"Error":""}'


async def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--api", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--names", type=int, default=8)
    arguments = parser.parse_args()
    async with (
        aiohttp.ClientSession(trust_env=False) as session,
        session.get(f"{arguments.api}/load/names") as response,
    ):
        names = (await response.json())[: arguments.names]
    api = Api(Fixed(Access(server=arguments.api)))
    await Listener(Static(api, names).answer, ListenerLimits()).start("127.0.0.1", arguments.port)
    await asyncio.Event().wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
