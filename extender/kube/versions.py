"""Which version of each resource the API server has."""

from collections.abc import Iterator
from typing import Final

from extender.kube.answer import Answer, Json
from extender.kube.api import Api
from extender.kube.pace import Backoff, Pace
from extender.kube.resource import CORE, Resource, Served
from extender.kube.setback import Setback, setback_of
from extender.kube.told import Sink, Trouble
from extender.model.frozen import dataclass

# While a control plane is upgraded, behind one address some API servers have a resource and others do not. What was
# served is gone only where it is missed so often, for so long: until then what we know of it counts, as it grows old.
GONE_TIMES: Final = 3
GONE_S: Final = 300.0
MISSED_PAUSE_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class _Absent:
    """In no version that we read. *is_plain*: each of them has something else, or is not there at all."""

    is_plain: bool


@dataclass(slots=True)
class _Missed:
    """How often a resource was absent, and since when."""

    since: float
    times: int = 0


class Versions:
    """What discovery has found. Shared by follows and writes; asked again where an answer is missing or outdated."""

    def __init__(self, api: Api, pace: Pace, sink: Sink) -> None:
        self._api = api
        self._pace = pace
        self._sink = sink
        self._found: dict[str, Served | None] = {}
        self._served: dict[str, Served] = {}
        self._missed: dict[str, _Missed] = {}

    async def find(self, resource: Resource) -> Served | None:
        """Return *resource* as it is served, None where it is not; ask until the API server says which.

        What was served before is asked for again and again until it is there, or has been absent for long.
        """
        backoff = Backoff(self._pace)
        while resource.name not in self._found:
            looked = await self._discover(resource)
            if resource.name in self._found:  # by another who has asked meanwhile
                break
            found = self._judged(resource, looked)
            if isinstance(found, Setback):
                is_absent = isinstance(looked, _Absent) and resource.name in self._served
                self._sink(Trouble(resource, f"discovery: {found.why}", is_absent=is_absent))
                await backoff.wait(found.pause_s)
            else:
                self._found[resource.name] = found
        return self._found[resource.name]

    def known(self, resource: Resource) -> Served:
        """Return *resource* as it was found last, or in the version that we prefer as long as it was not."""
        return self._served.get(resource.name) or Served(resource, resource.versions[0])

    def forget(self, resource: Resource) -> None:
        """Ask again at the next ``find``: the version that was found is gone, or may have come."""
        self._found.pop(resource.name, None)

    def forget_absence(self, resource: Resource) -> None:
        """Ask again at the next ``find`` where *resource* was not served."""
        if self._found.get(resource.name) is None:
            self.forget(resource)

    def _judged(self, resource: Resource, found: Served | Setback | _Absent) -> Served | Setback | None:
        """Return what *found* means, with what was found before: None where *resource* is not served."""
        if isinstance(found, Setback):
            return found
        if isinstance(found, Served):
            self._served[resource.name] = found
            self._missed.pop(resource.name, None)
            return found
        if found.is_plain and resource.name not in self._served:
            return None
        return self._missing(resource)

    def _missing(self, resource: Resource) -> Setback | None:
        """Count that *resource* is absent; None where that is believed."""
        now = self._pace.now()
        missed = self._missed.setdefault(resource.name, _Missed(now))
        missed.times += 1
        if missed.times < GONE_TIMES or now - missed.since < GONE_S:
            return Setback(f"it is not listed, for {now - missed.since:.0f} s", pause_s=MISSED_PAUSE_S)
        del self._missed[resource.name]
        self._served.pop(resource.name, None)
        return None

    async def _discover(self, resource: Resource) -> Served | Setback | _Absent:
        """Look for *resource*. That it is not served is believed only where lists say so that leave it out.

        A 404 proves nothing: somebody between us and the API server may have sent it, and what is not served is told
        as an empty list. Nor does the list of groups: an API server that has just begun fills it by and by.
        """
        if resource.group == CORE:
            return Served(resource, "v1")
        groups = await self._read(resource, "/apis", "groups")
        if isinstance(groups, Setback):
            return groups
        offered = {version for group in groups if group.get("name") == resource.group for version in _versions(group)}
        is_plain = True
        for version in sorted(resource.versions, key=lambda version: version not in offered):
            found = await self._look(resource, version, is_offered=version in offered)
            if not isinstance(found, _Absent):
                return found
            is_plain = is_plain and found.is_plain
        return _Absent(is_plain)

    async def _look(self, resource: Resource, version: str, *, is_offered: bool) -> Served | Setback | _Absent:
        """Look for *resource* in one version of its group."""
        listed = await self._read(resource, f"/apis/{resource.group}/{version}", "resources")
        if isinstance(listed, Setback):
            # What is not offered need not be let us see, and keeps us from nothing.
            return listed if is_offered else _Absent(is_plain=listed.is_lasting)
        if any(entry.get("name") == resource.name for entry in listed):
            return Served(resource, version)
        return _Absent(is_plain=bool(listed))

    async def _read(self, resource: Resource, path: str, field: str) -> list[Json] | Setback:
        """Return the objects that are listed in *field* of what is at *path*.

        Of what was served before, another API server may know more: the next connection may lead to it.
        """
        is_sought = resource.name in self._served
        reply = await (self._api.ask_once(path) if is_sought else self._api.call("GET", path))
        read = reply.json() if isinstance(reply, Answer) and reply.is_success else None
        listed = read.get(field) if read else None
        if not isinstance(listed, list):
            return setback_of(reply)
        return [entry for entry in listed if isinstance(entry, dict)]


def _versions(group: Json) -> Iterator[object]:
    versions = group.get("versions")
    for entry in versions if isinstance(versions, list) else ():
        if isinstance(entry, dict):
            yield entry.get("version")
