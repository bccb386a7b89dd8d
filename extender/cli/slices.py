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
        others = 0
        for item in self._objects():
            if isinstance(item, ResourceSlice):
                yield item
            elif isinstance(item, Problem | NotJson):
                self.complaints.append(str(item))
            else:
                others += 1
        if others:
            self.complaints.append(f"what is no ResourceSlice is left out: {others}")

    def _objects(self) -> Iterator[object]:
        for document in documents(self._bytes()):
            if isinstance(document, dict):
                yield from parse_list(document)
            else:
                yield document

    def _bytes(self) -> bytes:
        return self.file.read_bytes() if self.file else sys.stdin.buffer.read()
