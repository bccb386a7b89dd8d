"""``python -m loadtests.verbs.timed FILE serve ...``: the extender as it is, and each verb's own time into FILE.

A line for each call: when it ended, its verb, its result, the seconds that it took, and those of them that the
processor worked: filter and prioritize think without waiting for anything, so that the rest is other programs'. What a
filter waits before, for claims that it has not heard of while watches are read, or for nominations that the scheduler
has not heard of, is told apart: its seconds come last.
The extender's own histogram has buckets only, and the longest call is not in it. After SIGUSR2 a line, too, of how many
blocks of memory Python has in use: what is resident besides are holes between them.

Lines are written a moment later, so that no answer waits for that; with the line of SIGUSR2 all are there.
"""

import asyncio
import signal
import sys
import time
from collections import deque
from contextvars import ContextVar

from extender.cli import main
from extender.model.node import Pod
from extender.service.answers import Answers
from extender.web.routes import Reply, Routes

BLOCKS = "blocks"
LATER_S = 0.05
# What the call under way has waited so far, and how much of that the processor worked.
WAITED: ContextVar[tuple[float, float]] = ContextVar("WAITED")


def timed(path: str) -> None:
    """Have each call written down: kept in memory until the end would be growth."""
    file = open(path, "w", buffering=1 << 16)  # noqa: SIM115, PTH123 - as long as the process lives
    calls: deque[tuple[float, str, str, float, float, float]] = deque()
    told, hear = Routes.answer, Answers.hear

    def write() -> None:
        # The signal may come in the middle of this.
        while calls:
            ended, verb, result, spent, work, waited = calls.popleft()
            file.write(f"{ended:.6f} {verb} {result} {spent:.7f} {work:.7f} {waited:.7f}\n")
        file.flush()

    async def heard(self: Answers, pod: Pod) -> None:
        began, worked = time.perf_counter(), time.thread_time()
        await hear(self, pod)
        WAITED.set((time.perf_counter() - began, time.thread_time() - worked))

    async def answer(self: Routes, verb: str, body: bytes) -> Reply:
        WAITED.set((0.0, 0.0))
        began, worked = time.perf_counter(), time.thread_time()
        reply = await told(self, verb, body)
        waited, beside = WAITED.get()
        spent, work = time.perf_counter() - began - waited, time.thread_time() - worked - beside
        if not calls:
            asyncio.get_running_loop().call_later(LATER_S, write)
        calls.append((time.time(), verb, reply.result, spent, work, waited))
        return reply

    def count(*_: object) -> None:
        write()
        file.write(f"{time.time():.6f} {BLOCKS} {sys.getallocatedblocks()}\n")
        file.flush()

    signal.signal(signal.SIGUSR2, count)
    Routes.answer = answer  # type: ignore[method-assign]  # the product has no such switch, and needs none
    Answers.hear = heard  # type: ignore[method-assign]  # nor this one


if __name__ == "__main__":
    timed(sys.argv.pop(1))
    sys.exit(main())
