"""The faults, by name. Each strikes in the middle of a burst of pods, and is over at the end of its block."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from tests.controlplane.client import until
from tests.faults.proxy import Fault, Forward, Proxy, Request, forged, honest
from tests.faults.scene import Extender, Scene
from tests.invariants.checker import counted

Strike = Callable[[Scene], AbstractAsyncContextManager[None]]
# So many requests are hit before a fault is over.
HITS = 25
DAY_S = 86_400.0
# How a watch of bound pods is told from others, and how old its view grows: drift is told after a minute.
BOUND, AGE_OF_BOUND, OLD_S = "nodeName%21%3D", r'dra_extender_watch_age_seconds\{resource="boundpods"\}', 100.0
# So many claims the controller of 1.36 remembers.
REMEMBERED = 100


def writes(fault: Fault, hits: int = HITS) -> Strike:
    """Let *fault* happen to every write, until so many of claims and bindings were hit."""

    async def only_writes(request: Request, forward: Forward) -> bytes | None:
        return await (fault if request.is_write else honest)(request, forward)

    @asynccontextmanager
    async def strike(scene: Scene) -> AsyncIterator[None]:
        async with through(scene, only_writes):
            yield
            await until_hit(scene, hits)

    return strike


@asynccontextmanager
async def through(scene: Scene, fault: Fault) -> AsyncIterator[None]:
    """Let *fault* happen to every request until the end of the block."""
    scene.proxy.fault = fault
    try:
        yield
    finally:
        scene.proxy.fault = honest


async def until_hit(scene: Scene, hits: int) -> None:
    """Wait until so many requests of bindings have been sent."""
    before = _steps(scene)

    async def hit() -> bool:
        return _steps(scene) - before >= hits

    await until(hit, f"{hits} requests")


def _steps(scene: Scene) -> int:
    return sum(scene.proxy.heard[step] for step in ("finalizer", "allocation", "binding"))


def answered(status: int) -> Fault:
    async def fault(_request: Request, _forward: Forward) -> bytes | None:
        return forged(status)

    return fault


async def lost(_request: Request, _forward: Forward) -> bytes | None:
    """Never arrive."""
    return None


async def unheard(_request: Request, forward: Forward) -> bytes | None:
    """Succeed, and have nobody hear of it."""
    await forward()
    return None


def late(seconds: float) -> Strike:
    """Have every write arrive when it has long been given up."""

    @asynccontextmanager
    async def strike(scene: Scene) -> AsyncIterator[None]:
        async def fault(_request: Request, forward: Forward) -> bytes | None:
            scene.proxy.forward_later(seconds, forward)
            return None

        async with writes(fault)(scene):
            yield
        await asyncio.gather(*scene.proxy.late, return_exceptions=True)
        scene.proxy.late.clear()

    return strike


def slow(seconds: float) -> Strike:
    """Have every answer come late, but come."""

    @asynccontextmanager
    async def strike(scene: Scene) -> AsyncIterator[None]:
        async def fault(_request: Request, forward: Forward) -> bytes | None:
            answer = await forward()
            await asyncio.sleep(seconds)
            return answer

        async with through(scene, fault):
            yield
            await until_hit(scene, HITS)

    return strike


def killed(step: str, *, is_written: bool, signal_number: signal.Signals = signal.SIGKILL) -> Strike:
    """Kill the extender over a *step* of a binding, before it is written or before it hears of it; start it again."""

    @asynccontextmanager
    async def strike(scene: Scene) -> AsyncIterator[None]:
        done = asyncio.Event()

        async def fault(request: Request, forward: Forward) -> bytes | None:
            if request.step != step or done.is_set():
                return await forward()
            if is_written:
                await forward()
            # Of several at once only the first: the next would meet the next life.
            if not done.is_set():
                done.set()
                assert scene.extender.process is not None
                scene.extender.process.send_signal(signal_number)
            return None

        async with through(scene, fault):
            yield
            await asyncio.wait_for(done.wait(), 60)
            await scene.extender.end()
        await scene.extender.start()

    return strike


@asynccontextmanager
async def terminated(scene: Scene) -> AsyncIterator[None]:
    """End the extender politely in the middle; what it has begun it finishes."""
    yield
    await scene.until_heard(5)
    assert await scene.extender.end() == 0
    await scene.extender.start()


@asynccontextmanager
async def server_restarted(scene: Scene) -> AsyncIterator[None]:
    """Restart the API server in the middle.

    Clients list each kind anew about a second later, one kind sooner than the other. So the controller of 1.36 that
    makes claims may know a pod with two before it knows both, and then names them in turn for ever; the extender ends
    that.
    """
    yield
    await scene.until_heard(5)
    await restart_server(scene)


async def restart_server(scene: Scene) -> None:
    """Kill the API server, start it again, and wait until it answers."""
    scene.plane.restart("kube-apiserver")

    async def is_back() -> bool:
        try:
            return (await scene.admin.call("GET", "/readyz")).status == 200
        except OSError:
            return False

    await until(is_back, "the API server to be back")


def etcd_paused(seconds: float) -> Strike:
    """Stop etcd for longer than the extender waits for an answer."""

    @asynccontextmanager
    async def strike(scene: Scene) -> AsyncIterator[None]:
        yield
        await scene.until_heard(5)
        etcd = scene.plane.running["etcd"]
        etcd.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            etcd.send_signal(signal.SIGCONT)

    return strike


@asynccontextmanager
async def watches_cut(scene: Scene) -> AsyncIterator[None]:
    """End all watches in the middle, again and again."""
    yield
    for count in (3, 6, 9, 12):
        await scene.until_heard(count)
        scene.proxy.cut_watches()


def watches_stalled(seconds: float) -> Strike:
    """Have watches say nothing for a while, while writes go on."""

    @asynccontextmanager
    async def strike(scene: Scene) -> AsyncIterator[None]:
        yield
        await scene.until_heard(5)
        scene.proxy.flowing.clear()
        try:
            await asyncio.sleep(seconds)
        finally:
            scene.proxy.flowing.set()

    return strike


@asynccontextmanager
async def bound_pods_stalled(scene: Scene) -> AsyncIterator[None]:
    """Have the watch of bound pods alone say nothing, for so long that who was bound since might look gone."""
    with scene.proxy.holding(BOUND):
        yield
        for age_s in (OLD_S / 2, OLD_S):

            async def is_old(age_s: float = age_s) -> bool:
                return counted(await scene.extender.metrics(), AGE_OF_BOUND) > age_s

            await until(is_old, f"the view of bound pods to be {age_s} s old")
        assert counted(await scene.extender.metrics(), "dra_extender_drift") == 0
        assert "drift" not in scene.plane.log("extender").read_text()


def clock_jumps(*ahead_s: float) -> Strike:
    """Set the time of day to and fro."""

    @asynccontextmanager
    async def strike(scene: Scene) -> AsyncIterator[None]:
        first, *others = ahead_s
        scene.extender.set_clock(first)
        yield
        for number, ahead in enumerate((*others, 0.0), 1):
            await scene.until_heard(10 * number)
            scene.extender.set_clock(ahead)

    return strike


@asynccontextmanager
async def two_at_once(scene: Scene) -> AsyncIterator[None]:
    """Run a second scheduler with a second extender, which know nothing of the first."""
    scene.is_alone = False
    try:
        async with Proxy(scene.plane.url, str(scene.plane.authority)) as proxy:
            other = Extender(scene.plane, proxy, "other")
            try:
                await other.start()
                await scene.start_scheduler(other)
                yield
                await scene.calm()
                await scene.end_schedulers()
            finally:
                await other.end()
        # Since it was calm both may have placed a pod that fits only now: who is left mends that. One that fits nowhere
        # else waits with its claim until the scheduler, which is new, has asked about it.
        await scene.start_scheduler()
        await scene.calm(is_mended=True)
    finally:
        scene.is_alone = True


@asynccontextmanager
async def pods_deleted(scene: Scene) -> AsyncIterator[None]:
    """Delete every third pod while pods are bound."""
    yield
    await scene.until_heard(3)
    await scene.end((await scene.moment()).pods[::3])


@asynccontextmanager
async def claims_deleted(scene: Scene) -> AsyncIterator[None]:
    """Delete every third claim while pods are bound; those that were made for a pod come again.

    Each as it was read: without a version the API server goes by the finalizers that it has read, and drops a claim
    that has got its first one, and its devices, while it does so. No scheduler can keep a pod from being bound then.
    The controller of 1.36 takes a claim that it has made for one that is there until it has made a hundred others,
    whoever touches the pod: so others come by.
    """
    yield
    await scene.until_heard(3)
    found = [claim for claim in (await scene.moment()).claims.values() if claim["metadata"].get("ownerReferences")]
    version = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    await asyncio.gather(*(scene.admin.delete_as_read({**version, **claim}) for claim in found[::3]))
    if scene.plane.minor == "1.36":
        await scene.passed_by(REMEMBERED)


@asynccontextmanager
async def slices_replaced(scene: Scene) -> AsyncIterator[None]:
    yield
    for count in (3, 6):
        await scene.until_heard(count)
        await scene.publish_anew()


@asynccontextmanager
async def scheduler_killed(scene: Scene) -> AsyncIterator[None]:
    yield
    await scene.until_heard(5)
    assert scene.scheduler is not None
    scene.scheduler.process.kill()
    await scene.end_schedulers()
    await scene.start_scheduler()


@asynccontextmanager
async def disk_full(scene: Scene) -> AsyncIterator[None]:
    """Have no line of the log written."""
    await scene.extender.end()
    flags, scene.extender.log = scene.extender.flags, Path("/dev/full")
    scene.extender.flags = (*flags, "--logging-level=debug")
    await scene.extender.start()
    yield
    await scene.calm()
    await scene.extender.end()
    scene.extender.flags, scene.extender.log = flags, None
    await scene.extender.start()


TABLE: dict[str, Strike] = {
    "killed before the finalizer is written": killed("finalizer", is_written=False),
    "killed after the finalizer is written": killed("finalizer", is_written=True),
    "killed before the allocation is written": killed("allocation", is_written=False),
    "killed after the allocation is written": killed("allocation", is_written=True),
    "killed before the binding is written": killed("binding", is_written=False),
    "killed after the binding is written": killed("binding", is_written=True),
    "ended politely": terminated,
    "the API server restarted": server_restarted,
    "etcd paused": etcd_paused(3),
    "watches cut": watches_cut,
    "watches stalled": watches_stalled(3),
    "writes answered 409": writes(answered(409)),
    "writes answered 422": writes(answered(422)),
    "writes answered 429": writes(answered(429)),
    "writes answered 500": writes(answered(500)),
    "writes lost": writes(lost),
    "writes unheard": writes(unheard),
    "writes 3 s late": late(3),
    "slow answers": slow(0.3),
    "the clock jumps": clock_jumps(DAY_S, -DAY_S, 400 * DAY_S),
    "two extenders at once": two_at_once,
    "pods deleted": pods_deleted,
    "claims deleted": claims_deleted,
    "slices replaced": slices_replaced,
    "the scheduler killed": scheduler_killed,
    "no room for the log": disk_full,
}
# What takes longer than a test of the gate may.
LONG: dict[str, Strike] = {
    "writes 30 s late": late(30),
    "watches stalled for a minute": watches_stalled(60),
    "etcd paused for 20 s": etcd_paused(20),
    "the watch of bound pods stalled": bound_pods_stalled,
}
