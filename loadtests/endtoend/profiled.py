"""``python -m loadtests.endtoend.profiled FILE serve ...``: the extender, profiled from one SIGUSR2 to the next.

The clock is that of the thread: what other programs do meanwhile does not count.
"""

import signal
import sys
import time
from cProfile import Profile

from extender.cli import main


def profiled(path: str) -> None:
    """Begin at the first signal; end at the second, and write what was found to *path*."""
    profile, is_on = Profile(time.thread_time), False

    def turn(_signal: int, _frame: object) -> None:
        nonlocal is_on
        is_on = not is_on
        if is_on:
            profile.enable()
        else:
            profile.disable()
            profile.dump_stats(path)

    signal.signal(signal.SIGUSR2, turn)


if __name__ == "__main__":
    profiled(sys.argv.pop(1))
    sys.exit(main())
