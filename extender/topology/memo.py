"""Answers that are remembered up to a bound."""

from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Memo(dict[Key, Value]):
    """Forgets the oldest entry for a new one where there are *bound* entries."""

    def __init__(self, bound: int) -> None:
        super().__init__()
        self.bound = bound

    def __setitem__(self, key: Key, value: Value) -> None:
        while len(self) >= self.bound:
            del self[next(iter(self))]
        super().__setitem__(key, value)
