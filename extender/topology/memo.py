"""Answers that are remembered up to a bound."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, Generic, Protocol, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")
Thing = TypeVar("Thing")


class Memo(dict[Key, Value]):
    """Forgets the oldest entry for a new one where there are *bound* entries."""

    def __init__(self, bound: int) -> None:
        super().__init__()
        self.bound = bound

    def __setitem__(self, key: Key, value: Value) -> None:
        if len(self) >= self.bound and key not in self:
            del self[next(iter(self))]
        super().__setitem__(key, value)


class Heavy(Protocol):
    """Something large that several answers may have in common, told apart by identity."""

    @property
    def cells(self) -> int:
        """How large it is."""
        ...


# What all that is heavy in such answers may come to: of matrices of pairs, some 32 bytes each.
CELLS: Final = 1 << 22


class Latest(Generic[Thing, Key, Value]):
    """Remembers what was worked out of things that take each other's place: of each name, of the last thing only.

    Forgets all of the oldest name for a new answer where there are *bound* answers, or where what *heavy* tells of
    them is too much together; what several have in common counts once. Things are told apart by identity.
    """

    def __init__(self, bound: int, heavy: Callable[[Value], Iterable[Heavy]]) -> None:
        self._bound, self._count, self._heavy = bound, 0, heavy
        self._known: dict[str, tuple[Thing, dict[Key, Value]]] = {}
        self._cells, self._holders = 0, Counter[Heavy]()

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
        answers[key] = value
        self._count += 1
        self._hold(value)
        while self._cells > CELLS and len(self._known) > 1:
            self._forget(next(iter(self._known)))

    def _forget(self, name: str) -> None:
        answers = self._known.pop(name)[1]
        self._count -= len(answers)
        for value in answers.values():
            self._let_go(value)

    def _hold(self, value: Value) -> None:
        for item in self._heavy(value):
            self._cells += 0 if item in self._holders else item.cells
            self._holders[item] += 1

    def _let_go(self, value: Value) -> None:
        for item in self._heavy(value):
            self._holders[item] -= 1
            if not self._holders[item]:
                del self._holders[item]
                self._cells -= item.cells
