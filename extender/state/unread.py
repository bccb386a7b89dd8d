"""Pods that cannot be read: they are in no snapshot, which is of what devices are about."""

from collections.abc import Iterable
from typing import Final

from extender.model.change import Change, Changed, Gone, Listed, kind_of
from extender.model.footprint import Footprint
from extender.model.names import ObjectKey
from extender.model.node import Pod
from extender.model.problem import Problem

# Pods remembered of each kind: where more cannot be read, it is not those pods that are wrong.
MOST: Final = 10_000


class Unread:
    """Which pods cannot be read, of those that wait and of those that are bound. One writer."""

    def __init__(self) -> None:
        self._keys: dict[str, set[ObjectKey]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._keys.values()))

    def has(self, key: ObjectKey) -> bool:
        """Tell whether a pod of this name is there and cannot be read; which one of that name nobody knows."""
        return any(key in keys for keys in self._keys.values())

    def apply(self, change: Change) -> None:
        """Take *change* over, which is about pods."""
        keys = self._keys.setdefault(kind_of(change), set())
        match change:
            case Listed(_, items):
                keys.clear()
                _add(keys, (item.key for item in items if isinstance(item, Problem)))
            case Changed(Problem(key=key)):
                _add(keys, (key,))
            case Gone(_, key) | Changed(Pod(key=key) | Footprint(key=key)):
                keys.discard(key)


def _add(keys: set[ObjectKey], found: Iterable[ObjectKey]) -> None:
    for key in found:
        if len(keys) < MOST:
            keys.add(key)
