"""Lists, whole or in pages; all pages show the moment at which the first was asked for."""

import base64
from typing import Final

import orjson

from extender.demo.apiserver.failure import Failure
from extender.demo.apiserver.kinds import Json, Kind
from extender.demo.apiserver.selection import Selection
from extender.demo.apiserver.store import Store

KEPT_MOMENTS: Final = 50
# Which objects a list shows, and of which moment.
Moment = tuple[Kind, str, Selection, int]


class Lists:
    """Lists of what a store holds. The moments of unfinished lists are kept, the oldest only while there is room."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._moments: dict[Moment, list[Json]] = {}

    def page(self, kind: Kind, namespace: str, limit: int, token: str, selection: Selection) -> Json:
        """Return a list, of at most *limit* objects unless it is 0, from where *token* says."""
        revision, start = self._place(token) if token else (self._store.revision, 0)
        moment = kind, namespace, selection, revision
        items = self._kept(moment) if token else list(filter(selection.matches, self._store.all(kind, namespace)))
        end = start + limit if limit else len(items)
        metadata: Json = {"resourceVersion": str(revision)}
        if end < len(items):
            self._keep(moment, items)
            metadata |= {"continue": _token(revision, end), "remainingItemCount": len(items) - end}
        return {
            "kind": f"{kind.name}List",
            "apiVersion": kind.api_version,
            "metadata": metadata,
            "items": [_bare(item) for item in items[start:end]],
        }

    def forget(self) -> None:
        """Let all tokens expire."""
        self._moments.clear()

    def _keep(self, moment: Moment, items: list[Json]) -> None:
        self._moments[moment] = items
        while len(self._moments) > KEPT_MOMENTS:
            del self._moments[next(iter(self._moments))]

    def _kept(self, moment: Moment) -> list[Json]:
        items = self._moments.get(moment)
        if items is None:
            raise Failure(410, "The provided continue parameter is too old to display a consistent list result.")
        return items

    def _place(self, token: str) -> tuple[int, int]:
        try:
            read = orjson.loads(base64.urlsafe_b64decode(token))
            return int(read["rv"]), int(read["start"])
        except (ValueError, KeyError, TypeError):
            raise Failure(400, "continue key is not valid") from None


def _token(revision: int, start: int) -> str:
    return base64.urlsafe_b64encode(orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start})).decode()


def _bare(item: Json) -> Json:
    """Leave kind and version to the list, as the API server does."""
    return {name: value for name, value in item.items() if name not in ("kind", "apiVersion")}
