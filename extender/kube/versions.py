"""Which version of each resource the API server has."""

from collections.abc import Iterator

from extender.kube.answer import Answer, Json
from extender.kube.api import Api
from extender.kube.pace import Backoff, Pace
from extender.kube.resource import CORE, Resource, Served
from extender.kube.rights import minor_of
from extender.kube.setback import Setback, setback_of
from extender.kube.told import Sink, Trouble


class Versions:
    """What discovery has found. Shared by follows and writes; asked again where an answer is missing or outdated."""

    def __init__(self, api: Api, pace: Pace, sink: Sink) -> None:
        self._api = api
        self._pace = pace
        self._sink = sink
        self._found: dict[str, Served | None] = {}

    async def find(self, resource: Resource) -> Served | None:
        """Return *resource* as it is served, None where it is not; ask until the API server says which."""
        backoff = Backoff(self._pace)
        while resource.name not in self._found:
            found = await self._discover(resource)
            if isinstance(found, Setback):
                self._sink(Trouble(resource, f"discovery: {found.why}", self._pace.now()))
                await backoff.wait(found.pause_s)
            else:
                self._found[resource.name] = found
        return self._found[resource.name]

    def known(self, resource: Resource) -> Served:
        """Return *resource* as it was found, or in the version that we prefer as long as it was not."""
        return self._found.get(resource.name) or Served(resource, resource.versions[0])

    async def minor(self) -> int:
        """Return the API server's minor version; ask until it says which."""
        backoff = Backoff(self._pace)
        while (found := await minor_of(self._api)) is None:
            await backoff.wait()
        return found

    def forget(self, resource: Resource) -> None:
        """Ask again at the next ``find``: the version that was found is gone, or may have come."""
        self._found.pop(resource.name, None)

    async def _discover(self, resource: Resource) -> Served | Setback | None:
        """Look for *resource*. That it is not served is believed only where lists say so that leave it out.

        A 404 proves nothing: somebody between us and the API server may have sent it, and what is not served is told
        as an empty list.
        """
        if resource.group == CORE:
            return Served(resource, "v1")
        groups = await self._read("/apis", "groups")
        if isinstance(groups, Setback):
            return groups
        offered = {version for group in groups if group.get("name") == resource.group for version in _versions(group)}
        for version in (version for version in resource.versions if version in offered):
            listed = await self._read(f"/apis/{resource.group}/{version}", "resources")
            if isinstance(listed, Setback):
                return listed
            if any(entry.get("name") == resource.name for entry in listed):
                return Served(resource, version)
        return None

    async def _read(self, path: str, field: str) -> list[Json] | Setback:
        """Return the objects that are listed in *field* of what is at *path*."""
        reply = await self._api.call("GET", path)
        read = reply.json() if isinstance(reply, Answer) and reply.is_success else None
        listed = read.get(field) if read else None
        if not isinstance(listed, list):
            return setback_of(reply)
        return [entry for entry in listed if isinstance(entry, dict)]


def _versions(group: Json) -> Iterator[object]:
    for entry in group.get("versions") or ():
        if isinstance(entry, dict):
            yield entry.get("version")
