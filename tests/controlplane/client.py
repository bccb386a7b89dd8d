"""The API as tests speak it: objects in, objects out."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp

Object = dict[str, Any]
Found = TypeVar("Found")

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
# How long a test waits for what should happen; what happens is waited for, not the time.
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What the API server answered."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def message(self) -> str:
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else str(self.body)


class RefusedError(Exception):
    """The API server did not do what a test relies on."""


class Client:
    """One user of an API server, within one event loop."""

    def __init__(self, url: str, token: str, authority: Path) -> None:
        self.url = url
        self._token = token
        self._authority = authority
        self._kinds: dict[str, dict[str, Object]] = {}

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(self._authority)))
        headers = {"Authorization": f"Bearer {self._token}"}
        timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
        self.session = aiohttp.ClientSession(self.url, connector=connector, headers=headers, timeout=timeout)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.close()
        # A stream that was left half-read is closed by callbacks, for which the loop has to turn.
        await asyncio.sleep(0.01)

    async def call(self, method: str, path: str, body: object = None, *, content: str = "", **query: str) -> Reply:
        """Call the API server; every answer is a value."""
        headers = {"Content-Type": content or "application/json"}
        data = None if body is None else json.dumps(body).encode()
        async with self.session.request(method, path, params=query, data=data, headers=headers) as response:
            text = await response.text()
            found = json.loads(text) if "json" in response.content_type else text
            return Reply(response.status, response.headers, found)

    async def must(self, method: str, path: str, body: object = None, *, content: str = "", **query: str) -> Any:
        """Call the API server and return the object that it answers; anything but success is an error of the test."""
        reply = await self.call(method, path, body, content=content, **query)
        if reply.status >= 300:
            raise RefusedError(f"{method} {path}: {reply.status} {reply.message}")
        return reply.body

    async def path(self, item: Object, *, name: bool = True) -> str:
        """Return the path of an object, or of its collection, by the API server's own discovery."""
        metadata = item.get("metadata", {})
        known = await self.kind(item["apiVersion"], item["kind"])
        space = f"/namespaces/{metadata.get('namespace', 'default')}" if known["namespaced"] else ""
        return f"{_root(item['apiVersion'])}{space}/{known['name']}" + (f"/{metadata['name']}" if name else "")

    async def kind(self, version: str, kind: str) -> Object:
        """Return what the API server says of a kind."""
        if version not in self._kinds:
            listed = (await self.must("GET", _root(version)))["resources"]
            self._kinds[version] = {each["kind"]: each for each in listed if "/" not in each["name"]}
        return self._kinds[version][kind]

    async def create(self, item: Object) -> Object:
        created: Object = await self.must("POST", await self.path(item, name=False), item)
        return created

    async def read(self, item: Object) -> Object:
        read: Object = await self.must("GET", await self.path(item))
        return read

    async def apply(self, item: Object) -> Reply:
        """Apply an object as `kubectl apply --server-side` does, with unknown fields refused."""
        query = {"fieldManager": "tests", "fieldValidation": "Strict", "force": "true"}
        return await self.call("PATCH", await self.path(item), item, content=APPLY, **query)

    async def patch(self, item: Object, change: Object, subresource: str = "", **query: str) -> Object:
        path = await self.path(item) + (f"/{subresource}" if subresource else "")
        patched: Object = await self.must("PATCH", path, change, content=MERGE, **query)
        return patched

    async def delete(self, item: Object) -> None:
        """Delete an object at once; one that is gone already is as good."""
        reply = await self.call("DELETE", await self.path(item), gracePeriodSeconds="0")
        if reply.status not in {200, 202, 404}:
            raise RefusedError(f"DELETE {item['kind']}: {reply.status} {reply.message}")

    async def delete_as_read(self, item: Object) -> None:
        """Delete an object as it was just read, again and again until nobody has changed it in between."""
        path = await self.path(item)
        while (read := await self.call("GET", path)).status == 200:
            only = {"preconditions": {"resourceVersion": read.body["metadata"]["resourceVersion"]}}
            reply = await self.call("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", **only})
            if reply.status != 409:
                break

    async def list(self, path: str) -> list[Object]:
        items: list[Object] = (await self.must("GET", path))["items"]
        return items


async def until(look: Callable[[], Awaitable[Found | None]], waiting_for: str = "") -> Found:
    """Look until there is something to see, and return it."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (found := await look()):  # noqa: ASYNC110 - what is waited for happens in another process
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise TimeoutError(f"waited {PATIENCE_SECONDS} s for {waiting_for or look}") from None
    return found


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"
