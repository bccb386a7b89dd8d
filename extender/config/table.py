"""Every setting as one row: its path in the file, its environment variable, its flag, its type and its default."""

import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from extender.config.settings import Key, Settings

PREFIX: Final = "DRA_EXTENDER_"


class Row(NamedTuple):
    """One setting: *field* of the section *section*, which is empty for those that stand alone."""

    section: str
    field: str
    hint: object
    key: Key
    default: object

    @property
    def path(self) -> str:
        """Where it stands in the file."""
        return ".".join(_camel(part) for part in (self.section, self.field) if part)

    @property
    def variable(self) -> str:
        """Which environment variable sets it."""
        return PREFIX + "_".join(part.upper() for part in (self.section, self.field) if part)

    @property
    def flag(self) -> str:
        """Which flag sets it."""
        return "--" + f"{self.section}-{self.field}".strip("-").replace("_", "-")


@cache
def rows() -> MappingProxyType[str, Row]:
    """Return all settings by path, in the order of the classes."""
    return MappingProxyType({row.path: row for row in _rows("", Settings)})


@cache
def sections() -> MappingProxyType[str, type]:
    """Return the class of each section by the field that holds it."""
    hints = get_type_hints(Settings)
    return MappingProxyType({
        field.name: hints[field.name] for field in fields(Settings) if _camel(field.name) not in rows()
    })  # fmt: skip


def _rows(section: str, holder: type) -> Iterator[Row]:
    hints = get_type_hints(holder, include_extras=True)
    for field in fields(holder):
        hint = hints[field.name]
        if get_origin(hint) is Annotated:
            plain, key = get_args(hint)
            yield Row(section, field.name, plain, key, _default(field))
        elif is_dataclass(hint) and isinstance(hint, type):
            yield from _rows(field.name, hint)


def _default(field: "Field[Any]") -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
