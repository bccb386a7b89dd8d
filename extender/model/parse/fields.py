"""Typed reads from decoded JSON that know the path of what they read. null counts as unset everywhere."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

from extender.model.quantity import MAX_INT64, MIN_INT64, Quantity, quantity_of

KEY: Final = itemgetter(0)
# The same string for all names that are equal. Some releases of Python never let go of what ``sys.intern`` has seen,
# and names come and go with nodes.
shared_name: Final = lru_cache(maxsize=4096)(str)
# The same for names of nodes, and of pools named after them, of which there are many more.
shared_place: Final = lru_cache(maxsize=1 << 15)(str)
# The same for what is said again soon: a claim names its pod as its owner and as its user.
_shared_soon: Final = lru_cache(maxsize=256)(str)
# Longer than what people call anything. Of whom an object is, by what kind and name, and which scheduler is to place a
# pod, the API server lets in at any length.
LONGEST_NAME: Final = 256


class Malformed(ValueError):  # noqa: N818 - says what the input is, and is caught by that name
    """Something that the API server would not have let in."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


@dataclass(slots=True)
class Fields:
    """A JSON object and where it stands. Nobody changes it: that it is not frozen is because so many are made.

    *within* is what it stands in, under *name* and, in a list, at *index*; or, of the outermost, its path. Paths are
    spelled for those who complain, and nobody else.
    """

    raw: dict[str, Any]
    within: "Fields | str"
    name: str = ""
    index: int = -1

    @classmethod
    def of(cls, raw: object, path: str) -> "Fields":
        """Take *raw*, which must be an object or unset."""
        return cls(raw, path) if isinstance(raw, dict) else _unset(raw, cls({}, path))

    @property
    def path(self) -> str:
        if isinstance(self.within, str):
            return self.within
        inside = self.within.at(self.name)
        return inside if self.index < 0 else f"{inside}[{self.index}]"

    def at(self, name: str) -> str:
        """Spell the path of a field."""
        path = self.path
        return f"{path}.{name}" if path else name

    def has(self, name: str) -> bool:
        """Tell whether the field is set."""
        return self.raw.get(name) is not None

    def child(self, name: str) -> "Fields":
        """Return the object at *name*, an empty one where it is unset."""
        value = self.raw.get(name)
        return Fields(value, self, name) if type(value) is dict else _unset(value, Fields({}, self, name))

    def text(self, name: str) -> str:
        """Return the string at *name*, empty where it is unset."""
        value = self.raw.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise Malformed(self.at(name), "is no string")
        return value

    def required(self, name: str) -> str:
        """Return the string at *name*, which must not be empty."""
        return self.text(name) or self._missing(name)

    def _missing(self, name: str) -> str:
        raise Malformed(self.at(name), "is required")

    def flag(self, name: str) -> bool:
        """Return the boolean at *name*, false where it is unset."""
        value = self.raw.get(name)
        if value is not None and not isinstance(value, bool):
            raise Malformed(self.at(name), "is neither true nor false")
        return bool(value)

    def integer(self, name: str) -> int:
        """Return the int64 at *name*, 0 where it is unset."""
        value = self.raw.get(name)
        return 0 if value is None else int64(value, self.at(name))

    def quantity(self, name: str) -> Quantity:
        """Return the quantity at *name*, which must be set."""
        return quantity_at(self.raw.get(name), self.at(name))

    def optional_quantity(self, name: str) -> Quantity | None:
        """Return the quantity at *name*, None where it is unset."""
        return self.quantity(name) if self.has(name) else None

    def items(self, name: str) -> Iterator[tuple[object, str]]:
        """Yield the entries of the list at *name* with their paths."""
        value = self.raw.get(name)
        if value is None:
            return
        path = self.at(name)
        if not isinstance(value, list):
            raise Malformed(path, "is no list")
        for index, item in enumerate(value):
            yield item, f"{path}[{index}]"

    def objects(self, name: str) -> Iterable["Fields"]:
        """Give the objects of the list at *name*, one after another."""
        value = self.raw.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise Malformed(self.at(name), "is no list")
        return self._each(value, name)

    def _each(self, items: list[object], name: str) -> Iterator["Fields"]:
        for index, item in enumerate(items):
            yield Fields(item, self, name, index) if type(item) is dict else _unset(item, Fields({}, self, name, index))

    def entries(self, name: str) -> Iterator[tuple[str, object, str]]:
        """Yield key, value and path of the map at *name*, sorted by key."""
        child, path = self.child(name), self.at(name)
        for key in sorted(child.raw):
            yield key, child.raw[key], f"{path}[{key}]"

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the strings of the list at *name*."""
        value = self.raw.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise Malformed(self.at(name), "is no list")
        # Of thousands of names there is one type.
        if {*map(type, value)} - {str}:
            index = next(index for index, item in enumerate(value) if type(item) is not str)
            raise Malformed(f"{self.at(name)}[{index}]", "is no string")
        return tuple(value)

    def strings(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return the map of strings at *name*, sorted by key."""
        if self.raw.get(name) is None:
            return ()
        found = []
        for key, value in sorted(self.child(name).raw.items(), key=KEY):
            if value is not None and not isinstance(value, str):
                raise Malformed(f"{self.at(name)}[{key}]", "is no string")
            found.append((key, value or ""))
        return tuple(found)

    def quantities(self, name: str) -> tuple[tuple[str, Quantity], ...]:
        """Return the map of quantities at *name*, sorted by key."""
        if self.raw.get(name) is None:
            return ()
        items = sorted(self.child(name).raw.items(), key=KEY)
        try:
            return tuple([(key, quantity_of(value)) for key, value in items])
        except (TypeError, ValueError):
            # Paths are spelled for those who complain.
            return tuple((key, quantity_at(value, path)) for key, value, path in self.entries(name))

    def unknown(self, known: frozenset[str], inside: str = "") -> tuple[str, ...]:
        """Name the fields that are set and not *known*: what we do not understand must not pass for absent."""
        if self.raw.keys() <= known:
            return ()
        return tuple(sorted(inside + name for name in self.raw if name not in known and self.has(name)))

    def unknown_in(self, name: str, known: frozenset[str], inside: str = "") -> tuple[str, ...]:
        """Name the fields that are set and not *known* in the objects of the list at *name*."""
        return tuple(field for entry in self.objects(name) for field in entry.unknown(known, f"{inside}{name}."))


def _unset(raw: object, fields: Fields) -> Fields:
    """Return *fields*, which are empty, where *raw* is no object: it must be unset then."""
    if raw is not None:
        raise Malformed(fields.path or "object", "is no JSON object")
    return fields


def shared_soon(text: str) -> str:
    """Return one string for all that are equal and not longer than names are."""
    return _shared_soon(text) if len(text) <= LONGEST_NAME else text


def int64(value: object, path: str) -> int:
    """Check that *value* is what Go would decode as an int64."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Malformed(path, "is no integer")
    if not MIN_INT64 <= value <= MAX_INT64:
        raise Malformed(path, "does not fit into 64 bits")
    return value


def quantity_at(value: object, path: str) -> Quantity:
    if value is None:
        raise Malformed(path, "is required")
    try:
        return quantity_of(value)
    except (TypeError, ValueError) as error:
        raise Malformed(path, str(error)) from error
