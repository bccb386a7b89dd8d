"""What a pod waits for its verbs, in kube-scheduler's cycle: filter, prioritize, bind, with Go's JSON between them.

Several nodes are answered, for prioritize to be asked; and one, as by default.

The client is in Go and decodes as kube-scheduler does. Beside us, in the same run and in turns with us, is a server of
the same kind that thinks of nothing (static.py): it answers the same always, and binds with the same two writes.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import log, nan
from statistics import median
from typing import Any

from loadtests.bench.report import Report
from loadtests.verbs.stand import Extender, Handled, Stand, served, stand
from loadtests.verbs.world import Size

Json = dict[str, Any]
VERBS = ("filter", "prioritize", "bind")
SIZES, STRESSED = (1000, 5000, 15000), 5000
RATE = 1000
BOUND = 30_000
# By default these pods are offered one node, as is measured apart, and prioritize is not asked.
SEVERAL = "--answer-policy=shortlist"
# What no handler may take, once its question has been answered before.
LONGEST_MS = 50
UNKNOWN = Handled(nan, nan, nan)


def share(values: list[float], part: float) -> float:
    """Return the value that *part* of all are not above."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(part * len(ranked)))]


@dataclass(frozen=True, slots=True)
class Measured:
    """Some rounds of one server: each figure is the median of its rounds'."""

    rounds: tuple[Json, ...]
    handled: dict[str, list[Handled]]

    def ms(self, verb: str, part: float) -> float:
        """Return a percentile of what the client waited."""
        found = [share(told[verb.capitalize()], part) for told in self.rounds if told[verb.capitalize()]]
        return median(found) / 1000 if found else nan

    def own(self, verb: str, part: float) -> float:
        """Return a percentile of what the handlers took."""
        return share([call.took for call in self.handled[verb]], part) if self.handled.get(verb) else nan

    def longest(self, verb: str) -> Handled:
        """Return the longest time of a handler, the most that one worked, and the most that one waited before."""
        return Handled(*map(max, zip(*self.handled[verb], strict=True))) if self.handled.get(verb) else UNKNOWN

    @property
    def rates(self) -> tuple[float, float]:
        """Pods a second by what is waited for alone, and with JSON."""
        waits = [sum(sum(told[verb.capitalize()] or ()) for verb in VERBS) for told in self.rounds]
        coded = [sum(told["Json"]) for told in self.rounds]
        counts = [len(told["Filter"]) for told in self.rounds]
        wire = median(1e6 * count / spent for count, spent in zip(counts, waits, strict=True))
        return wire, median(
            1e6 * count / (spent + more) for count, spent, more in zip(counts, waits, coded, strict=True)
        )


Pair = tuple[Measured, Measured]


@dataclass(frozen=True, slots=True)
class Course:
    """Two servers that are asked in turns, each with an API server of its own."""

    ours: Extender
    static: str
    mine: Stand
    theirs: Stand
    pods: int
    rounds: int

    def run(self, *flags: str) -> Pair:
        """Measure both: ours, static."""
        found: dict[str, list[Json]] = {self.ours.url: [], self.static: []}
        for number in range(self.rounds):
            pairs = [(self.ours.url, self.mine), (self.static, self.theirs)]
            for url, api in pairs if number % 2 else reversed(pairs):
                told = api.cycle(url, f"-pods={self.pods}", *flags)
                if told["Failed"] or told["Rejected"]:
                    raise RuntimeError(f"{told['Rejected']} pods rejected; failed: {told['Failed']}")
                found[url].append(told)
        ours = found[self.ours.url]
        spans = [(told["Began"], told["Ended"]) for told in ours]
        handled = {verb: [ms for span in spans for ms in self.ours.handled(verb, *span)] for verb in VERBS}
        return Measured(tuple(ours), handled), Measured(tuple(found[self.static]), {})


@contextmanager
def course(nodes: int, arguments: Namespace, *flags: str, names: int = 8) -> Iterator[Course]:
    """Start everything at one size."""
    with (
        stand(Size(nodes=nodes, pods=BOUND, claims=2 * nodes)) as mine,
        served(mine.folder, mine.written) as theirs,
        mine.extender(*flags) as ours,
        theirs.static(names) as static,
    ):
        yield Course(ours, static, mine, theirs, arguments.pods, arguments.rounds)


def asked(found: Measured) -> tuple[str, ...]:
    """Return the verbs that were asked: kube-scheduler has a single node scored by nobody."""
    return VERBS if found.rounds[0]["Prioritize"] else ("filter", "bind")


