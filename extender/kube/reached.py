"""How far the cluster was ever known to be, and whether it is behind that now."""

from dataclasses import dataclass, field
from typing import Final

from extender.kube.resource import Resource
from extender.kube.stream import is_older

# Stores that are not etcd may count versions in several servers on one database, each of which looks once a second for
# what the others have written (kine, as in k3s): asked right after another, one is behind. A cluster that was set back
# is so for longer.
BEHIND_S: Final = 5.0


@dataclass(slots=True)
class Reached:
    """Each resource by itself: where they are stored apart, each store counts its own versions."""

    _versions: dict[str, str] = field(default_factory=dict)
    # Since when the cluster has been behind at every look, and the last of them.
    _behind: dict[str, tuple[float, float]] = field(default_factory=dict)

    def known(self, resource: Resource) -> str:
        """Return the version up to which *resource* was known last; empty where it never was."""
        return self._versions.get(resource.name, "")

    def put(self, resource: Resource, version: str) -> None:
        """Take over that *resource* is known up to *version*, whatever was before."""
        self._versions[resource.name] = version
        self._behind.pop(resource.name, None)

    def is_behind(self, resource: Resource, version: str, at: float) -> bool:
        """Note that the cluster was at *version* when it was asked *at*; tell whether that is before what was known."""
        if not is_older(version, self.known(resource)):
            self._behind.pop(resource.name, None)
            return False
        since, last = self._behind.get(resource.name, (at, at))
        # Who could not be asked for long may have been behind twice.
        self._behind[resource.name] = (since if at - last < BEHIND_S else at, at)
        return True

    def behind_s(self, resource: Resource, now: float) -> float | None:
        """Return for how long the cluster has been behind; None where it was not, asked last."""
        behind = self._behind.get(resource.name)
        return None if behind is None else now - behind[0]
