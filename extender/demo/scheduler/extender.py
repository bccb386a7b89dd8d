"""The calls that kube-scheduler makes to an extender."""

from collections.abc import Sequence
from typing import Any, Final

import aiohttp
import orjson

from extender.demo.apiserver.kinds import Json
from extender.model.frozen import dataclass

SUCCESS: Final = 200
TIMEOUT_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class Failed:
    """A call that told nothing but an error, of the extender or on the way to it."""

    why: str


@dataclass(frozen=True, slots=True)
class Filtered:
    """The nodes that fit, and why others do not."""

    names: tuple[str, ...]
    reasons: tuple[str, ...]


class Extender:
    """An extender at *url*, called with names of nodes alone. Only a 200 counts; its body may still tell an error."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S), trust_env=False)

    async def close(self) -> None:
        await self._session.close()

    async def filter(self, pod: Json, names: Sequence[str]) -> Filtered | Failed:
        """Ask which of *names* fit *pod*."""
        read = await self._post("filter", {"Pod": pod, "Nodes": None, "NodeNames": list(names)})
        if isinstance(read, Failed):
            return read
        told = {**(read.get("FailedNodes") or {}), **(read.get("FailedAndUnresolvableNodes") or {})}
        fitting = tuple(read.get("NodeNames") or ())
        unknown = set(fitting).difference(names)
        if unknown:
            return Failed(f"extender returned a node that was not offered: {min(unknown)}")
        return Filtered(fitting, tuple(told.values()))

    async def prioritize(self, pod: Json, names: Sequence[str]) -> dict[str, int]:
        """Ask for scores; whoever does not answer has none."""
        read = await self._call("prioritize", {"Pod": pod, "Nodes": None, "NodeNames": list(names)})
        if not isinstance(read, list):
            return {}
        return {entry["Host"]: entry["Score"] for entry in read}

    async def bind(self, pod: Json, node: str) -> Failed | None:
        """Have *pod* bound to *node*; None means that it is."""
        metadata = pod["metadata"]
        names = {"PodName": metadata["name"], "PodNamespace": metadata["namespace"], "PodUID": metadata["uid"]}
        read = await self._post("bind", {**names, "Node": node})
        return read if isinstance(read, Failed) else None

    async def _post(self, verb: str, body: Json) -> Json | Failed:
        read = await self._call(verb, body)
        if isinstance(read, dict) and read.get("Error"):
            return Failed(str(read["Error"]))
        return read if isinstance(read, dict | Failed) else Failed(f"{verb}: no JSON object")

    async def _call(self, verb: str, body: Json) -> Any:  # noqa: ANN401 - any JSON
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session.post(f"{self._url}/{verb}", data=orjson.dumps(body), headers=headers) as response:
                content = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return Failed(f"{verb}: {type(error).__name__}: {error}")
        if response.status != SUCCESS:
            return Failed(f"failed {verb} with extender, code {response.status}")
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError as error:
            return Failed(f"{verb}: {error}")
