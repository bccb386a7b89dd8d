"""All objects of a resource as they were at one moment, page by page."""

from collections.abc import Callable, Iterator
from typing import Final

from extender.kube.api import Api
from extender.kube.pace import Turns
from extender.kube.page import Page, page_of
from extender.kube.resource import Served
from extender.kube.setback import Remedy, Setback
from extender.model.change import Noun
from extender.model.problem import Problem

Item = Noun | Problem
Recall = Callable[[Item], Item]

PAGE_TIMEOUT_S: Final = 60.0
GROWTH: Final = 4
RESTARTS: Final = 4


def itself(item: Item) -> Item:
    """Recall nothing."""
    return item


class Listing:
    """One list. Asked without a version it is consistent: no older than the moment at which it was begun."""

    def __init__(self, api: Api, served: Served, turns: Turns, page_items: int, recall: Recall = itself) -> None:
        self._api = api
        self._served = served
        self._turns = turns
        self._page_items = page_items
        self._recall = recall
        self.items: list[Item] = []

    async def read(self) -> str | Setback:
        """Fill *items* and return the version of the list.

        A token that has expired means beginning anew, with larger pages: the list took longer than versions are kept.
        """
        version = await self._pages()
        for _ in range(RESTARTS):
            if not isinstance(version, Setback) or version.remedy is not Remedy.RELIST:
                break
            self._page_items *= GROWTH
            version = await self._pages()
        return version

    async def _pages(self) -> str | Setback:
        self.items, token = [], ""
        while True:
            page = await self._page(token)
            if isinstance(page, Setback):
                return page
            await self._turns.take(self._steps(page.items))
            token = page.token
            if not token:
                return page.version

    async def _page(self, token: str) -> Page | Setback:
        query = [
            *self._served.resource.query,
            ("limit", str(self._page_items)),
            *([("continue", token)] if token else []),
        ]
        reply = await self._api.call("GET", self._served.path(), query=query, timeout_s=PAGE_TIMEOUT_S)
        return page_of(reply, self._served.resource.reading)

    def _steps(self, items: list[object]) -> Iterator[None]:
        for item in items:
            self.items.append(self._recall(self._served.resource.parse(item, self._served.version)))
            yield
