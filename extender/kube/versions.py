"""Which version of each resource the API server has."""

from extender.kube.answer import Answer
from extender.kube.api import Api
from extender.kube.pace import Backoff, Pace
from extender.kube.resource import CORE, Resource, Served
from extender.kube.setback import Setback, setback_of
from extender.kube.told import Sink, Trouble

NOT_FOUND = 404


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

    def forget(self, resource: Resource) -> None:
        """Ask again at the next ``find``: the version that was found is gone, or may have come."""
        self._found.pop(resource.name, None)

    async def _discover(self, resource: Resource) -> Served | Setback | None:
        if resource.group == CORE:
            return Served(resource, "v1")
        for version in resource.versions:
            served = await self._serves(resource, version)
            if isinstance(served, Setback):
                return served
            if served:
                return Served(resource, version)
        return None

    async def _serves(self, resource: Resource, version: str) -> bool | Setback:
        reply = await self._api.call("GET", f"/apis/{resource.group}/{version}")
        if isinstance(reply, Answer) and reply.status == NOT_FOUND:
            return False
        read = reply.json() if isinstance(reply, Answer) and reply.is_success else None
        listed = read.get("resources") if read else None
        if not isinstance(listed, list):
            return setback_of(reply)
        return any(isinstance(entry, dict) and entry.get("name") == resource.name for entry in listed)
