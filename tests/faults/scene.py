"""A cluster in which the extender hears the API server through a proxy, and what can be done to all of it."""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Final

import aiohttp
import yaml

from tests.controlplane import objects
from tests.controlplane.client import Client, Object, RefusedError, until
from tests.controlplane.manifests import SCHEDULER as CONFIGURATION
from tests.controlplane.plane import Plane, Scheduler
from tests.controlplane.probes import asked, until_ready
from tests.controlplane.processes import free_port, start, stop
from tests.faults import cluster
from tests.faults.account import account
from tests.faults.proxy import Proxy
from tests.invariants.checker import Moment, at_once, bare, counted, doubles_in_use, held, in_use, overdrawn, unwanted
from tests.invariants.waiting import fitting, waiting

SCHEDULER: Final = "dra-scheduler"
KINDS: Final = {
    "claims": "/apis/resource.k8s.io/v1/resourceclaims",
    "slices": "/apis/resource.k8s.io/v1/resourceslices",
    "nodes": "/api/v1/nodes",
    "classes": "/apis/resource.k8s.io/v1/deviceclasses",
}
WIDTH: Final = 16
LOOK_EVERY_S: Final = 0.3
# Short times in the same order as the usual ones: what is lost is given up after a second, an offer after three.
IMPATIENT: Final = ("--api-timeout-seconds=1", "--api-bind-seconds=4", "--holds-offer-seconds=3")


