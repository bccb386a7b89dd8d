"""Objects and their history, in memory. Every write gets the next revision of the one counter that all kinds share.

What is stored is never modified: writes put other objects in its place, and readers keep what they have.
"""

import asyncio
from bisect import bisect_right
from collections import defaultdict
from typing import Final

import orjson

from extender.demo.apiserver.failure import Failure
from extender.demo.apiserver.kinds import Json, Kind
from extender.model.frozen import dataclass

Key = tuple[str, str]  # namespace and name

FIRST_REVISION: Final = 1000
HISTORY: Final = 20_000


@dataclass(frozen=True, slots=True)
class Record:
    """One step of a kind's history; *line* is the event as a watch sends it.

    *before* and *after* are the object as it was and as it is, None where it was not there or is no more.
    """

    revision: int
    key: Key
    line: bytes
    before: Json | None
    after: Json | None


class Store:
    """All objects. Listeners are woken by every write to the kind that they listen to."""

    def __init__(self) -> None:
        self.revision = FIRST_REVISION
        self._objects: defaultdict[Kind, dict[Key, Json]] = defaultdict(dict)
        self._history: defaultdict[Kind, list[Record]] = defaultdict(list)
        self._listeners: defaultdict[Kind, set[asyncio.Event]] = defaultdict(set)
        self._floor: defaultdict[Kind, int] = defaultdict(lambda: FIRST_REVISION)

    def get(self, kind: Kind, key: Key) -> Json | None:
        return self._objects[kind].get(key)

    def all(self, kind: Kind, namespace: str = "") -> list[Json]:
        """Return the objects of *kind*, of one namespace if it is named, in the order of their keys."""
        found = sorted(self._objects[kind].items())
        return [item for (inside, _), item in found if namespace in ("", inside)]

    def each(self, kind: Kind) -> list[Json]:
        """Return the objects of *kind* in any order."""
        return list(self._objects[kind].values())

    def put(self, kind: Kind, key: Key, item: Json) -> Json:
        """Store *item*, in place of what has its key, and return it with its new version."""
        before = self._objects[kind].get(key)
        stored = self._next(item)
        self._objects[kind][key] = stored
        event = event_line("ADDED" if before is None else "MODIFIED", stored)
        self._record(kind, Record(self.revision, key, event, before, stored))
        return stored

    def remove(self, kind: Kind, key: Key) -> Json:
        """Remove what has *key* and return it as it was last."""
        before = self._objects[kind].pop(key)
        gone = self._next(before)
        self._record(kind, Record(self.revision, key, event_line("DELETED", gone), before, None))
        return gone

    def compact(self) -> None:
        """Forget all history: who watches from before now must list again."""
        for kind in set(self._objects) | set(self._history):
            self._history[kind].clear()
            self._floor[kind] = self.revision

    def since(self, kind: Kind, revision: int) -> list[Record]:
        """Return what happened to *kind* after *revision*."""
        if revision < self._floor[kind]:
            raise Failure(410, f"too old resource version: {revision} ({self._floor[kind]})")
        history = self._history[kind]
        return history[bisect_right(history, revision, key=lambda record: record.revision) :]

    def changed(self, kind: Kind, revision: int) -> set[Key]:
        """Return the keys of what was written or removed after *revision*; all that there are, if that is too old."""
        try:
            return {record.key for record in self.since(kind, revision)}
        except Failure:
            return set(self._objects[kind])

    def changed_at(self, kind: Kind) -> int:
        """Return the revision of the last write to *kind*."""
        history = self._history[kind]
        return history[-1].revision if history else self._floor[kind]

    def listen(self, *kinds: Kind) -> asyncio.Event:
        """Return an event that is set when something happens to one of *kinds*, until ``leave``."""
        woken = asyncio.Event()
        for kind in kinds:
            self._listeners[kind].add(woken)
        return woken

    def leave(self, woken: asyncio.Event) -> None:
        for listeners in self._listeners.values():
            listeners.discard(woken)

    def _next(self, item: Json) -> Json:
        self.revision += 1
        return {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.revision)}}

    def _record(self, kind: Kind, record: Record) -> None:
        history = self._history[kind]
        history.append(record)
        if len(history) > HISTORY:
            self._floor[kind] = history[HISTORY // 2].revision
            del history[: HISTORY // 2 + 1]
        for woken in self._listeners[kind]:
            woken.set()


def event_line(event: str, item: Json) -> bytes:
    """Spell an event as a watch sends it."""
    return orjson.dumps({"type": event, "object": item}, option=orjson.OPT_APPEND_NEWLINE)


def key_of(item: Json) -> Key:
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
