"""Answers that are remembered up to a bound."""

from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
Thing = TypeVar("Thing")


class Memo(dict[Key, Value]):
    """Forgets the oldest entry for a new one where there are *bound* entries."""

    def __init__(self, bound: int) -> None:
        super().__init__()
        self.bound = bound

    def __setitem__(self, key: Key, value: Value) -> None:
        while len(self) >= self.bound:
            del self[next(iter(self))]
        super().__setitem__(key, value)


class Latest(Generic[Thing, Key, Value]):
    """Remembers what was worked out of things that take each other's place: of each name, of the last thing only.

    Forgets all of the oldest name for a new answer where there are *bound* answers. Things are told apart by identity.
    """

    def __init__(self, bound: int) -> None:
        self._bound, self._count = bound, 0
        self._known: dict[str, tuple[Thing, dict[Key, Value]]] = {}

    def __len__(self) -> int:
        return self._count

    def get(self, name: str, thing: Thing, key: Key) -> Value | None:
        known = self._known.get(name)
        return known[1].get(key) if known is not None and known[0] is thing else None

    def put(self, name: str, thing: Thing, key: Key, value: Value) -> None:
        """Remember what was not known, and forget what was of the thing whose place *thing* has taken."""
        known = self._known.get(name)
        if known is not None and known[0] is not thing:
            self._forget(name)
        while self._count >= self._bound:
            self._forget(next(iter(self._known)))
        answers = self._known.setdefault(name, (thing, {}))[1]
        before = len(answers)
        answers[key] = value
        self._count += len(answers) - before

    def _forget(self, name: str) -> None:
        self._count -= len(self._known.pop(name)[1])
