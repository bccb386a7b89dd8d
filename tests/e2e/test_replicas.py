"""Two replicas, each of kube-scheduler and extender: whatever of them is killed or stopped, binding goes on."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import pytest

from extender.state.tenure import host_of
from tests.controlplane.client import Object, until
from tests.controlplane.plane import Plane
from tests.controlplane.processes import can_name_hosts
from tests.e2e.replicas import NOTHING, Pod, lease, two_pods
from tests.e2e.test_crashes import DIRECT
from tests.e2e.world import World, unserved, world_on
from tests.faults.proxy import Forward, Proxy, Request
from tests.faults.scene import moment_of
from tests.invariants.checker import at_once

NODES, DEVICES = ("n1", "n2"), 8


@asynccontextmanager
async def scene(
    plane: Plane, dies_after: str = "", proxy: Proxy | None = None, leading: Mapping[str, object] = NOTHING
) -> AsyncIterator[tuple[World, Pod, Pod]]:
    """Give two nodes with eight devices each, and two pods of which the first leads."""
    if not can_name_hosts():
        pytest.skip("the kernel gives no process a host name of its own")
    async with (
        unserved(plane) as bare,
        world_on(bare) as here,
        two_pods(plane, bare.admin, dies_after, proxy, leading) as (a, b),
    ):
        for node in NODES:
            await here.node(node)
            await here.slice(node, [{"name": f"gpu-{number}"} for number in range(DEVICES)])
        await here.device_class()
        await here.template("one", here.request())
        yield here, a, b


async def pods(here: World, name: str, count: int = 4) -> list[Object]:
    return [await here.pod(f"{name}-{number}", templates=("one",)) for number in range(count)]


async def all_bound(here: World, waiting: list[Object]) -> None:
    for pod in waiting:
        assert await here.bound(pod) in NODES


async def no_device_is_given_twice(here: World, count: int) -> None:
    given = [device for claim in await here.claims() for device in here.given(claim)]
    assert len(given) == len(set(given)) == count
    assert at_once(await moment_of(here.admin)) == []


async def holder(here: World) -> str:
    """Name the host of the replica that holds the extender's Lease."""
    spec: Object = (await here.admin.read(lease("dra-extender")))["spec"]
    return host_of(spec.get("holderIdentity", ""))


async def kill_extender(leader: Pod) -> None:
    """Kill the extender alone; its kubelet starts it again."""
    leader.signal_extender()
    await leader.start_extender()


async def kill_scheduler(leader: Pod) -> None:
    leader.signal_scheduler()


async def kill_both(leader: Pod) -> None:
    leader.signal_extender()
    leader.signal_scheduler()


async def stop_both(leader: Pod) -> None:
    """Stop the whole machine, as far as these two can tell."""
    leader.signal_extender(signal.SIGSTOP)
    leader.signal_scheduler(signal.SIGSTOP)


@pytest.mark.parametrize(
    ("strike", "is_followed"),
    [
        pytest.param(kill_extender, False, id="the extender"),
        pytest.param(kill_scheduler, True, id="the scheduler"),
        pytest.param(kill_both, True, id="both"),
    ],
)
async def test_o1_binding_goes_on_when_of_the_leading_pod_is_killed(
    control_plane: Plane, strike: Callable[[Pod], Awaitable[None]], *, is_followed: bool
) -> None:
    async with scene(control_plane) as (here, a, b):
        await all_bound(here, await pods(here, "before"))
        during = await pods(here, "during")
        await strike(a)
        during += await pods(here, "after")
        next_one = b if is_followed else a
        await until(next_one.leads, f"{next_one.host} to lead")
        await all_bound(here, during)
        await no_device_is_given_twice(here, 12)


async def test_an_extender_that_is_started_again_in_its_pod_waits_for_no_lease(control_plane: Plane) -> None:
    # Whoever waited for it would do so for longer than this test may take.
    async with scene(control_plane, leading={"pod": "a-uid", "leaseSeconds": 3600}) as (here, a, _):
        during = await pods(here, "during")
        await kill_extender(a)
        await until(a.leads, "the extender to lead again")
        await all_bound(here, during + await pods(here, "after"))
        await no_device_is_given_twice(here, 8)


@pytest.mark.parametrize("last", ["the allocation", "the binding"])
async def test_what_a_leader_has_left_half_written_its_follower_finishes(control_plane: Plane, last: str) -> None:
    async with scene(control_plane, DIRECT[last]) as (here, a, b):
        pod = await here.pod("p", templates=("one",))
        await until(a.is_dead, f"the extender to die after {last}")
        a.signal_scheduler()
        await until(b.leads, "the other to lead")
        assert await here.bound(pod) in NODES
        await no_device_is_given_twice(here, 1)


async def test_a_leader_that_was_stopped_for_a_while_does_nothing_when_it_goes_on(control_plane: Plane) -> None:
    async with scene(control_plane) as (here, a, b):
        during = await pods(here, "during")
        await stop_both(a)
        await until(b.leads, "the other to lead")
        a.signal_extender(signal.SIGCONT)
        a.signal_scheduler(signal.SIGCONT)
        await until(a.is_ready, "the first to be ready")
        assert not await a.leads()
        await all_bound(here, during + await pods(here, "after"))
        await no_device_is_given_twice(here, 8)
        await until(b.leads, "the other to lead still")


async def test_a_leader_that_ends_is_followed_without_a_wait(control_plane: Plane) -> None:
    async with scene(control_plane) as (here, a, b):
        during = await pods(here, "during")
        a.signal_extender(signal.SIGTERM)
        await until(a.is_dead, "the extender to end")
        # The other does not contend while the scheduler beside the first leads: nobody holds what was given up, and so
        # nobody waits until it runs out.
        assert await holder(here) == ""
        await a.end()
        await until(b.leads, "the other to lead")
        await all_bound(here, during)
        await no_device_is_given_twice(here, 4)


@asynccontextmanager
async def holding_back(plane: Plane) -> AsyncIterator[tuple[Proxy, asyncio.Event, list[Forward]]]:
    """Give a proxy that holds allocations back, an event for when it does, and what would have them arrive."""
    seen, back = asyncio.Event(), list[Forward]()

    async def hold(request: Request, forward: Forward) -> bytes | None:
        if request.step != "allocation":
            return await forward()
        back.append(forward)
        seen.set()
        return None

    async with Proxy(plane.url, str(plane.authority), hold) as proxy:
        yield proxy, seen, back


async def test_what_a_dead_leader_has_sent_lands_nowhere_though_its_devices_are_given_to_others(
    control_plane: Plane,
) -> None:
    async with (
        holding_back(control_plane) as (proxy, seen, back),
        scene(control_plane, proxy=proxy) as (here, a, b),
    ):
        claim = await here.claim("c", here.request())
        pod = await here.pod("p", claims=("c",))
        await seen.wait()
        await kill_both(a)
        # Nobody wants the claim any more, so that nobody else writes to it.
        await here.admin.delete(pod)
        await until(b.leads, "the other to lead")
        await all_bound(here, await pods(here, "others", DEVICES * len(NODES)))
        answers = [await forward() for forward in back]
        assert {answer.split(b" ", 2)[1] for answer in answers} == {b"409"}
        assert here.given(await here.admin.read(claim)) == []
        await no_device_is_given_twice(here, DEVICES * len(NODES))
