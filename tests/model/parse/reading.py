"""Reading what must be readable, and the faults of what must not."""

from copy import deepcopy
from typing import Any

from extender.model.change import problem_in
from extender.model.claim import ResourceClaim
from extender.model.parse import parse_claim, parse_object


def read_claim(raw: dict[str, Any], version: str = "v1") -> ResourceClaim:
    read = parse_claim(raw, version)
    assert isinstance(read, ResourceClaim), read
    assert read.problem is None, read
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
    found = problem_in(parse_object(raw))
    assert found is not None, raw
    return f"{found.kind}: {found.path}: {found.message}"
