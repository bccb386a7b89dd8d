"""One process's watch of one resource: late, cut off, listed anew and told twice, but never out of order."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from extender.demo.apiserver.failure import Failure
from extender.demo.apiserver.kinds import Kind
from extender.demo.apiserver.selection import selection_of
from extender.demo.apiserver.store import Record, Store
from extender.kube.listing import Recall
from extender.kube.recent import Recent
from extender.kube.resource import Glance, Resource
from extender.kube.told import Seen, Told
from extender.model.change import Changed, Gone, Listed
from extender.model.device import ResourceSlice
from extender.model.names import ObjectKey

Json = dict[str, Any]
# How long ago what is told was read.
TRANSIT_S: Final = 0.001


@dataclass(slots=True)
class Watching:
    """Where the watch is; *listed* is a list that has been read and is still on its way."""

    store: Store
    kind: Kind
    resource: Resource
    recent: Recent
    tell: Callable[[Told], None]
    moment: Callable[[], float]
    complain: Callable[[str], None]
    recall: Recall
    glance: Glance
    position: int = 0
    is_on: bool = True
    listed: tuple[Listed, int] | None = None
    last: Told | None = None

    @property
    def is_behind(self) -> bool:
        return self.is_on and (self.listed is not None or self.store.changed_at(self.kind) > self.position)

    @contextmanager
    def following(self) -> Iterator[None]:
        """List everything, and go on until the end of the block."""
        self.read()
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False

    def read(self) -> None:
        """Read everything as it is now; whoever is told hears of it later."""
        selection = selection_of(self.resource.only, self.kind)
        items = [self._recalled(self._parsed(item)) for item in self.store.all(self.kind) if selection.matches(item)]
        self.listed = Listed(self.resource.kind, tuple(items)), self.store.revision

    def step(self) -> None:
        """Tell the next thing; where there is none, that there is none."""
        if not self.is_on:
            return
        if self.listed is not None:
            (self.last, self.position), self.listed = self.listed, None
            self.tell(self.last)
        elif records := self._records():
            self._tell(records[0])
        elif self.listed is not None:
            return
        else:
            self.position = self.store.revision
        self.tell(Seen(self.resource, str(self.position), self.moment() - TRANSIT_S))

    def again(self) -> None:
        """Tell the last thing once more."""
        if self.is_on and self.last is not None and not isinstance(self.last, Listed):
            self.tell(self.last)

    def _records(self) -> list[Record]:
        """Return what happened since; where that is forgotten by now, everything is listed anew."""
        try:
            return self.store.since(self.kind, self.position)
        except Failure:
            self.read()
            return []

    def _tell(self, record: Record) -> None:
        self.position = record.revision
        selection = selection_of(self.resource.only, self.kind)
        was, item = selection.matches(record.before), record.after
        if item is not None and selection.matches(item):
            self.last = Changed(self._parsed(item))
        elif was:
            self.last = Gone(self.resource.kind, ObjectKey(*record.key))
        else:
            return
        self.tell(self.last)

    def _recalled(self, fresh: Any) -> Any:
        """Return what is known in place of *fresh*, which has to say the same."""
        known = self.recall(fresh)
        if known != fresh and not isinstance(fresh, ResourceSlice):
            self.complain(f"{fresh} was taken for {known}")
        return known

    def _parsed(self, item: Json) -> Any:
        """Read *item*, or return what an answer has shown of it, which has to be the same."""
        if (brief := self.glance(self.resource, item)) is not None:
            return brief
        fresh = self.resource.parse(item, "v1")
        known = self.recent.read(type(fresh), item, lambda: fresh)
        if known != fresh:
            self.complain(f"what an answer has shown of {item['metadata']['name']} is not what is stored")
        return known