@dataclass(slots=True)
class Extender:
    """The product as a program, behind whose back the proxy stands."""

    plane: Plane
    proxy: Proxy
    name: str = "extender"
    flags: Sequence[str] = IMPATIENT
    log: Path | None = None
    verbs: int = field(default_factory=free_port)
    probes: int = field(default_factory=free_port)
    process: Popen[bytes] | None = None
    lives: int = 0

    @property
    def clock(self) -> Path:
        return self.plane.folder / f"{self.name}.clock"

    async def start(self) -> None:
        """Start it, and wait until it is ready."""
        if not self.clock.exists():
            self.clock.write_text("0")
        log = self.log or self.plane.log(self.name)
        self.process = start(Path(sys.executable), "-m", "tests.faults.clocked", *self._arguments(), log=log)
        self.lives += 1
        await until_ready(self.process, self.probes, log)

    def _arguments(self) -> list[str]:
        path = by_proxy(self.plane, self.proxy, self.name)
        listen = [f"--listen-verbs=127.0.0.1:{self.verbs}", f"--listen-probes=127.0.0.1:{self.probes}"]
        own = f"--ownership-drivers={cluster.GPU},{cluster.SHARE},{cluster.PART}"
        return [str(self.clock), "serve", *listen, f"--api-kubeconfig={path}", own, *self.flags]

    async def metrics(self) -> str:
        return (await asked(self.probes, "metrics"))[1]

    def set_clock(self, ahead_s: float) -> None:
        # Whole at once: an earlier signal may be read still.
        fresh = self.clock.with_suffix(".new")
        fresh.write_text(str(ahead_s))
        fresh.replace(self.clock)
        assert self.process is not None
        self.process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        """Kill it, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    async def end(self) -> int:
        """End it politely, and return its exit status."""
        assert self.process is not None
        await asyncio.to_thread(stop, self.process)
        return self.process.returncode

    def memory_mib(self) -> float:
        """Return what it occupies now."""
        assert self.process is not None
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(slots=True)
class Scene:
    """Everything that runs."""

    plane: Plane
    admin: Client
    proxy: Proxy
    extender: Extender
    nodes: Sequence[str]
    gpus: int
    schedulers: AsyncExitStack = field(default_factory=AsyncExitStack)
    scheduler: Scheduler | None = None
    # Two allocators may meet in a claim for a while; one may not.
    is_alone: bool = True
    generation: int = 1
    marked: Counter[str] = field(default_factory=Counter)

    def mark(self) -> None:
        """Count requests from now on."""
        self.marked = self.proxy.heard.copy()

    async def start_scheduler(self, extender: Extender | None = None) -> Scheduler:
        """Start kube-scheduler before an extender; it contends with nobody, so that it need not wait when it is new."""
        document = yaml.safe_load(CONFIGURATION.read_text())
        document["podMaxBackoffSeconds"] = 1
        document["leaderElection"]["leaderElect"] = False
        path = self.plane.folder / "faults-scheduler.yaml"
        path.write_text(yaml.safe_dump(document))
        port = (extender or self.extender).verbs
        running = self.plane.scheduler(path, extender=f"http://127.0.0.1:{port}")
        self.scheduler = await self.schedulers.enter_async_context(running)
        return self.scheduler

    async def end_schedulers(self) -> None:
        await self.schedulers.aclose()

    async def create(self, items: Iterable[Object]) -> None:
        """Create *items*, some at a time."""
        gate = asyncio.Semaphore(WIDTH)

        async def one(item: Object) -> None:
            async with gate:
                await self.admin.create(item)

        await asyncio.gather(*map(one, items))

    async def fill(self) -> None:
        """Create nodes with their devices, and what asks for them."""
        await self.create([*cluster.classes(), *cluster.templates()])
        await self.create(map(cluster.node, self.nodes))
        await self.create(item for on in self.nodes for item in cluster.slices(on, self.gpus))

    async def publish_anew(self) -> None:
        """Replace the slices of plain devices by a new generation with the same devices."""
        old, self.generation = self.generation, self.generation + 1
        await self.create(cluster.gpu_slice(on, self.gpus, self.generation) for on in self.nodes)
        await asyncio.gather(*(self.admin.delete(cluster.gpu_slice(on, self.gpus, old)) for on in self.nodes))

    async def burst(self, pods: int) -> None:
        """Create so many pods of every shape."""
        made: list[Object] = []
        for number in range(pods):
            made += cluster.work(f"p{next(cluster.NAMES):06d}", cluster.MIX[number * 7 % len(cluster.MIX)])
        await self.create(item for item in made if item["kind"] != "Pod")
        await self.create(item for item in made if item["kind"] == "Pod")

    async def passed_by(self, count: int) -> None:
        """Have so many claims made for pods that nobody schedules, and end these pods."""
        names = [f"by{next(cluster.NAMES):06d}" for _ in range(count)]
        pods = [objects.pod(name, templates=["one"], scheduler="nobody") for name in names]
        await self.create(pods)

        async def are_made() -> bool:
            claims = (await self.moment()).claims.values()
            owners = {owner["name"] for claim in claims for owner in claim["metadata"].get("ownerReferences") or ()}
            return owners.issuperset(names)

        await until(are_made, "claims of others")
        await self.end(pods)

    async def moment(self) -> Moment:
        """List everything as one revision has it."""
        return await moment_of(self.admin)

    async def mended(self) -> None:
        """Start what does not run: a test that failed in the middle fails alone."""
        if self.extender.process is None or self.extender.process.poll() is not None:
            await self.extender.start()
        if self.scheduler is None or self.scheduler.process.poll() is not None:
            await self.start_scheduler()
        if (await self.moment()).pods:
            await self.empty()

    def violations(self, moment: Moment) -> list[str]:
        """Name what must not be, even for a moment."""
        if self.is_alone:
            return at_once(moment)
        return [*doubles_in_use(moment), *bare(moment), *overdrawn_in_use(moment)]

    @asynccontextmanager
    async def watched_over(self) -> AsyncIterator[None]:
        """Look at everything again and again; fail at the end where something was wrong, or nobody could look."""
        found: list[frozenset[str]] = []

        async def look() -> None:
            while True:
                # An API server that is away, or has forgotten that revision in the meantime, is asked again.
                with suppress(OSError, TimeoutError, RefusedError, aiohttp.ClientError):
                    found.append(frozenset(self.violations(await self.moment())))
                await asyncio.sleep(LOOK_EVERY_S)

        task = asyncio.create_task(look())
        try:
            yield
        finally:
            task.cancel()
            (ended,) = await asyncio.gather(task, return_exceptions=True)
        wrong = frozenset[str]().union(*found)
        assert not wrong, sorted(wrong)
        if ended is not None and not isinstance(ended, asyncio.CancelledError):
            raise ended
        assert found, "nothing was looked at"

    async def until_heard(self, count: int, step: str = "binding") -> None:
        """Wait until the extender has sent so many requests of a *step* since the mark."""

        async def heard() -> bool:
            return self.proxy.heard[step] - self.marked[step] >= count

        await until(heard, f"{count} requests for the {step}")

    async def calm(self, *, is_mended: bool = False) -> Moment:
        """Wait until nobody waits who fits, nobody keeps devices in vain, and nothing is held.

        *is_mended*: and until what two have given twice who knew nothing of each other is taken back.
        """
        seen: list[str] = []

        async def is_calm() -> Moment | None:
            now = await self.moment()
            seen[:] = [*(f"{each} waits" for each in fitting(now, SCHEDULER)), *unwanted(now), *unready(now)]
            seen.extend(at_once(now) if is_mended else ())
            with_holds = held(await self.extender.metrics())
            seen.extend([f"{with_holds} held"] * bool(with_holds))
            return None if seen else now

        try:
            return await until(is_calm, "calm")
        except TimeoutError:
            told = await self.account(seen)
            raise AssertionError("\n".join((f"no calm: {seen}", *told))) from None

    async def account(self, seen: Iterable[str]) -> list[str]:
        """Ask everybody about the pods that are named in what was *seen*."""
        moments: list[Moment] = []
        with suppress(OSError, TimeoutError, RefusedError, aiohttp.ClientError):
            moments += [await self.moment(), await self.moment()]
        return [*account(self.plane, moments, seen)]

    async def served(self) -> None:
        """Have every pod served: end pods as long as others wait for their devices."""
        while True:
            now = await self.calm()
            pending, wrong = [*waiting(now, SCHEDULER)], self.violations(now)
            assert not wrong, wrong
            if not pending:
                return
            bound = [pod for pod in now.pods if pod["spec"].get("nodeName")]
            assert bound, f"{len(pending)} pods wait for nobody"
            await self.end(bound[: max(1, len(bound) // 2)])

    async def end(self, pods: Iterable[Object]) -> None:
        await asyncio.gather(*(self.admin.delete({"apiVersion": "v1", "kind": "Pod", **pod}) for pod in pods))

    async def empty(self) -> None:
        """End everything, and see that nothing is left taken."""
        now = await self.moment()
        await self.end(now.pods)
        await self.calm()
        left = await self.admin.list(KINDS["claims"])
        version = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
        await asyncio.gather(*(self.admin.delete({**version, **claim}) for claim in left))

        async def is_empty() -> bool:
            now = await self.moment()
            return not now.pods and not now.claims

        await until(is_empty, "all claims to go")
        assert counted(await self.extender.metrics(), "dra_extender_drift") == 0


def by_proxy(plane: Plane, proxy: Proxy, name: str) -> Path:
    """Return a file with which an extender has its API server behind *proxy*."""
    document = json.loads(plane.kubeconfig("extender").read_text())
    document["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{proxy.port}"}
    path = plane.folder / f"{name}-by-proxy.kubeconfig"
    path.write_text(json.dumps(document))
    return path


async def moment_of(admin: Client) -> Moment:
    """List everything as one revision has it."""
    reply = await admin.must("GET", "/api/v1/pods")
    revision = reply["metadata"]["resourceVersion"]
    exact = {"resourceVersion": revision, "resourceVersionMatch": "Exact"}
    listed = await asyncio.gather(*(admin.must("GET", path, **exact) for path in KINDS.values()))
    found = {key: each["items"] for key, each in zip(KINDS, listed, strict=True)}
    return Moment(pods=reply["items"], **found)


def unready(moment: Moment) -> list[str]:
    """Name the pods that wait for their claims to be made."""
    known = {pod["metadata"]["uid"] for pod in waiting(moment, SCHEDULER)}
    pending = [pod for pod in moment.pods if not pod["spec"].get("nodeName")]
    return [f"{pod['metadata']['name']} has no claims" for pod in pending if pod["metadata"]["uid"] not in known]


def overdrawn_in_use(moment: Moment) -> list[str]:
    """Say what is overdrawn, as far as bound pods do it: two allocators may meet in a claim for a while."""
    used = in_use(moment)
    moment.claims = {key: claim for key, claim in moment.claims.items() if key in used}
    moment.__dict__.pop("uses", None)
    return [*overdrawn(moment)]


@asynccontextmanager
async def scene(
    plane: Plane, nodes: int, gpus: int, flags: Sequence[str] = IMPATIENT, *, url: str = ""
) -> AsyncIterator[Scene]:
    """Run everything on an empty cluster; *url* is the address of the API server that the extender is given."""
    names = [f"n{number:03d}" for number in range(nodes)]
    async with plane.client() as admin, Proxy(url or plane.url, str(plane.authority)) as proxy:
        made = Scene(plane, admin, proxy, Extender(plane, proxy, flags=flags), names, gpus)
        await made.fill()
        try:
            await made.extender.start()
            await made.start_scheduler()
            yield made
        finally:
            await made.end_schedulers()
            if made.extender.process is not None:
                await made.extender.end()
