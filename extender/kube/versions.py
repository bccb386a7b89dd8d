"""Which version of each resource the API server has."""

from extender.kube.api import Api
from extender.kube.pace import Pace
from extender.kube.resource import Resource, Served


class Versions:
    """What discovery has found. Shared by follows and writes; asked again where an answer is missing or outdated."""

    def __init__(self, api: Api, pace: Pace) -> None:
        self._api = api
        self._pace = pace
        self._found: dict[str, Served | None] = {}

    async def find(self, resource: Resource) -> Served | None:
        """Return *resource* as it is served, None where it is not; ask until the API server says which."""
        raise NotImplementedError(self._api, self._pace, resource)

    def forget(self, resource: Resource) -> None:
        """Ask again at the next ``find``: the version that was found is gone, or may have come."""
        self._found.pop(resource.name, None)
