"""The service is killed in the middle of a binding: its successor finishes or takes it back, and nothing leaks."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import Popen

import pytest

from extender.scheduling.vocabulary import TEXTS, Word
from tests.controlplane.client import Object, until
from tests.controlplane.plane import Plane
from tests.controlplane.probes import until_ready
from tests.controlplane.processes import free_port, start, stop
from tests.e2e.world import World, behind, impatient, served, unserved, world_on
from tests.faults.scene import moment_of
from tests.invariants.checker import at_once, unwanted

# After the answer to which request the service dies.
DIRECT = {
    "the finalizer": "PATCH .*/resourceclaims/[^/]+$",
    "the allocation": "PATCH .*/resourceclaims/[^/]+/status$",
    "the binding": "POST .*/pods/[^/]+/binding$",
}
EXTENDED = {
    "the claim": "POST .*/resourceclaims$",
    "the finalizer": "PATCH .*/resourceclaims/[^/]+$",
    "the allocation": "PATCH .*/resourceclaims/[^/]+/status$",
    "the mapping": "PATCH .*/pods/[^/]+/status$",
}


@asynccontextmanager
async def mortal(plane: Plane, port: int, pattern: str) -> AsyncIterator[Popen[bytes]]:
    """Run the service as a program until it is ready; it dies after *pattern*."""
    probes, kubeconfig = free_port(), plane.kubeconfig("extender")
    command = ("-m", "tests.e2e.mortal", str(kubeconfig), str(port), str(probes), pattern)
    log = plane.log("mortal")
    process = start(Path(sys.executable), *command, log=log)
    try:
        await until_ready(process, probes, log)
        yield process
    finally:
        stop(process)


async def dead(process: Popen[bytes]) -> None:
    async def ended() -> bool:
        return process.poll() is not None

    await until(ended, "the service to die")


async def survived(here: World, plane: Plane, port: int, process: Popen[bytes], pod: Object) -> None:
    """Let the service die, start another in its place, and see that *pod* is bound and nothing else is held."""
    await dead(process)
    async with served(plane, port=port) as made:
        assert await here.bound(pod) == "a"

        async def is_quiet() -> bool:
            return not list(made.service.belief.ledger)

        await until(is_quiet, "every hold to end")
        held = [claim for claim in await here.claims() if here.given(claim)]
        assert [[entry["name"] for entry in claim["status"]["reservedFor"]] for claim in held] == [[here.full("p")]]
        now = await moment_of(here.admin)
        assert [*at_once(now), *unwanted(now)] == []


@pytest.mark.parametrize("pattern", DIRECT.values(), ids=DIRECT)
async def test_a_service_killed_after_a_write_leaves_a_pod_that_its_successor_binds(
    control_plane: Plane, pattern: str
) -> None:
    port = free_port()
    async with unserved(control_plane) as bare, world_on(bare) as here, mortal(control_plane, port, pattern) as process:
        await here.node("a")
        await here.device_class()
        await here.slice("a", [{"name": "gpu-0"}])
        claim = await here.claim("c", here.request())
        async with behind(control_plane, port, impatient):
            pod = await here.pod("p", claims=("c",))
            await survived(here, control_plane, port, process, pod)
        assert await here.devices(claim) == ["a/gpu-0"]
        await here.succeed(pod)
        await here.freed(claim)


@pytest.mark.parametrize("pattern", EXTENDED.values(), ids=EXTENDED)
async def test_a_service_killed_over_extended_resources_leaves_one_claim_for_them(
    control_plane: Plane, pattern: str
) -> None:
    port = free_port()
    async with unserved(control_plane) as bare, world_on(bare) as here, mortal(control_plane, port, pattern) as process:
        resource = f"{here.name}.example.com/gpu"
        await here.node("a")
        await here.device_class(extendedResourceName=resource)
        await here.slice("a", [{"name": "gpu-0"}])
        amounts = {"requests": {resource: "1"}, "limits": {resource: "1"}}
        async with behind(control_plane, port, impatient):
            pod = await here.pod("p", containers=[{"name": "main", "image": "none", "resources": amounts}])
            await survived(here, control_plane, port, process, pod)
        claim = await here.hidden_claim_of(pod)

        async def is_alone() -> bool:
            return [item["metadata"]["name"] for item in await here.claims()] == [claim["metadata"]["name"]]

        await until(is_alone, "the claims of attempts that ended half-way to go")
        await here.finish(pod)
        await here.gone(claim)


async def test_a_pod_that_was_refused_by_a_service_that_ended_is_woken_by_its_successor(control_plane: Plane) -> None:
    port = free_port()
    async with unserved(control_plane) as bare, world_on(bare) as here, behind(control_plane, port, impatient):
        await here.node("a")
        await here.device_class()
        await here.claim("c", here.request())
        async with served(control_plane, port=port):
            pod = await here.pod("p", claims=("c",))
            await here.refused(pod, TEXTS[Word.NO_DEVICES])
        # Of slices the scheduler hears nothing where its own allocator is off.
        await here.slice("a", [{"name": "gpu-0"}])
        async with served(control_plane, port=port):
            assert await here.bound(pod) == "a"


async def test_a_pod_deleted_while_nobody_serves_leaves_its_device_free(control_plane: Plane) -> None:
    port, pattern = free_port(), DIRECT["the allocation"]
    async with unserved(control_plane) as bare, world_on(bare) as here, mortal(control_plane, port, pattern) as process:
        await here.node("a")
        await here.device_class()
        await here.slice("a", [{"name": "gpu-0"}])
        claim = await here.claim("c", here.request())
        await here.template("one", here.request())
        async with behind(control_plane, port, impatient):
            pod = await here.pod("p", claims=("c",))
            await dead(process)
            assert await here.devices(claim) == ["a/gpu-0"]
            await here.finish(pod)
            async with served(control_plane, port=port):
                assert await here.bound(await here.pod("other", templates=("one",))) == "a"
