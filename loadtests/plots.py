"""Draw what the tables of speed say: pods bound a second as bars, and what verbs cost by cluster size as curves."""

import re
from collections.abc import Iterator
from typing import Final

from loadtests.bench.report import RESULTS
from loadtests.drawing import Bar, bars, curves

PLOTS: Final = RESULTS / "plots"
RATES: Final = re.compile(
    r"^(\w+), ([\d,]+ x \d+), measured, pods/s +(\d+) .*own (\d+), \d+% of the static (\d+)$", re.MULTILINE
)
COST: Final = re.compile(r"^([\d,]+) names: (\w+) p50, ms +([\d.]+) .*static ([\d.]+):", re.MULTILINE)


def rates(text: str) -> Iterator[tuple[str, str]]:
    """Read pods a second of each shape of claims."""
    for shape, size, ours, in_tree, static in RATES.findall(text):
        by_who = {"in-tree": in_tree, "ours": ours, "static": static}
        most = max(map(int, by_who.values()))
        drawn = [Bar(who, int(value) / most, value) for who, value in by_who.items()]
        name = f"rate-{shape}-{size.replace(',', '').replace(' ', '')}"
        yield name, bars(f"{shape}, {size}: pods bound a second", drawn)


def cost(text: str) -> str:
    """Read what verbs cost by the number of nodes, ours and the static server's."""
    found: dict[str, list[tuple[float, float]]] = {}
    for names, verb, ours, static in COST.findall(text):
        for who, value in (("ours", ours), ("static", static)):
            found.setdefault(f"{who}: {verb}", []).append((float(names.replace(",", "")), float(value)))
    return curves("p50 of verbs by nodes asked about", dict(sorted(found.items())), "nodes, all asked about", "ms")


def main() -> None:
    PLOTS.mkdir(exist_ok=True)
    drawn = {"verbs-by-size": cost((RESULTS / "latency.txt").read_text())}
    for file in sorted(RESULTS.glob("endtoend-*.txt")):
        drawn.update(rates(file.read_text()))
    for name, text in drawn.items():
        (PLOTS / f"{name}.svg").write_text(text)
        print(f"{name}.svg")


if __name__ == "__main__":
    main()
