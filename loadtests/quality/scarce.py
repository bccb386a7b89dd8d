"""GPUs alone and GPUs with a NIC on nodes with fewer NICs than GPUs: who gets the GPUs that are close to a NIC.

Pods arrive at random and hold their devices for one unit of time on average, or are lost, as in ``together``.
"""

import heapq
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from extender.allocation.preference import Tightest
from extender.allocation.solve import Manner, Solution, solving
from extender.allocation.work import finished
from extender.model.device import Attribute, Device, ResourceSlice
from extender.topology.partitioned import Partitioned
from extender.topology.together import Together
from loadtests.bench.report import RESULTS
from loadtests.quality.hopper import GPU, NIC, board, device, gpu, grounds, key, question, sliced, usages

LOADS = (0.6, 0.8)
SEEDS = (3, 4, 5)
NODES, GPUS = 8, 8
# Of a hundred pods: so many with 1, 2 and 4 GPUs, and with a GPU and a NIC.
PAIR = "a GPU and a NIC"
ASKED: dict[int | str, int] = {1: 50, 2: 20, 4: 10, PAIR: 20}
QUESTIONS = {what: question({"gpu": 1, "nic": 1} if what == PAIR else {"gpu": int(what)}) for what in ASKED}
# The GPUs of each node whose roots have a NIC, kind of node by kind of node. Two GPUs each share a root.
FLEETS: dict[str, tuple[tuple[int, ...], ...]] = {
    "one NIC on each node": ((0,),),
    "a NIC for each NUMA node": ((0, 4),),
    "a NIC for each NUMA node, on every second node": ((0, 4), ()),
    "a NIC for each pair of GPUs": ((0, 2, 4, 6),),
}


class State(NamedTuple):
    """What is free on a node of a kind: masks."""

    kind: tuple[int, ...]
    gpus: int
    nics: int

    @property
    def used(self) -> int:
        return GPUS + len(self.kind) - self.gpus.bit_count() - self.nics.bit_count()

    def turned(self, gpus: int, nics: int) -> "State":
        """Return it where these have changed hands."""
        return self._replace(gpus=self.gpus ^ gpus, nics=self.nics ^ nics)


class Offer(NamedTuple):
    """What a pod is given on a node, by masks, and what that is worth."""

    value: int
    gpus: int
    nics: int


class Site:
    """Answers for nodes of all kinds, each worked out once."""

    def __init__(self, together: Together | None) -> None:
        self.together = together
        self.manner = Manner(together, is_lenient=True)
        self.boards = {kind: board(*_published(kind)) for kinds in FLEETS.values() for kind in kinds}
        self.known: dict[tuple[State, int | str], Offer | None] = {}

    def offer(self, state: State, what: int | str) -> Offer | None:
        if (state, what) not in self.known:
            self.known[state, what] = self._solved(state, what)
        return self.known[state, what]

    def best(self, states: Sequence[State], what: int | str) -> tuple[int, Offer] | None:
        """Take the node where devices are worth most, of equal ones the fullest; without worths the fullest alone."""
        offers = [(node, self.offer(state, what)) for node, state in enumerate(states)]
        found = [(node, offer) for node, offer in offers if offer]
        return max(found, key=lambda one: (one[1].value, states[one[0]].used, -one[0]), default=None)

    def _solved(self, state: State, what: int | str) -> Offer | None:
        here = self.boards[state.kind]
        held = [key(GPU, f"gpu-{one}") for one in range(GPUS) if not state.gpus >> one & 1]
        held += [key(NIC, f"net-{one}") for one in range(len(state.kind)) if not state.nics >> one & 1]
        answer = finished(solving(QUESTIONS[what], here, usages(held), self.manner))
        if not isinstance(answer, Solution):
            return None
        value = self.together.appraise(answer.situation, answer.picks).value if self.together else 0
        masks = {GPU: 0, NIC: 0}
        for pick in answer.picks:
            name = here.candidates[pick.place].key
            masks[name.driver] |= 1 << int(name.device.rpartition("-")[2])
        return Offer(value, masks[GPU], masks[NIC])


@dataclass
class Tally:
    """What became of pods with a GPU and a NIC, by what these share, and how many others were lost."""

    pairs: int = 0
    on_root: int = 0
    on_numa: int = 0
    lost: int = 0
    alone: int = 0
    alone_lost: int = 0

    def count(self, kind: tuple[int, ...], what: int | str, offer: Offer | None) -> None:
        if what != PAIR:
            self.alone += 1
            self.alone_lost += offer is None
            return
        self.pairs += 1
        self.lost += offer is None
        if offer:
            one, other = offer.gpus.bit_length() - 1, kind[offer.nics.bit_length() - 1]
            self.on_root += one // 2 == other // 2
            self.on_numa += one // 2 != other // 2 and one // 4 == other // 4


