"""Watches that are open, for whoever can tell that one is behind: it is ended, and the next goes on where it was."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from extender.kube.api import Stream
from extender.kube.resource import Resource


@dataclass(slots=True)
class Watches:
    """The stream of each resource that is watched now, and when it was opened."""

    _open: dict[str, tuple[Stream, float]] = field(default_factory=dict)

    @contextmanager
    def reading(self, resource: Resource, stream: Stream, opened: float) -> Iterator[None]:
        """Let others end *stream* within the block; afterwards it is closed."""
        self._open[resource.name] = stream, opened
        try:
            yield
        finally:
            del self._open[resource.name]
            stream.close()

    def end(self, resource: Resource, before: float, why: str) -> None:
        """End the watch of *resource*, unless it was opened after *before*.

        Behind one address there may be several API servers, of which one is far behind; the next connection may lead
        to another.
        """
        stream, opened = self._open.get(resource.name, (None, 0.0))
        if stream is not None and opened <= before:
            stream.end(why)
