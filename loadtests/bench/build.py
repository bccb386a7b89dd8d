"""From raw JSON to nouns and a snapshot: seconds, and memory beyond that of bare Python with numpy."""

import gc
import subprocess
import sys
import tracemalloc
from pathlib import Path
from time import perf_counter

import orjson

from loadtests.bench.report import Report, median_ms
from tests import fleet

NODES = 5000
ROUNDS = 3


def resident_mb() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def measured() -> tuple[float, float, float]:
    """Build once: seconds in all, seconds of parsing, megabytes kept."""
    import numpy as np  # noqa: PLC0415 - its memory is not ours: it is there before the first measurement

    np.zeros(1)
    bare = resident_mb()
    from extender.model.change import Listed  # noqa: PLC0415 - our code's memory is ours
    from extender.model.device import ResourceSlice  # noqa: PLC0415 - our memory too
    from extender.model.parse import parse_list  # noqa: PLC0415 - our memory too
    from extender.state.cluster import Cluster  # noqa: PLC0415 - our memory too

    pages = [orjson.dumps(page(start)) for start in range(0, NODES, 250)]
    raw = sum(map(len, pages)) / 1e6
    gc.collect()
    gc.disable()
    started = perf_counter()
    nouns: list[object] = []
    while pages:
        nouns += parse_list(orjson.loads(pages.pop(0)))
    parsed = perf_counter() - started
    cluster = Cluster()
    cluster.apply(Listed(ResourceSlice, tuple(item for item in nouns if isinstance(item, ResourceSlice))))
    spent = perf_counter() - started
    del nouns
    gc.collect()
    assert cluster.snapshot.inventory.rows == 8 * NODES  # noqa: S101 - the benchmark would measure nothing
    print(f"{raw:.0f} MB of JSON", file=sys.stderr)
    return spent, parsed, resident_mb() - bare


def kept() -> tuple[float]:
    """Return the megabytes that the nouns of 5,000 slices take, which JSON's own memory would hide from the system."""
    from extender.model.parse import parse_list  # noqa: PLC0415 - imported while nothing is traced

    pages = [orjson.dumps(page(start)) for start in range(0, NODES, 250)]
    tracemalloc.start(1)
    nouns = [item for raw in pages for item in parse_list(orjson.loads(raw))]
    gc.collect()
    megabytes = tracemalloc.get_traced_memory()[0] / 1e6
    assert len(nouns) == NODES  # noqa: S101 - the benchmark would measure nothing
    return (megabytes,)


def reading_ms(raws: list[dict[str, object]]) -> float:
    """Return the median time from JSON to nouns."""
    from extender.model.parse import parse_list  # noqa: PLC0415 - not before bare memory is measured

    pages = [orjson.dumps({"kind": "List", "items": raws[start : start + 250]}) for start in range(0, len(raws), 250)]
    return median_ms(lambda: [list(parse_list(orjson.loads(raw))) for raw in pages], ROUNDS)


def page(start: int) -> dict[str, object]:
    """Return one page of the list, as an API server sends it."""
    items = [fleet.node_slice(number, 8, number % 12) for number in range(start, start + 250)]
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSliceList", "items": items}


def alone(what: str) -> tuple[float, ...]:
    """Measure in a fresh process: memory that one gave back, another would find."""
    command = [sys.executable, "-c", f"from loadtests.bench import build; print(*build.{what})"]
    return tuple(map(float, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()))


def main() -> None:
    runs = [alone("measured()") for _ in range(ROUNDS)]
    seconds, parsing, megabytes = (sorted(run[index] for run in runs)[ROUNDS // 2] for index in range(3))
    report = Report("build")
    report.add("5,000 slices x 8 from raw JSON, s", f"{seconds:.2f}", "1.5", f"of which parsing {parsing:.2f}")
    report.add("resident memory above Python with numpy, MB", f"{megabytes:.0f}", "120")
    report.add("the nouns of 5,000 slices x 8 alone, MB", f"{alone('kept()')[0]:.0f}", "60", "as allocated, traced")
    report.add("20,000 claims from raw JSON to nouns, ms", f"{reading_ms(fleet.claims(NODES)):.0f}")
    report.add("5,000 nodes from raw JSON to nouns, ms", f"{reading_ms(fleet.nodes(NODES)):.0f}")
    report.keep()


if __name__ == "__main__":
    main()
