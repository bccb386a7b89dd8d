"""``python -m loadtests.verbs.timed FILE serve ...``: the extender as it is, and each verb's own time into FILE.

A line for each call: when it ended, its verb, its result, the seconds that it took, and those of them that the
processor worked: filter and prioritize are answered without waiting for anything, so that the rest is other programs'.
The extender's own histogram has buckets only, and the longest call is not in it. After SIGUSR2 a line, too, of how many
blocks of memory Python has in use: what is resident besides are holes between them.
"""

import signal
import sys
import time

from extender.cli import main
from extender.web.routes import Reply, Routes

BLOCKS = "blocks"


def timed(path: str) -> None:
    """Have each call written down: kept in memory until the end would be growth."""
    file = open(path, "w", buffering=1 << 16)  # noqa: SIM115, PTH123 - as long as the process lives
    told = Routes.answer

    async def answer(self: Routes, verb: str, body: bytes) -> Reply:
        began, worked = time.perf_counter(), time.thread_time()
        reply = await told(self, verb, body)
        spent, work = time.perf_counter() - began, time.thread_time() - worked
        file.write(f"{time.time():.6f} {verb} {reply.result} {spent:.7f} {work:.7f}\n")
        if verb == "bind":
            file.flush()
        return reply

    def count(*_: object) -> None:
        file.write(f"{time.time():.6f} {BLOCKS} {sys.getallocatedblocks()}\n")
        file.flush()

    signal.signal(signal.SIGUSR2, count)
    Routes.answer = answer  # type: ignore[method-assign]  # the product has no such switch, and needs none


if __name__ == "__main__":
    timed(sys.argv.pop(1))
    sys.exit(main())
