"""Kubernetes JSON to nouns: ResourceSlices of v1, v1beta2, v1beta1 and v1alpha3. Nothing here raises on any JSON value.

An object that cannot be read becomes a Problem that names the field; it takes nothing else down.
"""

from collections.abc import Iterator

from extender.model.device import ResourceSlice
from extender.model.names import ObjectKey
from extender.model.parse.fields import Fields, Malformed
from extender.model.parse.slice import slice_of
from extender.model.problem import Problem

VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha3")
GROUP = "resource.k8s.io"


def parse_slice(raw: object, version: str = "v1") -> ResourceSlice | Problem:
    """Read one ResourceSlice as *version* of the API writes it."""
    try:
        return slice_of(Fields.of(raw, ""), version)
    except Malformed as error:
        return Problem("ResourceSlice", _key(raw), error.path, error.message)


def parse_object(raw: object, kind: str = "", api_version: str = "") -> ResourceSlice | Problem:
    """Read one object by its own kind and version, or by those of the list that it stands in."""
    fields = raw if isinstance(raw, dict) else {}
    kind = str(fields.get("kind") or kind or "object")
    group, _, version = str(fields.get("apiVersion") or api_version).rpartition("/")
    if kind != "ResourceSlice" or group != GROUP:
        return Problem(kind, _key(raw), "kind", "is no ResourceSlice of resource.k8s.io")
    if version not in VERSIONS:
        return Problem(kind, _key(raw), "apiVersion", f"is none of {', '.join(VERSIONS)}")
    return parse_slice(raw, version)


def parse_list(raw: object) -> Iterator[ResourceSlice | Problem]:
    """Read a kubectl List, a typed list whose items may lack kind and version, or a single object."""
    if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str) or not raw["kind"].endswith("List"):
        yield parse_object(raw)
        return
    items = raw.get("items")
    if items is not None and not isinstance(items, list):
        yield Problem(raw["kind"], ObjectKey("", ""), "items", "is no list")
        return
    for item in items or ():
        yield parse_object(item, raw["kind"].removesuffix("List"), str(raw.get("apiVersion") or ""))


def _key(raw: object) -> ObjectKey:
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    if not isinstance(metadata, dict):
        return ObjectKey("", "")
    return ObjectKey(str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))
