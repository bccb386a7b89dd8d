"""The ResourceSlices of a file or a pipe, and complaints about whatever else is in there."""

import sys
from collections.abc import Iterator
from pathlib import Path

from extender.cli.documents import NotJson, documents
from extender.model.device import ResourceSlice
from extender.model.parse import parse_list
from extender.model.problem import Problem


class Reading:
    """Reads slices once; *complaints* fill while it does. One bad object does not stop the others."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.complaints: list[str] = []

    def slices(self) -> Iterator[ResourceSlice]:
        """Yield what could be read, in the order of the input."""
        for item in self._objects():
            if isinstance(item, ResourceSlice):
                yield item
            else:
                self.complaints.append(str(item))

    def _objects(self) -> Iterator[ResourceSlice | Problem | NotJson]:
        for document in documents(self._bytes()):
            if isinstance(document, NotJson):
                yield document
            else:
                yield from parse_list(document)

    def _bytes(self) -> bytes:
        return self.file.read_bytes() if self.file else sys.stdin.buffer.read()
