"""Cold start, memory after it, and memory after many pods: the extender on an API server that answers at once.

5,000 nodes of 8 devices, 40,000 bound pods and 20,000 claims are listed over TLS. The pods of the cycles take turns
through filter and bind on a hundred names each, four shapes of claims; then they end. What is resident swings by some
megabytes within seconds, as garbage comes and is given back: each figure is the median of many looks meanwhile.
"""

import os
from argparse import ArgumentParser
from concurrent.futures import Future, ThreadPoolExecutor
from statistics import median
from time import sleep

from loadtests.bench.report import Report
from loadtests.verbs.stand import Extender, Json, Stand, stand
from loadtests.verbs.world import Size

SIZE = Size(nodes=5000, devices=8, pods=40_000, claims=20_000)
# Decisions that are remembered, by default: from then on nothing should grow.
RECORD = 10_000
SHAPES = "one,two,selector,one"
# Pods that wait at a time.
BATCH = 500
# What memory may move by once the record is full: arenas are not given back where they were taken.
STILL_MB = 5
LOOK_S = 0.5


def started(here: Stand, rounds: int, report: Report) -> None:
    """Measure some starts, after one that compiles the code, as the image has it."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(here.folder / "compiled")
    with here.extender(tls=True):
        seconds, resident, most = list[float](), list[float](), list[float]()
    for _ in range(rounds):
        with here.extender(tls=True) as ours:
            seconds.append(ours.ready_s)
            resident.append(ours.resident_mb())
            most.append(ours.resident_mb("VmHWM"))
    listed = f"{here.written / 1e6:.0f} MB listed over TLS; longest {max(seconds):.2f}"
    report.add("from the start of the process to ready, s", f"{median(seconds):.2f}", "4", listed)
    beside = f"at most, on the way: {median(most):.0f}"
    report.add("resident memory when ready, MB", f"{median(resident):.0f}", "220", beside)


def cycled(here: Stand, ours: Extender, pods: int) -> float:
    """Take pods through all verbs, and let them end; return what was resident meanwhile, in megabytes."""
    flags = ("-names=100", f"-shapes={SHAPES}", "-async", f"-batch={BATCH}", "-warm=0")
    with ThreadPoolExecutor(1) as beside:
        running = beside.submit(here.cycle, ours.url, f"-pods={pods}", *flags)
        resident = median(looked(ours, running))
    if running.result()["Failed"]:
        raise RuntimeError(f"pods failed: {running.result()['Failed']}")
    return resident


def looked(ours: Extender, running: Future[Json]) -> list[float]:
    """Look at what is resident until the pods have ended."""
    found = [ours.resident_mb()]
    while not running.done():
        sleep(LOOK_S)
        found.append(ours.resident_mb())
    return found


def grown(here: Stand, pods: int, report: Report) -> None:
    """Measure memory while pods come and go: a tenth of them first, to whom all others are compared."""
    with here.extender(tls=True) as ours:
        cycled(here, ours, RECORD)
        step = pods // 10
        full, before = cycled(here, ours, step), ours.blocks()
        report.add("resident memory with the decision record full, MB", f"{full:.0f}", "220")
        for number in range(1, 11):
            now = cycled(here, ours, step)
            target = f"{full + STILL_MB:.0f}" if number == 10 else ""
            beside = f"blocks of memory in use: {ours.blocks() / before - 1:+.2%}"
            report.add(f"after {number * step:,} more pods, MB", f"{now:.0f}", target, beside)


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--starts", type=int, default=3)
    arguments = parser.parse_args()
    report = Report("memory")
    with stand(SIZE) as here:
        started(here, arguments.starts, report)
        grown(here, arguments.pods, report)
    report.keep()


if __name__ == "__main__":
    main()
