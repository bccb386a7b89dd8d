"""Bytes to questions: the bodies that kube-scheduler sends, with the names of Go's fields."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from extender.model.frozen import dataclass
from extender.model.names import NodeName, ObjectKey, Uid, is_dns_subdomain
from extender.model.node import Pod
from extender.model.parse import parse_pod
from extender.model.parse.fields import Fields, Malformed, int64
from extender.model.problem import Problem
from extender.scheduling.endings import Order
from extender.web.names import Names, plain_names
from extender.web.verbs import Victims

NODE_NAMES: Final = b'"NodeNames":'
# Some 200 names: with fewer, decoding and looking them up one by one costs no more than not to. What is looked up one
# by one lies all over memory: between two questions others have taken the processor's caches.
QUICK_FROM: Final = 1 << 13
WITHOUT_NAMES: Final = b'"NodeNames":null}'
# Longer than any UID that an API server gives. What we remember of pods is found by these.
UID_MAX: Final = 128
NO_NAME: Final = "is no name of an object"


class Unreadable(ValueError):  # noqa: N818 - says what the request is, and is caught by that name
    """A request that no kube-scheduler would send."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What filter and prioritize are sent. *nodes* are there by name where the scheduler sends whole nodes."""

    pod: Pod | Problem
    names: Names
    nodes: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Eviction:
    """What preempt is sent."""

    pod: Pod | Problem
    victims: Mapping[str, Victims]


# Finds a pod by its UID in the very version that is asked about; what was read before need not be read again.
Known = Callable[[str, str], Pod | None]


def nobody(_uid: str, _version: str) -> None:
    """Know no pod."""


def candidates_of(body: bytes, quick_from: int = QUICK_FROM, known: Known = nobody) -> Candidates:
    """Read the body of filter or prioritize; raise Unreadable where it is none.

    Names that take *quick_from* bytes or more are not decoded, and a pod that is *known* is not read.
    """
    return _quick(body, quick_from, known) or _candidates(_loaded(body), known)


def _quick(body: bytes, quick_from: int, known: Known) -> Candidates | None:
    """Read a body that ends in many plain names without decoding them; None for any other."""
    # From the front, where the pod is, and not through the names that end the body. A string can hold no quote as this
    # has: where it stood anywhere else, or twice, what follows it is no plain array that ends the body.
    start = body.find(NODE_NAMES)
    if start < 0 or len(body) - start < quick_from or not body.endswith(b"}"):
        return None
    names = plain_names(body[start + len(NODE_NAMES) : -1])
    if names is None:
        return None
    try:
        # Where the names stood deeper than at the top, the rest lacks a bracket and is no JSON.
        head = orjson.loads(body[:start] + WITHOUT_NAMES)
    except orjson.JSONDecodeError:
        return None
    fields = Fields(head, "")
    return None if fields.has("Nodes") else Candidates(_pod(fields, known), names)


def _candidates(fields: Fields, known: Known) -> Candidates:
    try:
        if fields.has("NodeNames"):
            names = list(fields.texts("NodeNames"))
            return Candidates(_pod(fields, known), Names(None, names))
        if fields.has("Nodes"):
            nodes = _nodes(fields.child("Nodes"))
            return Candidates(_pod(fields, known), Names(None, list(nodes)), nodes)
    except Malformed as error:
        raise Unreadable(str(error)) from error
    raise Unreadable("NodeNames: neither these nor Nodes are there")


def _nodes(fields: Fields) -> dict[str, object]:
    return {node.child("metadata").required("name"): node.raw for node in fields.objects("items")}


def eviction_of(body: bytes) -> Eviction:
    """Read the body of preempt; raise Unreadable where it is none."""
    fields = _loaded(body)
    try:
        if fields.has("NodeNameToMetaVictims"):
            victims = {key: _meta_victims(child) for key, child in _by_node(fields, "NodeNameToMetaVictims")}
        else:
            victims = {key: _whole_victims(child) for key, child in _by_node(fields, "NodeNameToVictims")}
    except Malformed as error:
        raise Unreadable(str(error)) from error
    return Eviction(_pod(fields), victims)


def _by_node(fields: Fields, name: str) -> list[tuple[str, Fields]]:
    return [(node, Fields.of(value, path)) for node, value, path in fields.entries(name)]


def _meta_victims(fields: Fields) -> Victims:
    return Victims(tuple(Uid(pod.required("UID")) for pod in fields.objects("Pods")), _violations(fields))


def _whole_victims(fields: Fields) -> Victims:
    pods = (pod.child("metadata") for pod in fields.objects("Pods"))
    return Victims(tuple(Uid(pod.required("uid")) for pod in pods), _violations(fields))


def _violations(fields: Fields) -> int:
    return int64(fields.raw.get("NumPDBViolations") or 0, fields.at("NumPDBViolations"))


def binding_of(body: bytes) -> Order:
    """Read the body of bind; raise Unreadable where it is none."""
    fields = _loaded(body)
    try:
        return Order(
            pod=ObjectKey(_named(fields, "PodNamespace"), _named(fields, "PodName")),
            uid=_uid(fields.required("PodUID"), "PodUID"),
            node=NodeName(_named(fields, "Node")),
        )
    except Malformed as error:
        raise Unreadable(str(error)) from error


def _named(fields: Fields, field: str) -> str:
    """Return a name that becomes part of a path or of a write, as no object of Kubernetes would have it otherwise."""
    name = fields.required(field)
    if not is_dns_subdomain(name):
        raise Malformed(fields.at(field), NO_NAME)
    return name


def _uid(text: str, path: str) -> Uid:
    if len(text) > UID_MAX or not text.isprintable():
        raise Malformed(path, "is no UID")
    return Uid(text)


def _loaded(body: bytes) -> Fields:
    try:
        raw: Any = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unreadable(f"the body is no JSON: {error}") from error
    if not isinstance(raw, dict):
        raise Unreadable("the body is no JSON object")
    return Fields(raw, "")


def _pod(fields: Fields, known: Known = nobody) -> Pod | Problem:
    raw = fields.raw.get("Pod")
    if not isinstance(raw, dict):
        raise Unreadable("Pod: is required" if raw is None else "Pod: is no JSON object")
    metadata = raw.get("metadata")
    uid, version = (
        (metadata.get("uid"), metadata.get("resourceVersion")) if isinstance(metadata, dict) else (None, None)
    )
    if isinstance(uid, str) and isinstance(version, str) and (found := known(uid, version)) is not None:
        return found
    pod = parse_pod(raw)
    return (_nameless(pod) or pod) if isinstance(pod, Pod) else pod


def _nameless(pod: Pod) -> Problem | None:
    """Say which of the names of *pod*, by which we would remember it, is none."""
    nobody = ObjectKey("", "")
    if not is_dns_subdomain(pod.key.name):
        return Problem("Pod", nobody, "metadata.name", NO_NAME)
    if pod.key.namespace and not is_dns_subdomain(pod.key.namespace):
        return Problem("Pod", nobody, "metadata.namespace", NO_NAME)
    if not pod.uid:
        return Problem("Pod", pod.key, "metadata.uid", "is required")
    try:
        _uid(pod.uid, "metadata.uid")
    except Malformed as error:
        return Problem("Pod", pod.key, error.path, error.message)
    return None
