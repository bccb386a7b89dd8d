"""``python -m loadtests.verbs.timed FILE serve ...``: the extender as it is, and each verb's own time into FILE.

A line for each call: when it ended, its verb, its result, and how many seconds it took as the extender's own histogram
is told them. The histogram itself has buckets only, and the longest call is not in it.
"""

import sys
import time

from extender.cli import main
from extender.telemetry.metrics import Metrics


def timed(path: str) -> None:
    """Have each call written down: kept in memory until the end would be growth."""
    file = open(path, "w", buffering=1 << 16)  # noqa: SIM115, PTH123 - as long as the process lives
    told = Metrics.verb

    def heard(self: Metrics, verb: str, result: str, seconds: float) -> None:
        told(self, verb, result, seconds)
        file.write(f"{time.time():.6f} {verb} {result} {seconds:.7f}\n")
        if verb == "bind":
            file.flush()

    Metrics.verb = heard  # type: ignore[method-assign]  # the product has no such switch, and needs none


if __name__ == "__main__":
    timed(sys.argv.pop(1))
    sys.exit(main())
