"""Paths of the API: which kind, namespace, object and part of it they mean."""

from collections.abc import Mapping

from extender.demo.apiserver.failure import Failure
from extender.demo.apiserver.kinds import Kind
from extender.model.frozen import dataclass

Kinds = Mapping[tuple[str, str, str], Kind]
LONGEST = 3


@dataclass(frozen=True, slots=True)
class Target:
    """What a path leads to: all objects of a kind, those of a namespace, one, or a part of one."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    part: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


def target_of(path: str, kinds: Kinds) -> Target:
    """Read *path*; a path that leads nowhere is a 404 like that of the real server."""
    group, version, rest = split(path)
    namespace = ""
    if len(rest) >= LONGEST and rest[0] == "namespaces" and (group, version, rest[2]) in kinds:
        namespace, rest = rest[1], rest[2:]
    kind = kinds.get((group, version, rest[0])) if rest else None
    if kind is None or len(rest) > LONGEST:
        raise Failure(404, "the server could not find the requested resource")
    return Target(kind, namespace, *rest[1:])


def split(path: str) -> tuple[str, str, list[str]]:
    """Split *path* into group, version and what follows."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"]:
        return "", *_version(parts[1:])
    if parts[:1] == ["apis"] and len(parts) > 1:
        return parts[1], *_version(parts[2:])
    raise Failure(404, "the server could not find the requested resource")


def _version(parts: list[str]) -> tuple[str, list[str]]:
    return (parts[0], parts[1:]) if parts else ("", [])
