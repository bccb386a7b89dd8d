"""Pods come and go on a real control plane while everything goes wrong that can: nothing is lost, nothing double.

Nor does memory grow. Faults that end the extender come in the first part of the run alone: so one life of it is long.
"""

import asyncio
import random
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from loadtests.bench.report import RESULTS
from loadtests.endtoend.churn import AWAY, Churn
from tests.controlplane.manifests import BASE, documents, grant
from tests.controlplane.plane import Plane
from tests.controlplane.programs import plane
from tests.faults.scene import IMPATIENT, SCHEDULER, Scene, scene
from tests.faults.table import LONG, TABLE, Strike
from tests.invariants.checker import counted, unwanted
from tests.invariants.reading import wanted

# They end the extender, or start it anew.
LETHAL: Final = {key for key in TABLE if key.startswith(("killed", "ended", "no room"))}
# They wait until nothing is under way.
CALMING: Final = {"two extenders at once", "no room for the log"}
DECK: Final = {**TABLE, "writes 30 s late": LONG["writes 30 s late"]}
LETHAL_SHARE: Final = 0.25
STEP: Final = 2000
LOOK_S, TICK_S = 5.0, 0.1
# Small, so that the record is full early: what is remembered for ever is to be seen, not what is kept on purpose.
FLAGS: Final = (*IMPATIENT, "--decisions-keep=1000")
# What is remembered on purpose grows until it is full: trips of 10,000 pods, 700 bytes each, and what was told of
# 20,000, 215 bytes each, of which the events of ten minutes are half. Beside these 9 MB, half a kilobyte a pod over the
# 12,000 between the middles of the first and the last third of a life of 18,000: less is lost in what arenas swing by.
GROWTH_MIB: Final = 9.0 + 6.0


class Sample(NamedTuple):
    """The extender after so many pods."""

    pods: int
    life: int
    mib: float


