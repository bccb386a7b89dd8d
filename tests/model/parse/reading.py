"""Reading what must be readable, and the faults of what must not."""

from copy import deepcopy
from typing import Any

from extender.model.claim import ResourceClaim
from extender.model.parse import parse_claim, parse_object
from extender.model.problem import Problem


def read_claim(raw: dict[str, Any], version: str = "v1") -> ResourceClaim:
    read = parse_claim(raw, version)
    assert isinstance(read, ResourceClaim), read
    return read


def changed(raw: dict[str, Any], *path: str | int, value: object) -> dict[str, Any]:
    """Return a copy of *raw* with another value at *path*."""
    copy = deepcopy(raw)
    place: Any = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return copy


def fault(raw: dict[str, Any]) -> str:
    """Return kind, path and message of the problem that *raw* is."""
    read = parse_object(raw)
    assert isinstance(read, Problem), read
    return f"{read.kind}: {read.path}: {read.message}"
