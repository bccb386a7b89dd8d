"""Names and owners of objects."""

from extender.model.claim import OwnerReference
from extender.model.names import ObjectKey, Uid
from extender.model.parse.fields import Fields, shared_name, shared_soon


def key_of(metadata: Fields) -> ObjectKey:
    """Read namespace and name."""
    return ObjectKey(shared_name(metadata.text("namespace")), metadata.required("name"))


def owner_of(fields: Fields) -> OwnerReference:
    """Read an owner reference."""
    group, _, _ = fields.text("apiVersion").rpartition("/")
    return OwnerReference(
        kind=shared_name(fields.text("kind")),
        name=shared_soon(fields.text("name")),
        uid=Uid(shared_soon(fields.text("uid"))),
        api_group=group,
        is_controller=fields.flag("controller"),
    )
