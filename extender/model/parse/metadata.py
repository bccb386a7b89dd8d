"""Names and owners of objects, and who wrote what of them."""

from collections.abc import Iterator, Mapping
from typing import Final

from extender.model.claim import OwnerReference
from extender.model.names import ObjectKey, Uid
from extender.model.parse.alike import alike
from extender.model.parse.fields import Fields, shared_name, shared_soon

OWNERS: Final = "ownerReferences"


def key_of(metadata: Fields) -> ObjectKey:
    """Read namespace and name."""
    return ObjectKey(shared_name(metadata.text("namespace")), metadata.required("name"))


def owners_of(metadata: Fields) -> tuple[OwnerReference, ...]:
    """Read who controls an object, of its owners; nobody asks for the others, of which there may be thousands."""
    return _owners(metadata, "") if metadata.has(OWNERS) else ()


def writers_of(metadata: Mapping[str, object], field: str) -> tuple[str, ...]:
    """Name the field managers that a *field* of the status is from, as far as the API server keeps them."""
    return tuple(_writers(metadata.get("managedFields"), field))


def _writers(managed: object, field: str) -> Iterator[str]:
    """Do so. Nothing depends on the rest of what is kept, which is long: only what is looked for is looked at."""
    for entry in managed if isinstance(managed, list) else ():
        fields = entry.get("fieldsV1") if isinstance(entry, dict) else None
        status = fields.get("f:status") if isinstance(fields, dict) else None
        if isinstance(status, dict) and field in status:
            yield shared_name(str(entry.get("manager", "")))


def _owner_of(fields: Fields) -> OwnerReference:
    return OwnerReference(kind=shared_soon(fields.text("kind")), uid=Uid(shared_soon(fields.text("uid"))))


_owners: Final = alike(
    lambda metadata, _version: tuple(
        _owner_of(entry) for entry in metadata.objects(OWNERS) if entry.flag("controller")
    ),
    512,
    lambda metadata: metadata.raw[OWNERS],
)
