"""The ResourceSlices of a file or a pipe, perhaps with nodes, and complaints about whatever else is in there."""

from collections.abc import Iterator
from pathlib import Path

from extender.cli.documents import NotJson, objects, piped
from extender.model.device import ResourceSlice
from extender.model.node import Node
from extender.model.parse import key_of
from extender.model.problem import Problem

NO_SLICE = "no ResourceSlice of resource.k8s.io"


class Reading:
    """Reads slices once; *complaints* fill while it does. One bad object does not stop the others."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.complaints: list[str] = []

    def slices(self) -> Iterator[ResourceSlice]:
        """Yield what could be read, in the order of the input."""
        yield from (item for item in self.machines(or_node=False) if isinstance(item, ResourceSlice))

    def machines(self, *, or_node: bool = True) -> Iterator[ResourceSlice | Node]:
        """Yield nodes too."""
        for item in objects(self._bytes()):
            if isinstance(item, ResourceSlice) or (or_node and isinstance(item, Node)):
                yield item
            elif isinstance(item, NotJson) or (isinstance(item, Problem) and item.path != "kind"):
                self._complain(item)
            else:
                kind, key = (item.kind, item.key) if isinstance(item, Problem) else (type(item).__name__, key_of(item))
                wanted = "neither a ResourceSlice of resource.k8s.io nor a Node" if or_node else NO_SLICE
                self._complain(Problem(kind, key, "kind", f"is {wanted}"))

    def _complain(self, what: object) -> None:
        self.complaints.append(f"{self.file}: {what}" if self.file else str(what))

    def _bytes(self) -> bytes:
        return self.file.read_bytes() if self.file else piped().read()
