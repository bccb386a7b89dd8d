"""Watches: what happens to a kind, line by line, with bookmarks in between."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from extender.demo.apiserver.failure import Failure
from extender.demo.apiserver.kinds import Kind
from extender.demo.apiserver.selection import Selection
from extender.demo.apiserver.store import Record, Store, event_line
from extender.model.frozen import dataclass

# A bookmark comes this long before a watch ends by itself, so that the next begins where this one ended.
BEFORE_THE_END_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """What a client asked to watch. Without a *revision* it is told what there is first.

    A bookmark is sent only where the revision has moved on since, as the real server does. What comes to be selected
    is told as added, and what ceases to be as deleted, as it was while it was selected.
    """

    kind: Kind
    namespace: str
    revision: int | None
    has_bookmarks: bool
    seconds: float
    bookmark_s: float
    selection: Selection

    async def lines(self, store: Store) -> AsyncIterator[bytes]:
        """Yield events, as many at once as have come, until the time is over."""
        loop = asyncio.get_running_loop()
        end, position = loop.time() + self.seconds, store.revision if self.revision is None else self.revision
        first = position
        if self.revision is None:
            items = filter(self.selection.matches, store.all(self.kind, self.namespace))
            yield b"".join(event_line("ADDED", item) for item in items)
        bookmark = self._bookmark_after(loop.time(), end)
        woken = store.listen(self.kind)
        try:
            while loop.time() < end:
                woken.clear()
                news, position = self._news(store, position), max(position, store.revision)
                yield news
                if loop.time() >= bookmark:
                    yield self._bookmark(position) if position > first else b""
                    bookmark = self._bookmark_after(loop.time(), end)
                await _until(woken, min(bookmark, end) - loop.time())
        except Failure as failure:
            yield event_line("ERROR", failure.status())
        finally:
            store.leave(woken)

    def _bookmark_after(self, now: float, end: float) -> float:
        """Return when the next bookmark is due: once a minute, and shortly before the end."""
        last = end - BEFORE_THE_END_S
        return min(now + self.bookmark_s, last) if now < last else end

    def _news(self, store: Store, position: int) -> bytes:
        records = store.since(self.kind, position)
        return b"".join(self._line(item) for item in records if self.namespace in ("", item.key[0]))

    def _line(self, record: Record) -> bytes:
        was, is_now = self.selection.matches(record.before), self.selection.matches(record.after)
        if was == is_now or record.before is None or record.after is None:
            return record.line if was or is_now else b""
        if is_now:
            return event_line("ADDED", record.after)
        metadata = {**record.before["metadata"], "resourceVersion": str(record.revision)}
        return event_line("DELETED", {**record.before, "metadata": metadata})

    def _bookmark(self, position: int) -> bytes:
        if not self.has_bookmarks:
            return b""
        metadata = {"resourceVersion": str(position), "creationTimestamp": None}
        return event_line(
            "BOOKMARK", {"kind": self.kind.name, "apiVersion": self.kind.api_version, "metadata": metadata}
        )


async def _until(woken: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await woken.wait()
    except TimeoutError:
        return