@dataclass(slots=True)
class Soak:
    """A run."""

    here: Scene
    pods: int
    chance: random.Random
    started: float = field(default_factory=time.monotonic)
    churn: Churn = field(init=False)
    samples: list[Sample] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    # What was wrong, and when that was seen first.
    wrong: dict[str, str] = field(default_factory=dict)
    last: str = "no fault yet"
    looks: int = 0
    is_paused: bool = False
    quiet: asyncio.Lock = field(default_factory=asyncio.Lock)
    lines: list[str] = field(default_factory=list)

    def tell(self, line: str) -> None:
        self.lines.append(line)
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def __post_init__(self) -> None:
        self.churn = Churn(self.here, self.chance)

    @property
    def created(self) -> int:
        return self.churn.created

    async def run(self, *, with_faults: bool) -> None:
        """Have pods come and go, and take stock every so often."""
        self.tell("   pods  seconds  pods/s  alive  bound  life    MiB  looks  faults  wrong")
        jobs = [self.churn.follow(), self.look(), *([self.strike()] if with_faults else [])]
        tasks = [asyncio.create_task(job) for job in jobs]
        try:
            for goal in [*range(min(STEP, self.pods), self.pods, STEP), self.pods]:
                await self._until_created(goal, tasks)
                await self.take_stock()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _until_created(self, goal: int, tasks: list[asyncio.Task[None]]) -> None:
        while self.created < goal:
            for task in tasks:
                if task.done():
                    task.result()
            if not self.is_paused:
                await self.churn.turn(goal)
            await asyncio.sleep(TICK_S)

    async def look(self) -> None:
        """See every so often that nothing is given twice and that who is bound has what it asked for."""
        while True:
            await asyncio.sleep(LOOK_S)
            with suppress(*AWAY):
                was_alone, moment = self.here.is_alone, await self.here.moment()
                if was_alone == self.here.is_alone:
                    self.note(self.here.violations(moment))
                self.looks += 1
            with suppress(OSError):  # it may be between two lives
                self.samples.append(Sample(self.created, self.here.extender.lives, self.here.extender.memory_mib()))

    async def strike(self) -> None:
        """Have one fault after the other, each of the deck once before any comes again."""
        while True:
            deck = [*DECK.items()]
            self.chance.shuffle(deck)
            for key, fault in deck:
                if key in LETHAL and self.created > LETHAL_SHARE * self.pods:
                    continue
                await asyncio.sleep(self.chance.uniform(1, 5))
                async with self.quiet:
                    await self._struck(key, fault)

    def note(self, found: Iterable[str]) -> None:
        for each in found:
            if each not in self.wrong:
                self.wrong[each] = f"after {self.created} pods, {self.last}"
                sys.stderr.write(f"{_clock()} {self.wrong[each]}: {each}\n")

    async def _struck(self, key: str, fault: Strike) -> None:
        self.last = key
        sys.stderr.write(f"{_clock()} {key}\n")
        self.here.mark()
        try:
            async with fault(self.here):
                await asyncio.sleep(self.chance.uniform(0.2, 1.5))
                self.is_paused = key in CALMING
            self.faults[key] += 1
        except (TimeoutError, AssertionError) as error:
            self.note([str(error)])
        finally:
            self.is_paused = False
        process = self.here.extender.process
        if process is None or process.poll() is not None:
            self.note(["the extender has ended by itself"])
            await self.here.extender.start()

    async def take_stock(self) -> None:
        """Let everything settle without faults: who fits is bound, nobody keeps devices in vain, nothing is held."""
        async with self.quiet:
            self.note(await self._settled())
            self.samples.append(Sample(self.created, self.here.extender.lives, self.here.extender.memory_mib()))
            await self._tidied()
        self._told(self.samples[-1])

    def _told(self, sample: Sample) -> None:
        spent = time.monotonic() - self.started
        alive, bound = len(self.churn.alive), len(self.churn.bound)
        self.tell(
            f"{self.created:7} {spent:8.0f} {self.created / spent:7.1f} {alive:6} {bound:6} "
            f"{sample.life:5} {sample.mib:6.1f} {self.looks:6} {self.faults.total():7} {len(self.wrong):6}"
        )

    async def _settled(self) -> list[str]:
        try:
            moment = await self.here.calm()
        except AssertionError as error:
            return [str(error)]
        return self.here.violations(moment)

    async def _tidied(self) -> None:
        """Delete the claims that people made for pods that are gone."""
        moment = await self.here.moment()
        uses = {key for pod in moment.pods for key in wanted(pod)}
        version = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
        unused = [
            claim
            for key, claim in moment.claims.items()
            if key not in uses and not claim["metadata"].get("ownerReferences")
        ]
        await asyncio.gather(*(self.churn.surely("DELETE", {**version, **claim}) for claim in unused))

    async def finish(self) -> None:
        """End every pod, and see that nothing at all is left taken."""
        await self.here.empty()
        metrics = await self.here.extender.metrics()
        drift = counted(metrics, "dra_extender_drift")
        self.note([*unwanted(await self.here.moment()), *([f"{drift:.0f} of drift"] if drift else [])])

    def growth(self) -> float:
        """Return by how much the longest life grew, from its first third to its last: medians."""
        lives = Counter(sample.life for sample in self.samples)
        longest = [sample.mib for sample in self.samples if sample.life == lives.most_common(1)[0][0]]
        third = max(1, len(longest) // 3)
        return median(longest[-third:]) - median(longest[:third])


def _clock() -> str:
    """Return the time as the programs' logs have it."""
    return datetime.now(UTC).strftime("%H:%M:%S.%f")[:-3]


def summary(soak: Soak) -> None:
    """Tell which faults there were, and how it ended."""
    soak.tell("")
    for key, times in sorted(soak.faults.items()):
        soak.tell(f"{times:4} x {key}")
    spent = time.monotonic() - soak.started
    soak.tell(f"\n{soak.created} pods in {spent:.0f} s, {soak.faults.total()} faults, {soak.looks} looks at everything")
    soak.tell(f"memory grew by {soak.growth():.1f} MiB in the longest life, of {GROWTH_MIB:.0f} allowed")
    soak.tell("nothing lost, nothing double" if not soak.wrong else f"{len(soak.wrong)} violations:")
    for each, when in soak.wrong.items():
        soak.tell(f"  {when}: {each}")


async def soaked(running: Plane, arguments: list[str]) -> int:
    """Run, and return the exit status."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=24_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--no-faults", action="store_true")
    asked, flags = parser.parse_known_args(arguments)
    async with running.client() as admin:
        await grant(admin)
        for item in documents(BASE / "priority.yaml"):
            await admin.apply(item)
    async with scene(running, asked.nodes, asked.gpus, (*FLAGS, *flags)) as here:
        soak = Soak(here, asked.pods, random.Random(asked.seed))  # noqa: S311 - to be had again, not to be secret
        soak.tell(f"seed {asked.seed}, {asked.nodes} nodes x {asked.gpus}, scheduler {SCHEDULER}, {running.version}")
        await soak.run(with_faults=not asked.no_faults)
        await soak.finish()
    summary(soak)
    (RESULTS / "soak.txt").write_text("\n".join(soak.lines) + "\n")
    return 1 if soak.wrong or soak.growth() > GROWTH_MIB else 0


def main() -> int:
    parser = ArgumentParser(add_help=False)
    parser.add_argument("--keep", help="an empty folder for the logs of all programs; faults are told with their times")
    asked, rest = parser.parse_known_args()
    with nullcontext(asked.keep) if asked.keep else tempfile.TemporaryDirectory() as folder:
        running = Plane(plane(), Path(folder))
        try:
            running.start()
            return asyncio.run(soaked(running, rest))
        finally:
            running.stop()


if __name__ == "__main__":
    sys.exit(main())
