"""All objects of a resource as they were at one moment, page by page."""

from collections.abc import Callable, Iterator
from typing import Final

from extender.kube.answer import Answer, Unanswered
from extender.kube.api import Api
from extender.kube.pace import Backoff, Pace, Turns
from extender.kube.page import Page, page_of
from extender.kube.request import TOO_LARGE
from extender.kube.resource import Served
from extender.kube.setback import Remedy, Setback
from extender.model.change import Noun
from extender.model.problem import Problem

Item = Noun | Problem
Recall = Callable[[Item], Item]

PAGE_TIMEOUT_S: Final = 60.0
# How often a page that did not come is asked for again, and the first pause before that: all that was read so far would
# be read again otherwise, while the API server is busy.
PAGE_RETRIES: Final = 5
FIRST_PAUSE_S: Final = 0.5
GROWTH: Final = 4
RESTARTS: Final = 4


def itself(item: Item) -> Item:
    """Return what was listed: nothing is known in its place."""
    return item


class PageSize:
    """How many objects a page has: *usual* ones, and up to so many times as many where a list was too slow."""

    def __init__(self, usual: int) -> None:
        self._usual = usual
        self.items = usual

    def grow(self) -> None:
        self.items = min(self.items * GROWTH, self._usual * GROWTH**RESTARTS)

    def shrink(self) -> None:
        self.items = max(self.items // GROWTH, min(self.items, self._usual))

    def divide(self) -> bool:
        """Have pages of fewer objects than usual, too; tell whether that can be."""
        can_be, self.items = self.items > 1, max(self.items // GROWTH, 1)
        return can_be

    def reset(self) -> None:
        self.items = self._usual


class Listing:
    """One list. Asked without a version it is consistent: no older than the moment at which it was begun."""

    def __init__(self, api: Api, served: Served, turns: Turns, size: PageSize, recall: Recall = itself) -> None:
        self._api = api
        self._served = served
        self._turns = turns
        self._size = size
        self._recall = recall
        self.items: list[Item] = []

    async def read(self, pace: Pace, tell: Callable[[Setback], None]) -> str | Setback:
        """Fill *items* and return the version of the list. *tell* hears of pages that are asked for again.

        A token that has expired means beginning anew, with larger pages: the list took longer than versions are kept.
        """
        version = await self._pages(pace, tell)
        for _ in range(RESTARTS):
            if not isinstance(version, Setback) or version.remedy is not Remedy.RELIST:
                break
            self._size.grow()
            version = await self._pages(pace, tell)
        if isinstance(version, Setback) and not version.is_expired:
            # Pages may have become too large to come in time, or to get through a proxy.
            self._size.shrink()
        return version

    async def _pages(self, pace: Pace, tell: Callable[[Setback], None]) -> str | Setback:
        self.items, token = [], ""
        while True:
            page = await self._page(token, pace, tell)
            if isinstance(page, Setback):
                return page
            await self._turns.take(self._steps(page.items))
            token = page.token
            if not token:
                return page.version

    async def _page(self, token: str, pace: Pace, tell: Callable[[Setback], None]) -> Page | Setback:
        """Return the page, asked for again where it did not come; the first is left to whoever begins a list anew."""
        page, backoff = await self._asked(token), Backoff(pace, FIRST_PAUSE_S)
        for _ in range(PAGE_RETRIES if token else 0):
            if not (isinstance(page, Setback) and page.is_passing):
                break
            tell(page)
            await backoff.wait(page.pause_s)
            page = await self._asked(token)
        return page

    async def _asked(self, token: str) -> Page | Setback:
        reply = await self._reply(token)
        while isinstance(reply, Answer) and reply.status == TOO_LARGE and self._size.divide():
            reply = await self._reply(token)
        return page_of(reply, self._served.resource.reading)

    async def _reply(self, token: str) -> Answer | Unanswered:
        query = [
            *self._served.resource.query,
            ("limit", str(self._size.items)),
            *([("continue", token)] if token else []),
        ]
        return await self._api.call("GET", self._served.path(), query=query, timeout_s=PAGE_TIMEOUT_S)

    def _steps(self, items: list[object]) -> Iterator[None]:
        for item in items:
            self.items.append(self._recall(self._served.read(item)))
            yield
