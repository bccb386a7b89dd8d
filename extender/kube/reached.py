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
    # Since when the cluster has been behind at every look, and the end of the last of them.
    _behind: dict[str, tuple[float, float]] = field(default_factory=dict)

    def known(self, resource: Resource) -> str:
        """Return the version up to which *resource* was known last; empty where it never was."""
        return self._versions.get(resource.name, "")

    def put(self, resource: Resource, version: str) -> None:
        """Take over that *resource* is known up to *version*, whatever was before."""
        self._versions[resource.name] = version
        self._behind.pop(resource.name, None)

    def is_behind(self, resource: Resource, version: str, asked: float, now: float) -> bool:
        """Note that the cluster was at *version*, asked at a time; tell whether that is before what was known."""
        if not is_older(version, self.known(resource)):
            self._behind.pop(resource.name, None)
            return False
        since, last = self._behind.get(resource.name, (asked, asked))
        # Who could not be asked for long may have been behind twice.
        self._behind[resource.name] = (since if asked - last < BEHIND_S else asked, now)
        return True

    def is_for_now(self, resource: Resource, asked: float) -> bool:
        """Tell whether the cluster is behind, but was not for so long that it must have been set back, asked at a time.

        One look is never enough: a list may take longer than that.
        """
        behind = self._behind.get(resource.name)
        return behind is not None and asked - behind[0] < BEHIND_S
