"""What can wait until the scheduler has its answer is done a moment later, in the same order."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from extender.web.crash import reported

# Turns of the event loop until an answer that is known has left: a task ends, who waits for it goes on, and writes.
TURNS: Final = 3
TOLD: Final = "what is told of a decision"
# Calls something in the next turn of the event loop, with how many are left then.
Soon = Callable[[Callable[[int], None], int], object]


@dataclass(slots=True)
class Afterwards:
    """Work that waits for some turns of the event loop. Without *soon* nothing waits."""

    soon: Soon | None = None
    _waiting: deque[Callable[[], None]] = field(default_factory=deque)

    def put(self, work: Callable[[], None]) -> None:
        """Do *work* once the answers are on their way that are known now."""
        if self.soon is None:
            work()
            return
        self._waiting.append(work)
        if len(self._waiting) == 1:
            self.soon(self._turn, TURNS)

    def flush(self) -> None:
        """Do now what waits."""
        while self._waiting:
            work = self._waiting.popleft()
            try:
                work()
            except Exception as error:  # noqa: BLE001 - the answer has left, and what else waits is to be done
                reported(error, TOLD)

    def _turn(self, left: int) -> None:
        if left and self.soon is not None:
            self.soon(self._turn, left - 1)
        else:
            self.flush()


def in_turns() -> Afterwards:
    """Return one that waits for turns of the event loop that runs."""
    return Afterwards(lambda call, turns: asyncio.get_running_loop().call_soon(call, turns))
