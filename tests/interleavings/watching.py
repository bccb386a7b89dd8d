"""One process's watch of one resource: late, cut off, listed anew and told twice, but never out of order."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from extender.demo.apiserver.kinds import Kind
from extender.demo.apiserver.selection import selection_of
from extender.demo.apiserver.store import Record, Store, key_of
from extender.kube.resource import PODS, Resource
from extender.kube.told import Seen, Told
from extender.model.change import Changed, Gone, Listed
from extender.model.names import ObjectKey

Json = dict[str, Any]


@dataclass(slots=True)
class Watching:
    """Where the watch is; *listed* is a list that has been read and is still on its way."""

    store: Store
    kind: Kind
    resource: Resource
    tell: Callable[[Told], None]
    moment: Callable[[], float]
    position: int = 0
    listed: tuple[Listed, int] | None = None
    last: Told | None = None

    @property
    def is_behind(self) -> bool:
        return self.listed is not None or self.store.changed_at(self.kind) > self.position

    def read(self) -> None:
        """Read everything as it is now; whoever is told hears of it later."""
        selection = selection_of(self.resource.only, self.kind)
        items = [self._parsed(item) for item in self.store.all(self.kind) if selection.matches(item)]
        self.listed = Listed(self.resource.kind, tuple(items)), self.store.revision

    def step(self) -> None:
        """Tell the next thing; where there is none, that there is none."""
        if self.listed is not None:
            (self.last, self.position), self.listed = self.listed, None
            self.tell(self.last)
        elif records := self.store.since(self.kind, self.position):
            self._tell(records[0])
        else:
            self.position = self.store.revision
        self.tell(Seen(self.resource, str(self.position), self.moment()))

    def again(self) -> None:
        """Tell the last thing once more."""
        if self.last is not None and not isinstance(self.last, Listed):
            self.tell(self.last)

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

    def _parsed(self, item: Json) -> Any:
        return self.resource.parse(item, "v1")


def is_waiting(item: Json) -> bool:
    """Tell whether *item* is a pod that is watched."""
    return selection_of(PODS.only, PODS_KIND).matches(item)


PODS_KIND = Kind(name="Pod", plural="pods", is_namespaced=True, has_status=True)
__all__ = ["Watching", "is_waiting", "key_of"]
