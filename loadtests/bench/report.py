"""What benchmarks share: repeated measurement, and a table that is printed and kept."""

import gc
import statistics
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

RESULTS = Path(__file__).parents[1] / "results"
HEADER = ("what", "median", "target", "beside it")


def median_ms(work: Callable[[], object], rounds: int) -> float:
    """Run *work* repeatedly without the garbage collector's pauses, and return the median in milliseconds."""
    return statistics.median(times_ms(work, rounds))


def times_ms(work: Callable[[], object], rounds: int) -> list[float]:
    """Time each round of *work* in milliseconds."""
    spent = []
    gc.disable()
    for _ in range(rounds):
        started = perf_counter()
        work()
        spent.append(1000 * (perf_counter() - started))
    gc.enable()
    return spent


class Report:
    """Rows of one benchmark."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows: list[tuple[str, str, str, str]] = [HEADER]
        self.notes: list[str] = []

    def add(self, what: str, value: str, target: str = "", beside: str = "") -> None:
        self.rows.append((what, value, target, beside))

    def note(self, line: str) -> None:
        """Say more below the table."""
        self.notes.append(line)

    def keep(self) -> None:
        """Print the table and write it to the results."""
        widths = [max(len(row[column]) for row in self.rows) for column in range(len(HEADER))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in self.rows
        ]
        text = "\n".join(lines + self.notes) + "\n"
        print(f"{self.name}\n{text}")
        (RESULTS / f"{self.name}.txt").write_text(text)
