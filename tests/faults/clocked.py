"""The product as a program whose wall clock jumps: python -m tests.faults.clocked FILE ARGUMENTS OF DRA-EXTENDER.

FILE holds the seconds by which the clock is wrong; SIGUSR1 has it read again.
"""

import signal
import sys
import time
from pathlib import Path

REAL = time.time


class Clock:
    """The time of day as somebody has set it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.set()

    def set(self, *_: object) -> None:
        self.ahead = float(self.path.read_text())

    def __call__(self) -> float:
        return REAL() + self.ahead


if __name__ == "__main__":
    clock = Clock(Path(sys.argv[1]))
    signal.signal(signal.SIGUSR1, clock.set)
    # Before the product is imported, for it keeps the function.
    time.time = clock

    from extender.cli import main

    sys.argv[:2] = ["dra-extender"]
    sys.exit(main())
