"""Draw what the quality tables say, as bars in SVG beside them: the tables stay what is compared."""

import re
from collections.abc import Iterator
from typing import Final

from loadtests.bench.report import RESULTS
from loadtests.drawing import Bar, bars

PLOTS: Final = RESULTS / "plots"


def fleet(text: str) -> Iterator[tuple[str, str, list[Bar]]]:
    """Read 32 DGX-1V at load .9: mean quality, and pods of 8 that are blocked."""
    section = text.partition("32 x DGX-1V, load 0.9")[2].partition("targets:")[0]
    rows = re.findall(r"^  (\S.*?)  +([\d.]+)   ([\d.]+) +([\d.]+)  [\d.]+$", section, re.MULTILINE)
    yield "fleet-quality", "32 DGX-1V at load .9: mean q", [Bar(rule, float(q)) for rule, q, _, _ in rows]
    blocked = [Bar(rule, float(eight)) for rule, _, _, eight in rows]
    yield "fleet-blocking", "32 DGX-1V at load .9: pods of 8 that are blocked", blocked


def links(text: str) -> Iterator[tuple[str, str, list[Bar]]]:
    """Read the same on a real control plane."""
    for name, title in (("mean q", "mean q"), ("pods of 8 blocked", "pods of 8 that are blocked")):
        found = re.findall(rf"^(.*): {name} +([\d.]+)(%?)", text, re.MULTILINE)
        drawn = [Bar(who, float(value) / (100 if percent else 1)) for who, value, percent in found]
        yield f"links-{name.split()[-1]}", f"32 DGX-1V on a real control plane: {title}", drawn


def openb(text: str) -> Iterator[tuple[str, str, list[Bar]]]:
    """Read what is allocated of each trace when as much was asked for as there is."""
    for section in re.split(r"\n(?=\w+ +x = )", text)[1:]:
        name = section.split()[0]
        found = re.findall(r"^  (\w[\w ,.]*?)  +(.*)$", section, re.MULTILINE)
        drawn = []
        for rule, figures in found:
            numbers = re.findall(r"\d+\.\d+(?![\d.]*\))", figures)
            drawn.append(Bar(rule, float(numbers[3] if len(numbers) > 3 else numbers[0]) / 100))
        yield f"openb-{name}", f"openb, {name}: allocated at x = 100", drawn


def together(text: str) -> Iterator[tuple[str, str, list[Bar]]]:
    """Read which GPUs have a NIC on their root, on 32 nodes at load .9."""
    section = text.partition("32 nodes, load 0.9")[2].partition("One answer")[0]
    rows = re.findall(r"^  (\S.*?)  +([\d.]+)%", section, re.MULTILINE)
    yield "together", "32 H100 nodes at load .9: NIC on the GPU's root", [Bar(rule, float(q) / 100) for rule, q in rows]


def main() -> None:
    PLOTS.mkdir(exist_ok=True)
    for name, read in (("quality", fleet), ("links", links), ("openb", openb), ("together", together)):
        file = RESULTS / f"{name}.txt"
        for plot, title, drawn in read(file.read_text()) if file.exists() else ():
            (PLOTS / f"{plot}.svg").write_text(bars(title, drawn))
            print(f"{plot}.svg: {len(drawn)} bars")


if __name__ == "__main__":
    main()
