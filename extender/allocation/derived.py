"""Attributes that requests compute: which of them a value stands for."""

from typing import Final

from extender.allocation.cel.values import Value, held, type_name
from extender.model.device import Attribute
from extender.model.semver import Semver

# By the exact class: most values of other types are tuples or numbers to Python.
KINDS: Final = {bool: "bool", int: "int", str: "string", Semver: "version"}
# What one may be, which is several times what a driver may publish of a device: 48 values of 64 characters.
MOST_VALUES: Final = 256
MOST_CHARACTERS: Final = 4096


def attribute_of(value: Value) -> Attribute:
    """Return the attribute that a computed value stands for; raise ValueError where it stands for none."""
    if type(value) is not tuple:
        return _scalar(value)
    if len(value) > MOST_VALUES:
        raise ValueError(f"a list of {len(value)} values is longer than {MOST_VALUES}")
    items = [_scalar(item) for item in value]
    kinds = {item.kind for item in items} or {"string"}
    if len(kinds) != 1:
        raise ValueError("the items of the list are of different types")
    scalars = tuple(item.value for item in items)
    _require_short(sum(len(scalar) for scalar in scalars if isinstance(scalar, str)))
    return Attribute(f"{kinds.pop()}s", scalars)  # type: ignore[arg-type]  # kinds of scalars


def _scalar(value: Value) -> Attribute:
    value = held(value)
    kind = KINDS.get(type(value))
    if kind is None:
        raise ValueError(f"a value of type {type_name(value)} is no attribute")
    if kind == "version":
        value = str(value)
    _require_short(len(value) if kind in ("string", "version") else 0)
    return Attribute(kind, value)  # type: ignore[arg-type]  # see KINDS


def _require_short(characters: int) -> None:
    if characters > MOST_CHARACTERS:
        raise ValueError(f"an attribute of {characters} characters is longer than {MOST_CHARACTERS}")
