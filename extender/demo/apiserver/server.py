"""HTTP before the registry: an API server on a port of loopback."""

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, Final

import orjson
from aiohttp import web

from extender.demo.apiserver import discovery
from extender.demo.apiserver.failure import Failure, success
from extender.demo.apiserver.kinds import Json, kinds
from extender.demo.apiserver.lists import Lists
from extender.demo.apiserver.patch import apply_patch, json_patch, merge_patch
from extender.demo.apiserver.paths import Target, split, target_of
from extender.demo.apiserver.registry import Registry
from extender.demo.apiserver.review import REVIEWS, VERSION, reviewed
from extender.demo.apiserver.selection import Selection, selection_of
from extender.demo.apiserver.store import Store
from extender.demo.apiserver.watch import Watch

PATCHES: Final = {
    "application/json-patch+json": json_patch,
    "application/merge-patch+json": merge_patch,
    # What clients send as YAML is JSON here, which is YAML, too.
    "application/apply-patch+yaml": apply_patch,
}
WATCH_S: Final = 1800.0
BOOKMARK_S: Final = 60.0


class ApiServer:
    """An API server in memory. *store* and *registry* may be used beside it, within the same process."""

    def __init__(
        self,
        *,
        dra_version: str = "v1",
        has_rules: bool = True,
        token: str = "",
        bookmark_s: float = BOOKMARK_S,
        denied: Collection[str] = (),
    ) -> None:
        self.kinds = kinds(dra_version, has_rules=has_rules)
        self.store = Store()
        self.registry = Registry(self.store)
        self.lists = Lists(self.store)
        self.token = token
        self._denied = denied
        self.url = ""
        self._bookmark_s = bookmark_s
        self._runner: web.ServerRunner | None = None

    async def start(self, port: int = 0) -> str:
        """Listen on loopback, on a free port unless one is named, and return the URL."""
        self._runner = web.ServerRunner(web.Server(self._answer, access_log=None), shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self.url

    async def stop(self) -> None:
        """Close every connection; what is stored stays."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            self._authenticate(request)
            return self._discovery(request) or await self._review(request) or await self._act(request)
        except Failure as failure:
            return _reply(failure.status(), failure.code)

    def _authenticate(self, request: web.BaseRequest) -> None:
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            raise Failure(401, "Unauthorized")

    def _discovery(self, request: web.BaseRequest) -> web.Response | None:
        path = request.path.rstrip("/")
        if path == "/version":
            return _reply(VERSION)
        if path == "/apis":
            return _reply(discovery.groups(self.kinds.values()))
        group, version, rest = split(path)
        if rest:
            return None
        found = discovery.resources(self.kinds.values(), group, version)
        if found is None:
            raise Failure(404, "the server could not find the requested resource")
        return _reply(found)

    async def _review(self, request: web.BaseRequest) -> web.Response | None:
        if request.path != REVIEWS or request.method != "POST":
            return None
        return _reply(reviewed(_decoded(await request.read()) or {}, self._denied), 201)

    async def _act(self, request: web.BaseRequest) -> web.StreamResponse:
        target = target_of(request.path, self.kinds)
        body = await request.read()
        if request.method == "GET" and not target.name:
            return await self._collection(request, target)
        if request.method == "GET":
            return _reply(self.registry.get(target.kind, target.key))
        read = _decoded(body)
        if request.method == "POST":
            return self._post(target, read)
        if request.method == "DELETE" and target.name:
            return _reply(self.registry.delete(target.kind, target.key, read or {}))
        if request.method == "PUT" and target.name:
            return _reply(self._updated(request, target, lambda _old: read))
        if request.method == "PATCH" and target.name:
            patch = PATCHES.get(request.content_type)
            if patch is None:
                raise Failure(415, f"the body of the request was in an unknown format: {request.content_type}")
            return _reply(self._updated(request, target, lambda old: patch(old, read), is_patch=True))
        raise Failure(405, "the server does not allow this method on the requested resource")

    def _updated(
        self, request: web.BaseRequest, target: Target, change: Callable[[Json], Json], *, is_patch: bool = False
    ) -> Json:
        # Who says nothing is called what the program is called.
        named, _, _ = request.headers.get("User-Agent", "unknown").partition("/")
        manager = request.query.get("fieldManager") or named
        return self.registry.update(target.kind, target.key, target.part, change, is_patch=is_patch, manager=manager)

    def _post(self, target: Target, read: Any) -> web.Response:  # noqa: ANN401 - any JSON
        if not isinstance(read, dict):
            raise Failure(400, "the object provided is unrecognized")
        if target.part == "binding" and target.kind.name == "Pod":
            self.registry.bind(target.kind, target.key, read)
            return _reply(success(), 201)
        if target.name:
            raise Failure(405, "the server does not allow this method on the requested resource")
        return _reply(self.registry.create(target.kind, target.namespace, read), 201)

    async def _collection(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        query = request.query
        selection = selection_of(query.get("fieldSelector", ""), target.kind)
        if query.get("watch") in ("true", "1"):
            return await self._watch(request, target, selection)
        limit, token = int(query.get("limit") or 0), query.get("continue", "")
        return _reply(self.lists.page(target.kind, target.namespace, limit, token, selection))

    async def _watch(self, request: web.BaseRequest, target: Target, selection: Selection) -> web.StreamResponse:
        query = request.query
        revision = query.get("resourceVersion", "")
        watch = Watch(
            kind=target.kind,
            namespace=target.namespace,
            revision=int(revision) if revision not in ("", "0") else None,
            has_bookmarks=query.get("allowWatchBookmarks") in ("true", "1"),
            seconds=float(query.get("timeoutSeconds") or WATCH_S),
            bookmark_s=self._bookmark_s,
            selection=selection,
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        # A client that goes away has seen enough.
        with suppress(ConnectionError):
            async for lines in watch.lines(self.store):
                if lines:
                    await response.write(lines)
            await response.write_eof()
        return response


def _decoded(body: bytes) -> Any:  # noqa: ANN401 - any JSON
    try:
        return orjson.loads(body) if body else None
    except orjson.JSONDecodeError as error:
        raise Failure(400, f"the object provided is unrecognized: {error}") from error


def _reply(content: Json, code: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(content), status=code, content_type="application/json")