def tell(report: Report, what: str, found: Pair, targets: Mapping[str, str]) -> None:
    """Tell what the client waited for, and what the handlers took of that; *targets* by what is measured."""
    ours, static = found
    for verb in asked(ours):
        for part, label in ((0.5, "p50"), (0.99, "p99")):
            mine, theirs = ours.ms(verb, part), static.ms(verb, part)
            beside = f"static {theirs:.2f}: {mine / theirs:.2f} of it"
            report.add(f"{what}: {verb} {label}, ms", f"{mine:.2f}", targets.get(f"{verb} {label}", ""), beside)
    for label, mine, theirs in zip(("", " with Go's JSON"), ours.rates, static.rates, strict=True):
        beside = f"static {theirs:.0f}: {mine / theirs:.0%} of it"
        report.add(f"{what}: pods/s one by one{label}", f"{mine:.0f}", targets.get(f"rate{label}", ""), beside)
    for verb in asked(ours)[:-1]:
        values = "/".join(f"{ours.own(verb, part):.2f}" for part in (0.5, 0.99))
        most = ours.longest(verb)
        longest = f"longest {most.took:.1f}, of work {most.worked:.1f}, target {LONGEST_MS}"
        longest += f"; waited for claims before: {most.waited:.1f}" if most.waited else ""
        report.add(f"{what}: {verb} in its handler, p50/p99, ms", values, targets.get(f"own {verb}", ""), longest)


STRESS = {
    "filter p50": "1.6, 2.0 of static",
    "filter p99": "6, 1.3 of static",
    "prioritize p50": "0.8, 2.0 of static",
    "prioritize p99": "6, 1.3 of static",
    "bind p50": "0.9",
    "rate": "250, 65 %",
    "rate with Go's JSON": "120",
    "own filter": "0.75/1.5",
    "own prioritize": "0.25/0.6",
}
WINDOW = {"rate": "600", "rate with Go's JSON": "450"}
LARGE = {"filter p50": "4.5", "prioritize p50": "2"}


def ratios(report: Report, what: str, idle: Measured, busy: Measured) -> None:
    """Compare the same with and without events."""
    for verb in asked(idle):
        median_of, ninth = (busy.ms(verb, part) / idle.ms(verb, part) for part in (0.5, 0.99))
        report.add(f"{what}: {verb} p50, p99, of idle", f"{median_of:.2f}, {ninth:.2f}", "1.3, 1.5")


def growth(report: Report, found: Mapping[int, Pair]) -> None:
    """Tell the exponent with which cost grows with the number of nodes."""
    first, last = min(found), max(found)
    for verb, target in (("filter", "1.0"), ("prioritize", "0.9")):
        for who, label in enumerate(("", ", static")):
            ratio = found[last][who].ms(verb, 0.5) / found[first][who].ms(verb, 0.5)
            exponent = log(ratio) / log(last / first)
            what = f"{verb}: growth exponent, {first:,} to {last:,} names{label}"
            report.add(what, f"{exponent:.2f}", "" if who else target)


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--pods", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    arguments = parser.parse_args()
    report, found = Report("latency"), {}
    for nodes in arguments.sizes:
        with course(nodes, arguments, SEVERAL) as at:
            found[nodes] = idle = at.run()
            tell(report, f"{nodes:,} names", idle, STRESS if nodes == STRESSED else LARGE if nodes > STRESSED else {})
            if nodes == STRESSED:
                tell(report, f"500 of {nodes:,} names", at.run("-names=500"), WINDOW)
                tell(report, f"{nodes:,} names, four shapes", at.run("-shapes=one,four,selector,two"), {})
            at.mine.ask(f"/load/churn?rate={RATE}")
            busy = at.run()
            tell(report, f"{nodes:,} names, {RATE:,} events/s", busy, {})
            ratios(report, f"{nodes:,} names, {RATE:,} events/s", idle[0], busy[0])
    with course(STRESSED, arguments, names=1) as at:
        tell(report, f"{STRESSED:,} names, one answered", at.run(), STRESS)
        tell(report, f"500 of {STRESSED:,} names, one answered", at.run("-names=500"), WINDOW)
    with course(STRESSED, arguments, "--answer-policy=all", names=STRESSED) as at:
        tell(report, f"{STRESSED:,} names, all answered", at.run(), STRESS)
    if len(found) > 1:
        growth(report, found)
    report.keep()


if __name__ == "__main__":
    main()
