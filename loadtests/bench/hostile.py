"""The hardest questions that were found: how long until each is decided or given up."""

from statistics import median

from extender.cli.allocate import MANNERS, answer
from loadtests.bench.report import Report
from tests.allocation.hostile import FILE

ROUNDS = 5


def main() -> None:
    report = Report("hostile")
    lines = FILE.read_bytes().splitlines()
    for order, manner in MANNERS.items():
        answer(lines[0], manner)
        told = [[answer(line, manner)["nodes"]["n1"] for _ in range(ROUNDS)] for line in lines]
        spent = [median(one["micros"] for one in rounds) / 1000 for rounds in told]
        decided = sum(rounds[0]["fits"] is not None for rounds in told)
        beside = f"{decided} of {len(lines)} decided, median {median(spent):.0f}"
        report.add(f"the slowest of the hardest {len(lines)}, {order}, ms", f"{max(spent):.0f}", "50", beside)
    report.keep()


if __name__ == "__main__":
    main()
