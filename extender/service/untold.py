"""What is yet to be told, in the order in which it came, and found by whom it is about: hundreds may go at once."""

from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Generic, TypeVar

from extender.model.names import Uid

T = TypeVar("T")
Key = tuple[Uid, str]


class Untold(Generic[T]):
    """Something for each subject and some words about it."""

    def __init__(self) -> None:
        self._items: OrderedDict[Key, T] = OrderedDict()
        self._words: dict[Uid, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: Key) -> bool:
        return key in self._items

    def words(self, subject: Uid) -> Collection[str]:
        """Return in which words something waits of *subject*."""
        return self._words.get(subject, {})

    def put(self, key: Key, what: T) -> None:
        """Have *what* wait, in the place of what waits in the same words."""
        subject, words = key
        self._items[key] = what
        self._words.setdefault(subject, {})[words] = None

    def first(self) -> tuple[Key, T]:
        """Take out what came first."""
        key, what = self._items.popitem(last=False)
        self._unlisted(key)
        return key, what

    def drop(self, subject: Uid, is_over: Callable[[T], bool]) -> int:
        """Take out what *is_over* of *subject*; say how much that was."""
        keys = [(subject, words) for words in self.words(subject)]
        over = [key for key in keys if is_over(self._items[key])]
        for key in over:
            del self._items[key]
            self._unlisted(key)
        return len(over)

    def clear(self) -> None:
        self._items.clear()
        self._words.clear()

    def _unlisted(self, key: Key) -> None:
        subject, words = key
        del self._words[subject][words]
        if not self._words[subject]:
            del self._words[subject]
