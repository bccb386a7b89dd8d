"""Seats for bindings: so many go on at a time, and who waits for one has written nothing that would be taken back.

kube-scheduler binds as many pods at once as it likes. Where the API server is slow, a thousand would wait for each
other with half of their writes done, and have them taken back for lack of time.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Final

# Half of these are for the pods of one namespace, as long as those of no other are bound.
SEATS: Final = 128


class Crowded(Exception):  # noqa: N818 - says what is so, and is caught by that name
    """No seat became free in time."""


@dataclass(slots=True)
class Group:
    """Those who have a seat, and who waits for one: by number, whoever came first."""

    taken: int = 0
    waiting: deque[tuple[int, asyncio.Future[None]]] = field(default_factory=deque)


@dataclass(slots=True)
class Seats:
    """Given to who came first, but none to a group that has as many as are free: no group keeps all others out.

    Of several that hang the first has half, the next a quarter; as these leave, all come to have as many as stay free.
    """

    most: int = SEATS
    groups: dict[str, Group] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    @asynccontextmanager
    async def one(self, of: str, patience_s: float) -> AsyncIterator[None]:
        """Have a seat within the block, for one of the group *of*. Raise Crowded where none is free in time."""
        group = self.groups.setdefault(of, Group())
        try:
            await self._awaited(group, patience_s)
            try:
                yield
            finally:
                self._returned(group)
        finally:
            # By now there may be another group of that name, for those who came after the last of this one had left.
            if not group.taken and not group.waiting and self.groups.get(of) is group:
                del self.groups[of]

    async def _awaited(self, group: Group, patience_s: float) -> None:
        if group.taken < self._free():
            group.taken += 1
            return
        try:
            async with asyncio.timeout(patience_s):
                await self._given(group)
        except TimeoutError:
            raise Crowded from None

    async def _given(self, group: Group) -> None:
        waiting = next(self._numbers), asyncio.get_running_loop().create_future()
        group.waiting.append(waiting)
        try:
            await waiting[1]
        except asyncio.CancelledError:
            if not waiting[1].cancelled():  # it was given a seat in the same moment
                self._returned(group)
            elif waiting in group.waiting:
                group.waiting.remove(waiting)
            raise

    def _returned(self, group: Group) -> None:
        group.taken -= 1
        # For one that is free again the first may be gone in the same moment.
        while able := self._able():
            first = min(able, key=lambda each: each.waiting[0][0])
            _, seat = first.waiting.popleft()
            if not seat.done():
                first.taken += 1
                seat.set_result(None)

    def _able(self) -> list[Group]:
        free = self._free()
        return [group for group in self.groups.values() if group.waiting and group.taken < free]

    def _free(self) -> int:
        return self.most - sum(group.taken for group in self.groups.values())
