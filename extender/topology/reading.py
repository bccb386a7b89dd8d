"""Plain values read key by key: all that is wrong is told at once, each with its path."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from extender.model.names import is_driver_name, is_label_key, is_label_value, is_qualified_name

T = TypeVar("T")
# Far beyond any link, and small enough for sums over a thousand devices to be exact.
MOST_WEIGHT: Final = 1_000_000.0


class InvalidDocument(ValueError):  # noqa: N818 - says what the document is, and is caught by that name
    """A document that cannot be used; *complaints* each name the path and the reason."""

    def __init__(self, complaints: Iterable[str]) -> None:
        self.complaints = tuple(complaints)
        super().__init__("\n".join(self.complaints))


class Entry:
    """Keys with values at a path. What is wrong goes on the list that all entries of a document share."""

    __slots__ = ("is_fit", "path", "raw", "used", "wrong")

    def __init__(self, raw: object, path: str, wrong: list[str]) -> None:
        self.is_fit = raw is None or isinstance(raw, Mapping)
        if not self.is_fit:
            wrong.append(f"{path or 'document'}: must be keys with values")
        self.raw: Mapping[Any, Any] = raw if isinstance(raw, Mapping) else {}
        self.path, self.wrong, self.used = path, wrong, set[str]()

    def at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def has(self, key: str) -> bool:
        self.used.add(key)
        return self.raw.get(key) is not None

    def complain(self, text: str, key: str = "") -> None:
        self.wrong.append(f"{self.at(key) if key else self.path}: {text}")

    def take(self, key: str, check: Callable[[object], T], default: T) -> T:
        """Return the checked value of *key*; where there is none, or a wrong one, the default."""
        if not self.has(key):
            return default
        try:
            return check(self.raw[key])
        except ValueError as error:
            self.complain(str(error), key)
            return default

    def need(self, key: str, check: Callable[[object], T], default: T) -> T:
        """Do the same for a key that must be there."""
        self.insist(key)
        return self.take(key, check, default)

    def insist(self, key: str, why: str = "is needed") -> None:
        """Complain where there is no *key*."""
        if self.is_fit and not self.has(key):
            self.complain(why, key)

    def items(self, key: str) -> Iterator[tuple[object, str]]:
        """Yield the items of a list with their paths."""
        raw = self.raw[key] if self.has(key) else []
        if not isinstance(raw, list | tuple):
            self.complain("must be a list", key)
            return
        yield from ((item, f"{self.at(key)}[{index}]") for index, item in enumerate(raw))

    def entries(self, key: str) -> Iterator["Entry"]:
        yield from (Entry(raw, path, self.wrong) for raw, path in self.items(key))

    def child(self, key: str) -> "Entry":
        return Entry(self.raw.get(key) if self.has(key) else None, self.at(key), self.wrong)

    def close(self) -> None:
        """Complain about every key that nobody asked for."""
        known = ", ".join(sorted(self.used))
        for key in self.raw:
            if key not in self.used:
                self.complain(f"is no key; there are {known}", str(key))


def read(raw: object, what: Callable[[Entry], T]) -> T:
    """Return *what* is in a document; raise InvalidDocument with all that is wrong."""
    wrong: list[str] = []
    top = Entry(raw, "", wrong)
    found = what(top)
    top.close()
    if wrong:
        raise InvalidDocument(wrong)
    return found


def text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("must be text")
    return value


def weight(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_WEIGHT:
        raise ValueError(f"must be a number of GB/s, from 0 to {MOST_WEIGHT:.0f}")
    return float(value) + 0.0


def whole(least: int, most: int) -> Callable[[object], int]:
    """Return a check for integers within bounds."""

    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"must be an integer from {least} to {most}")
        return value

    return check


def driver(value: object) -> str:
    if not isinstance(value, str) or not is_driver_name(value):
        raise ValueError("must be the name of a driver, as gpu.example.com")
    return value


def attribute(value: object) -> str:
    if not isinstance(value, str) or not is_qualified_name(value):
        raise ValueError("must be the name of an attribute, as example.com/name")
    return value


def attributes(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("must be names of attributes")
    return tuple(attribute(item) for item in value)


def label(value: object) -> str:
    if not isinstance(value, str) or not is_label_key(value):
        raise ValueError("must be the key of a label or an annotation, as example.com/name")
    return value


def labels(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping) or not value:
        raise ValueError("must be labels with their values")
    for key, item in value.items():
        label(key)
        if not isinstance(item, str) or not is_label_value(item):
            raise ValueError(f"{key} must have the value of a label, as text")
    return tuple(sorted(value.items()))


def one_of(*choices: str) -> Callable[[object], str]:
    """Return a check for one of some words."""

    def check(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return value

    return check
