"""``python -m loadtests.verbs.timed FILE serve ...``: the extender as it is, and each verb's own time into FILE.

A line for each call: when it ended, its verb, its result, the seconds that it took, and those of them that the
processor worked: filter and prioritize think without waiting for anything, so that the rest is other programs'. What a
filter waits before, for claims that it has not heard of while watches are read, or for nominations that the scheduler
has not heard of, is told apart: its seconds come last.
The extender's own histogram has buckets only, and the longest call is not in it. After SIGUSR2 a line, too, of how many
blocks of memory Python has in use: what is resident besides are holes between them.
"""

import signal
import sys
import time
from contextvars import ContextVar

from extender.cli import main
from extender.model.node import Pod
from extender.service.answers import Answers
from extender.web.routes import Reply, Routes

BLOCKS = "blocks"
# What the call under way has waited so far, and how much of that the processor worked.
WAITED: ContextVar[tuple[float, float]] = ContextVar("WAITED")


def timed(path: str) -> None:
    """Have each call written down: kept in memory until the end would be growth."""
    file = open(path, "w", buffering=1 << 16)  # noqa: SIM115, PTH123 - as long as the process lives
    told, hear = Routes.answer, Answers.hear

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
        file.write(f"{time.time():.6f} {verb} {reply.result} {spent:.7f} {work:.7f} {waited:.7f}\n")
        if verb == "bind":
            file.flush()
        return reply

    def count(*_: object) -> None:
        file.write(f"{time.time():.6f} {BLOCKS} {sys.getallocatedblocks()}\n")
        file.flush()

    signal.signal(signal.SIGUSR2, count)
    Routes.answer = answer  # type: ignore[method-assign]  # the product has no such switch, and needs none
    Answers.hear = heard  # type: ignore[method-assign]  # nor this one


if __name__ == "__main__":
    timed(sys.argv.pop(1))
    sys.exit(main())
