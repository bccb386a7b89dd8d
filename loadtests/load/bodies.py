"""What kube-scheduler sent, made that of other pods and other nodes. Needs nothing but the standard library."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

BODIES = Path(__file__).parent / "bodies"
VERBS = ("filter", "prioritize", "bind")
# Whose claims stand in the bodies as they were captured.
CLAIM = "{name}-gpus"
NAMES = b'"NodeNames":['


class Who(NamedTuple):
    """What tells one pod from another."""

    namespace: str
    name: str
    uid: str


def captured(shape: str, verb: str) -> bytes:
    """Return a body as it was captured."""
    return gzip.decompress((BODIES / f"{shape}-{verb}.json.gz").read_bytes())


def pod_of(body: bytes) -> Mapping[str, Any]:
    """Return the pod that a body of filter or prioritize is about."""
    pod: Mapping[str, Any] = json.loads(body)["Pod"]
    return pod


def who_in(body: bytes) -> Who:
    """Tell which pod a body of filter or prioritize is about."""
    metadata = pod_of(body)["metadata"]
    return Who(metadata["namespace"], metadata["name"], metadata["uid"])


def claim_in(body: bytes) -> str:
    """Return the name of the claim that the pod of a body has from its template."""
    name: str = pod_of(body)["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    return name


def made(body: bytes, who: Who, names: Sequence[str]) -> bytes:
    """Return *body* as it would be for *who*, with its own claim, and for the nodes *names*."""
    old, claim = who_in(body), claim_in(body)
    head, found, _ = body.rpartition(NAMES)
    if not found:
        raise ValueError("the body ends in no names of nodes")
    # The longest first: the name of the pod is a part of that of its claim.
    for before, after in (
        (claim, CLAIM.format(name=who.name)),
        (old.uid, who.uid),
        (f'"name":"{old.name}"', f'"name":"{who.name}"'),
        (f'"namespace":"{old.namespace}"', f'"namespace":"{who.namespace}"'),
    ):
        head = head.replace(before.encode(), after.encode())
    return head + NAMES + ",".join(f'"{name}"' for name in names).encode() + b"]}"


def binding(body: bytes, who: Who, node: str) -> bytes:
    """Return the body of bind as it would be for *who* on *node*: Go's order of fields, other values."""
    fields = {"PodName": who.name, "PodNamespace": who.namespace, "PodUID": who.uid, "Node": node}
    return json.dumps({key: fields[key] for key in json.loads(body)}, separators=(",", ":")).encode()


def window(names: Sequence[str], turn: int, size: int) -> list[str]:
    """Return *size* of *names*: those that follow the ones of the turn before, from the start again at the end."""
    start = turn * size % len(names)
    return [*names[start : start + size], *names[: max(0, start + size - len(names))]]
