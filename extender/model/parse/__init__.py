"""Kubernetes JSON to nouns, of every version that was ever served. Nothing here raises on any JSON value.

An object that cannot be read becomes a Problem that names the field; it takes nothing else down.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Final, TypeVar

from extender.model.change import Noun
from extender.model.claim import ClaimTemplate, DeviceClass, ResourceClaim
from extender.model.device import ResourceSlice
from extender.model.footprint import Footprint
from extender.model.names import ObjectKey
from extender.model.node import Node, Pod
from extender.model.parse.claim import claim_of, class_of, template_of
from extender.model.parse.fields import Fields, Malformed
from extender.model.parse.footprint import footprint_of
from extender.model.parse.metadata import writers_of
from extender.model.parse.node import node_of, other_pod_of, pod_of
from extender.model.parse.rule import rule_of
from extender.model.parse.slice import slice_of
from extender.model.problem import Problem
from extender.model.taint import DeviceTaintRule

# Templates are read from files alone: no list or watch tells of them.
Readable = Noun | ClaimTemplate
N = TypeVar("N")

GROUP: Final = "resource.k8s.io"
CORE: Final = ""
VERSIONS: Final = {GROUP: ("v1", "v1beta2", "v1beta1", "v1alpha3"), CORE: ("v1",)}
# How to read each kind, given its fields and the version that they are in.
READERS: Final[Mapping[tuple[str, str], Callable[[Fields, str], Readable]]] = {
    (GROUP, "ResourceSlice"): slice_of,
    (GROUP, "ResourceClaim"): claim_of,
    (GROUP, "ResourceClaimTemplate"): template_of,
    (GROUP, "DeviceClass"): lambda fields, _version: class_of(fields),
    (GROUP, "DeviceTaintRule"): lambda fields, _version: rule_of(fields),
    (CORE, "Node"): lambda fields, _version: node_of(fields),
    (CORE, "Pod"): lambda fields, _version: pod_of(fields),
}


def parse_slice(raw: object, version: str = "v1") -> ResourceSlice | Problem:
    """Read one ResourceSlice as *version* of the API writes it."""
    return _read(partial(slice_of, version=version), raw, "ResourceSlice")


def parse_class(raw: object) -> DeviceClass | Problem:
    """Read one DeviceClass: all versions write it alike."""
    return _read(class_of, raw, "DeviceClass")


def parse_claim(raw: object, version: str = "v1") -> ResourceClaim | Problem:
    """Read one ResourceClaim as *version* of the API writes it."""
    return _read(partial(claim_of, version=version), raw, "ResourceClaim")


def parse_rule(raw: object) -> DeviceTaintRule | Problem:
    """Read one DeviceTaintRule of any version."""
    return _read(rule_of, raw, "DeviceTaintRule")


def parse_node(raw: object) -> Node | Problem:
    return _read(node_of, raw, "Node")


def parse_pod(raw: object) -> Pod | Problem:
    return _read(pod_of, raw, "Pod")


def parse_other_pod(raw: object, schedulers: Collection[str]) -> Pod | None:
    """Read who a Pod is that none of *schedulers* places; None for theirs, and where that cannot be read."""
    try:
        return other_pod_of(Fields.of(raw, ""), schedulers)
    except Malformed:
        return None


def nominators(raw: Mapping[str, object]) -> tuple[str, ...]:
    """Name the field managers that the nomination of a Pod is from, as far as the API server keeps them."""
    metadata = raw.get("metadata")
    return writers_of(metadata, "f:nominatedNodeName") if isinstance(metadata, dict) else ()


def parse_footprint(raw: object) -> Footprint | Problem:
    """Read what a Pod takes of the node that it is bound to."""
    return _read(footprint_of, raw, "Footprint")


def parse_object(raw: object, kind: str = "", api_version: str = "") -> Readable | Problem:
    """Read one object by its own kind and version, or by those of the list that it stands in."""
    fields = raw if isinstance(raw, dict) else {}
    kind = _text(fields, "kind") or kind or "object"
    group, _, version = (_text(fields, "apiVersion") or api_version).rpartition("/")
    reader = READERS.get((group, kind))
    if reader is None:
        return Problem(kind, key_in(raw), "kind", f"no {kind} of {group or 'the core group'} is read here")
    if version not in VERSIONS[group]:
        return Problem(kind, key_in(raw), "apiVersion", f"is none of {', '.join(VERSIONS[group])}")
    return _read(lambda read: reader(read, version), raw, kind)


def parse_list(raw: object) -> Iterator[Readable | Problem]:
    """Read a kubectl List, a typed list whose items may lack kind and version, or a single object."""
    if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str) or not raw["kind"].endswith("List"):
        yield parse_object(raw)
        return
    items = raw.get("items")
    if items is not None and not isinstance(items, list):
        yield Problem(raw["kind"], ObjectKey("", ""), "items", "is no list")
        return
    for item in items or ():
        yield parse_object(item, raw["kind"].removesuffix("List"), _text(raw, "apiVersion"))


def key_of(noun: Readable) -> ObjectKey:
    """Return namespace and name of what was read."""
    return noun.key if isinstance(noun, ResourceClaim | ClaimTemplate | Pod | Footprint) else ObjectKey("", noun.name)


def _read(reader: Callable[[Fields], N], raw: object, kind: str) -> N | Problem:
    try:
        return reader(Fields.of(raw, ""))
    except Malformed as error:
        return Problem(kind, key_in(raw), error.path, error.message)


def key_in(raw: object) -> ObjectKey:
    """Return namespace and name of an object that was not read; empty where there are none."""
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    if not isinstance(metadata, dict):
        return ObjectKey("", "")
    return ObjectKey(_text(metadata, "namespace"), _text(metadata, "name"))


def _text(raw: dict[str, object], name: str) -> str:
    """Return the string at *name*, empty where there is none: what else stands there may be too large to spell."""
    value = raw.get(name)
    return value if isinstance(value, str) else ""
