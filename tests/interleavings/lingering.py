"""Pods and claims that are deleted and do not go: somebody's finalizer keeps them, for as long as he likes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final

from extender.demo.apiserver.kinds import DRA, POD, Kind
from extender.demo.apiserver.server import ApiServer
from extender.demo.apiserver.store import Key, key_of
from tests.interleavings.manifests import STRANGER

Json = dict[str, Any]
Act = tuple[float, Callable[[], object]]
KEEPS: Final = "example.com/keeps"
# How many of those that are kept are deleted at once; and of the others that may be, how many are pods.
DELETED: Final = 0.6
PODS: Final = 0.6


@dataclass(slots=True)
class Lingering:
    """Whoever keeps pods and claims."""

    api: ApiServer
    random: Random

    def acts(self) -> dict[str, Act]:
        return {"keep": (14, self.keep), "let go": (5, self.release)}

    def keep(self) -> bool:
        """Keep a pod or a claim from going, and perhaps delete it."""
        kind = POD if self.random.random() < PODS else self._claims()
        items = [
            item
            for item in self.api.store.all(kind)
            if not item["metadata"].get("deletionTimestamp") and not _is_kept(item) and not _is_strange(item)
        ]
        if not items:
            return False
        key = key_of(self.random.choice(items))
        self.api.registry.update(kind, key, "", _kept)
        if self.random.random() < DELETED:
            self.api.registry.delete(kind, key, {})
        return True

    def release(self) -> bool:
        """Let somebody go."""
        found = list(self._found())
        if found:
            self._let_go(*self.random.choice(found))
        return bool(found)

    def decrees(self) -> list[Callable[[], object]]:
        """Return what there is to be done until nobody is kept, in any order."""
        found: list[Callable[[], object]] = [partial(self._let_go, kind, key) for kind, key in self._found()]
        self.random.shuffle(found)
        return found

    def _found(self) -> Iterator[tuple[Kind, Key]]:
        for kind in (POD, self._claims()):
            yield from ((kind, key_of(item)) for item in self.api.store.all(kind) if _is_kept(item))

    def _let_go(self, kind: Kind, key: Key) -> None:
        if self.api.store.get(kind, key):
            self.api.registry.update(kind, key, "", _free)

    def _claims(self) -> Kind:
        return self.api.kinds[DRA, "v1", "resourceclaims"]


def _is_kept(item: Json) -> bool:
    return KEEPS in (item["metadata"].get("finalizers") or ())


def _is_strange(item: Json) -> bool:
    """Tell whether *item* is another allocator's, whose pools stay closed for as long as it is there."""
    return str(item["metadata"]["name"]).startswith(STRANGER)


def _kept(item: Json) -> Json:
    finalizers = [*(item["metadata"].get("finalizers") or ()), KEEPS]
    return {**item, "metadata": {**item["metadata"], "finalizers": finalizers}}


def _free(item: Json) -> Json:
    finalizers = [name for name in item["metadata"].get("finalizers") or () if name != KEEPS]
    return {**item, "metadata": {**item["metadata"], "finalizers": finalizers}}
