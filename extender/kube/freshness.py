"""How old our view of each resource is."""

from collections.abc import Iterable

from extender.kube.resource import CLAIMS, RESOURCES, SLICES, Resource
from extender.kube.stream import is_older
from extender.kube.told import Seen, Told, Trouble, Unserved


class Freshness:
    """When each resource was last known to be current; *note* is told all that following tells."""

    def __init__(self, resources: Iterable[Resource] = RESOURCES) -> None:
        followed = tuple(resources)
        self._seen: dict[str, Seen | Unserved | None] = {resource.name: None for resource in followed}
        self._unlisted = set(self._seen)
        # Why reading did not go on, until it does.
        self._troubles: dict[str, str] = {}
        # Listed nowhere just now, as where the API server went back to a release that has none of it. Nobody is to wait
        # until that is believed.
        self._absent: set[str] = set()
        self.vital = frozenset(resource.name for resource in followed if resource.is_vital)

    def note(self, told: Told) -> None:
        """Take over what *told* says of a resource's age."""
        if isinstance(told, Seen | Unserved):
            self._seen[told.resource.name] = told
            self._unlisted.discard(told.resource.name)
            self._troubles.pop(told.resource.name, None)
            self._absent.discard(told.resource.name)
        elif isinstance(told, Trouble):
            self._troubles[told.resource.name] = told.why
            is_lacking = told.is_absent and not told.resource.is_everywhere
            (self._absent.add if is_lacking else self._absent.discard)(told.resource.name)

    def troubles(self) -> list[str]:
        """Say of each resource that is not read just now why."""
        return [f"{name}: {why}" for name, why in sorted(self._troubles.items())]

    @property
    def has_vital(self) -> bool:
        """Tell whether those resources without which nobody is answered were listed once, or are not served."""
        return self.vital.isdisjoint(self._unlisted)

    def is_listed_since(self, at: float) -> bool:
        """Tell whether what is vital was known to be current at *at* or later."""
        seen = (self._seen[name] for name in self.vital - self._absent)
        return all(item is not None and item.at >= at for item in seen)

    @property
    def is_one_sided(self) -> bool:
        """Tell whether devices are known and claims are said not to be served, who may have them.

        Both come and go with one API group, of which one is found before the other.
        """
        return isinstance(self._seen.get(SLICES.name), Seen) and isinstance(self._seen.get(CLAIMS.name), Unserved)

    def is_past(self, resource: Resource, version: str, at: float) -> bool:
        """Tell whether *resource* is known as the cluster had it at *version*, or at *at*."""
        seen = self._seen.get(resource.name)
        return isinstance(seen, Seen) and (seen.at >= at or not is_older(seen.version, version))

    def seen_at(self, resource: Resource) -> float:
        """Return when *resource* was last known to be current; before everything where it never was."""
        seen = self._seen.get(resource.name)
        return float("-inf") if seen is None else seen.at

    def unsynced(self) -> tuple[str, ...]:
        """Name the resources of which nothing is known yet."""
        return tuple(name for name in self._seen if name in self._unlisted)

    def ages(self, now: float) -> dict[str, float]:
        """Return for each resource how many seconds ago it was current; infinity before its first list.

        What is not served has no age: there is nothing to miss.
        """
        return {name: _age(seen, now) for name, seen in self._seen.items()}

    def outdated(self, before: float) -> list[str]:
        """Name what is vital and was last known to be current *before* that."""
        needed = self.vital - self._absent
        return [name for name in self._seen if name in needed and _is_older(self._seen[name], before)]

    def version(self, resource: Resource) -> str:
        """Return the resourceVersion up to which *resource* is known; empty where it was never listed."""
        seen = self._seen.get(resource.name)
        return seen.version if isinstance(seen, Seen) else ""


def _is_older(seen: Seen | Unserved | None, than: float) -> bool:
    return seen is None or (isinstance(seen, Seen) and seen.at < than)


def _age(seen: Seen | Unserved | None, now: float) -> float:
    if seen is None:
        return float("inf")
    return max(0.0, now - seen.at) if isinstance(seen, Seen) else 0.0
