"""From the bytes of a watch to events."""

from typing import Final

import orjson

from extender.kube.answer import Json, complaint_in
from extender.kube.decoding import decoded
from extender.kube.reading import WHOLE, Reading
from extender.kube.setback import Remedy, Setback, setback_in
from extender.model.frozen import dataclass

KINDS: Final = frozenset(("ADDED", "MODIFIED", "DELETED", "BOOKMARK"))


class Lines:
    """Cuts what comes into lines, wherever the cuts in what comes are. The end of a stream may leave half a line."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that *chunk* completes."""
        first, *lines = chunk.split(b"\n")
        self._parts.append(first)
        if not lines:
            return []
        whole = b"".join(self._parts)
        self._parts = [lines.pop()]
        return [line for line in (whole, *lines) if line.strip()]


@dataclass(frozen=True, slots=True)
class Event:
    """One event: ADDED, MODIFIED, DELETED, or BOOKMARK, whose object has a version and nothing else.

    *length* is that of its line.
    """

    type: str
    object: Json
    version: str
    length: int


def event_of(line: bytes, reading: Reading = WHOLE) -> Event | Setback:
    """Read a line of a watch; what is no event, or reports an error, ends the watch."""
    try:
        read = reading.event(line)
        if isinstance(read, dict) and read.get("type") == "ERROR":
            # Its object is of another kind.
            read = decoded(line)
    except orjson.JSONDecodeError:
        return Setback(f"no JSON in a watch: {line[:80].decode(errors='replace')}", Remedy.RELIST)
    kind, inside = (read.get("type"), read.get("object")) if isinstance(read, dict) else (None, None)
    if not isinstance(inside, dict):
        return Setback("no event in a watch", Remedy.RELIST)
    if kind == "ERROR":
        return _error(inside)
    version = _version(inside)
    if kind not in KINDS or not version:
        return Setback(f"an event of a watch that cannot be read: {kind}", Remedy.RELIST)
    return Event(str(kind), inside, version, len(line))


def is_newer(version: str, position: str) -> bool:
    """Tell whether *version* comes after *position*; versions are numbers, by the API's promise since 1.35."""
    if version.isdecimal() and position.isdecimal():
        return int(version) > int(position)
    return version != position


def is_older(version: str, position: str) -> bool:
    """Tell whether *version* comes before *position* for certain."""
    return version.isdecimal() and position.isdecimal() and int(version) < int(position)


def _error(status: Json) -> Setback:
    """Read what a watch says last. It is not resumed then: nobody can say what it left out."""
    told = setback_in(complaint_in(status))
    return Setback(told.why, Remedy.RELIST, is_expired=told.is_expired)


def _version(inside: Json) -> str:
    metadata = inside.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return version if isinstance(version, str) else ""
