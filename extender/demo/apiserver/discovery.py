"""What the API server says that it has."""

from collections.abc import Iterable

from extender.demo.apiserver.kinds import Json, Kind

VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def groups(kinds: Iterable[Kind]) -> Json:
    """List the groups."""
    named = {kind.group: kind.version for kind in kinds if kind.group}
    listed = [_group(name, version) for name, version in sorted(named.items())]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def resources(kinds: Iterable[Kind], group_name: str, version: str) -> Json | None:
    """List the resources of a group's version, None where it is not served."""
    found = [kind for kind in kinds if (kind.group, kind.version) == (group_name, version)]
    if not found:
        return None
    listed = [entry for kind in found for entry in _resource(kind)]
    named = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": named, "resources": listed}


def _group(name: str, version: str) -> Json:
    served = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [served], "preferredVersion": served}


def _resource(kind: Kind) -> list[Json]:
    entry = {
        "name": kind.plural,
        "singularName": kind.name.lower(),
        "namespaced": kind.is_namespaced,
        "kind": kind.name,
        "verbs": VERBS,
    }
    part = {**entry, "name": f"{kind.plural}/status", "verbs": ["get", "patch", "update"]}
    return [entry, part] if kind.has_status else [entry]