@dataclass(frozen=True)
class Run:
    """A simulation: the same seed asks for the same at the same times, whatever is chosen."""

    kinds: tuple[tuple[int, ...], ...]
    load: float
    warm_up: int = 1000
    arrivals: int = 10_000

    def tally(self, site: Site, seeds: Sequence[int] = SEEDS) -> Tally:
        tally = Tally()
        for seed in seeds:
            self._add(tally, site, random.Random(seed))  # noqa: S311 - a simulation
        return tally

    def _add(self, tally: Tally, site: Site, chance: random.Random) -> None:
        gpus = sum((1 if what == PAIR else int(what)) * count for what, count in ASKED.items()) / 100
        kinds = [self.kinds[node % len(self.kinds)] for node in range(NODES)]
        states = [State(kind, (1 << GPUS) - 1, (1 << len(kind)) - 1) for kind in kinds]
        ends: list[tuple[float, int, int, int]] = []
        now = 0.0
        for number in range(self.warm_up + self.arrivals):
            now += chance.expovariate(self.load * GPUS * NODES / gpus)
            what = chance.choices(list(ASKED), list(ASKED.values()))[0]
            lasting = chance.expovariate(1)
            while ends and ends[0][0] <= now:
                _, node, *given = heapq.heappop(ends)
                states[node] = states[node].turned(*given)
            node, offer = site.best(states, what) or (0, None)
            if number >= self.warm_up:
                tally.count(kinds[node], what, offer)
            if offer:
                states[node] = states[node].turned(offer.gpus, offer.nics)
                heapq.heappush(ends, (now + lasting, node, offer.gpus, offer.nics))


@dataclass
class Comparison:
    """Ways to choose, side by side; what each has worked out serves for all runs."""

    sites: dict[str, Site] = field(
        default_factory=lambda: {"first": Site(None), "ours": Site(Together(grounds(), Tightest(), Partitioned()))}
    )

    def lines(self, name: str, run: Run) -> Iterator[str]:
        yield f"\n{name}, load {run.load}"
        yield COLUMNS
        for rule, site in self.sites.items():
            yield _row(rule, run.tally(site))


def _published(kind: Sequence[int]) -> Iterator[ResourceSlice]:
    yield sliced(GPU, *map(_card, range(GPUS)))
    if kind:
        yield sliced(NIC, *(device(f"net-{one}", pcieRoot=_root(at), numaNode=at // 4) for one, at in enumerate(kind)))


def _card(index: int) -> Device:
    """Return an L40S: two on a root, and no links."""
    kept = dict(gpu(index).attributes)
    kept["productName"] = Attribute("string", "NVIDIA L40S")
    kept["resource.kubernetes.io/pcieRoot"] = Attribute("string", _root(index))
    return replace(gpu(index), attributes=tuple(sorted(kept.items())))


def _root(index: int) -> str:
    return f"pci0000:{0x10 + 0x20 * (index // 2):02x}"


def _row(name: str, tally: Tally) -> str:
    given = (tally.on_root, tally.on_numa, tally.pairs - tally.lost - tally.on_root - tally.on_numa, tally.lost)
    root, numa, far, lost = (f"{one / tally.pairs:.2%}" for one in given)
    return f"  {name:<6}  {root:>9}  {numa:>9}  {far:>7}  {lost:>7}  {tally.alone_lost / tally.alone:>10.2%}"


COLUMNS = "  rule    same root  same NUMA      far     lost  alone lost"
HEAD = """\
Pods with GPUs alone, and with a GPU and a NIC, on {nodes} nodes of eight L40S, two on a root, four on a NUMA node
Of a hundred pods: {asked}; seeds 3 to 5, 10,000 arrivals for each
same root, same NUMA, far, lost: of pods with a GPU and a NIC; alone lost: of the others
first: the first devices of the fullest node; ours: what is worth most"""


def lines() -> Iterator[str]:
    asked = ", ".join(f"{count} ask for {_words(what)}" for what, count in ASKED.items())
    yield HEAD.format(nodes=NODES, asked=asked)
    comparison = Comparison()
    for name, kinds in FLEETS.items():
        for load in LOADS:
            yield from comparison.lines(name, Run(kinds, load))


def _words(what: int | str) -> str:
    return what if isinstance(what, str) else f"{what} GPU{'s' * (what > 1)}"


def main() -> None:
    kept = []
    for line in lines():
        print(line, flush=True)
        kept.append(line)
    (RESULTS / "scarce.txt").write_text("\n".join(kept) + "\n")


if __name__ == "__main__":
    main()
