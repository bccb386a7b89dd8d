"""How much configuration for drivers an allocation can have, which is no more than the API server takes."""

from collections.abc import Mapping
from typing import Final

from extender.model.claim import ClaimSpec, DeviceClass, RequestSlot
from extender.model.names import ClassName

# As many as one class and one claim may have together; an allocation may be for several classes.
ENTRIES: Final = 64


def least(spec: ClaimSpec, classes: Mapping[ClassName, DeviceClass]) -> int:
    """Count the entries that an allocation of *spec* has, whichever of its alternatives are taken."""
    named = {slot.name for slot in spec.requests}
    own = sum(not entry.requests or not named.isdisjoint(entry.requests) for entry in spec.config)
    certain = {next(iter(asked)) for slot in spec.requests if len(asked := _classes(slot)) == 1}
    return own + sum(len(classes[name].config) for name in certain if name in classes)


def excess(entries: int) -> str:
    """Say that so many *entries* are too many; nothing where they are not."""
    if entries <= ENTRIES:
        return ""
    return f"{entries} entries of configuration, of classes and its own, are more than the {ENTRIES} of an allocation"


def _classes(slot: RequestSlot) -> set[ClassName]:
    return {ask.class_name for ask in slot.first_available or filter(None, (slot.exactly,))}
