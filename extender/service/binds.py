"""Bindings under way: one for each pod, which ends in its own time, whoever waits for it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from extender.model.names import Uid
from extender.scheduling.binding import Binder
from extender.scheduling.endings import NotBound, Order, Result
from extender.service.carrier import Carrier
from extender.service.seats import Crowded, Seats
from extender.web.crash import Reported, reported

# The part of the limit in which a binding may go forward; the rest is for taking it back.
FORWARD_SHARE: Final = 0.75
# The part of that in which it may wait for its seat: who gets one late is to have time for slow writes.
WAITING_SHARE: Final = 0.25
UNDER_WAY: Final = "the pod is being bound still"
CROWDED: Final = "the API server is slow: so many pods are being bound that this one's turn did not come in time"
PATH: Final = "/bind"


@dataclass(slots=True)
class Binds:
    """Serialises by pod. limit_s: how long a caller waits; the work itself goes on, to finish or to undo.

    Each of *ended* is told of each result once.
    """

    binder: Binder
    carrier: Carrier
    limit_s: float
    ended: Sequence[Callable[[Order, Result], None]]
    seats: Seats = field(default_factory=Seats)
    _tasks: dict[Uid, tuple[Order, asyncio.Task[Result | Reported]]] = field(default_factory=dict)

    async def bind(self, order: Order) -> str:
        """Bind a pod; return what went wrong, nothing where it is bound. Raise Reported."""
        known = self._tasks.get(order.uid)
        if known is not None and known[0] != order:
            return f"{UNDER_WAY}, to node {known[0].node}"
        task = known[1] if known else self._begin(order)
        done, _ = await asyncio.wait({task}, timeout=self.limit_s)
        if not done:
            return UNDER_WAY
        result = task.result()
        if isinstance(result, Reported):
            raise result
        return result.message if isinstance(result, NotBound) else ""

    def is_under_way(self, pod: Uid) -> bool:
        """Tell whether *pod* is being bound."""
        return pod in self._tasks

    @property
    def is_idle(self) -> bool:
        """Whether none is under way."""
        return not self._tasks

    async def stop(self) -> None:
        """Wait for what is under way."""
        if self._tasks:
            await asyncio.wait({task for _, task in self._tasks.values()}, timeout=self.limit_s)

    def _begin(self, order: Order) -> asyncio.Task[Result | Reported]:
        task = asyncio.create_task(self._carried(order), name=f"bind {order.pod}")
        self._tasks[order.uid] = order, task
        return task

    async def _carried(self, order: Order) -> Result | Reported:
        try:
            result = await self._seated(order)
        except Exception as error:  # noqa: BLE001 - whoever called may not wait any more, and would not hear of it
            crash = Reported(reported(error, PATH))
            # What was sent last may arrive yet.
            self._tell(order, NotBound(str(crash), is_waiting=True, is_open=True))
            return crash
        finally:
            del self._tasks[order.uid]
        self._tell(order, result)
        return result

    async def _seated(self, order: Order) -> Result:
        began, forward_s = self.carrier.now(), FORWARD_SHARE * self.limit_s
        try:
            async with self.seats.one(order.pod.namespace, WAITING_SHARE * forward_s):
                return await self.carrier.carry(self.binder.bind(order), began + forward_s, began + self.limit_s)
        except Crowded:
            return NotBound(CROWDED, is_unbegun=True)

    def _tell(self, order: Order, result: Result) -> None:
        for hear in self.ended:
            try:
                hear(order, result)
            except Exception as error:  # noqa: BLE001 - whatever is made of it, the pod is bound or it is not
                reported(error, PATH)
