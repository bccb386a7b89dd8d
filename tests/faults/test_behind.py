"""Of several API servers behind one address one may be far behind the others, or answer nothing any more."""

import asyncio
import re
import signal

import pytest

from tests.controlplane.balancer import Balancer
from tests.controlplane.plane import Plane
from tests.faults.proxy import Forward, Request, honest
from tests.faults.scene import scene

# Which leaves the cluster empty.
pytestmark = pytest.mark.usefixtures("admin")
# Longer than a binding waits for its watch.
BEHIND_S = 11.0
# In which version a list is.
LISTED = re.compile(rb'"metadata":{"resourceVersion":"(\d+)"')


async def behind(request: Request, forward: Forward) -> bytes | None:
    """Answer lists as an API server does that is far behind the others, and all else as it is."""
    answer = await forward()
    if "limit=" not in request.target:
        return answer
    return LISTED.sub(lambda found: found[0].replace(found[1], b"1".zfill(len(found[1]))), answer, count=1)


async def test_pods_are_bound_though_the_watch_of_claims_has_fallen_far_behind(control_plane: Plane) -> None:
    async with scene(control_plane, nodes=2, gpus=4, flags=()) as here, here.watched_over():
        await here.burst(1)
        await here.served()
        assert here.proxy.fall_behind(BEHIND_S, "resourceclaims") == 1
        await here.burst(4)
        await here.served()
        await here.empty()


async def test_pods_are_bound_by_the_other_api_server_when_one_hangs_with_all_connections(control_plane: Plane) -> None:
    async with control_plane.second_server() as (second, process), Balancer(second) as balancer:
        flags = ("--watch-max-age-seconds=15", "--api-timeout-seconds=2")
        async with scene(control_plane, nodes=2, gpus=4, flags=flags, url=balancer.url) as here, here.watched_over():
            await here.burst(4)
            await here.served()
            balancer.chosen = control_plane.url
            process.send_signal(signal.SIGSTOP)
            await here.burst(4)
            await here.served()
            process.send_signal(signal.SIGCONT)
            await here.served()
            await here.empty()


async def test_an_api_server_that_lists_what_was_a_second_ago_ends_nothing_and_pods_are_bound(
    control_plane: Plane,
) -> None:
    async with scene(control_plane, nodes=2, gpus=4, flags=()) as here, here.watched_over():
        for _ in range(3):
            await here.burst(4)
            here.proxy.fault = behind
            assert here.proxy.cut_watches() > 0
            await here.burst(4)
            await asyncio.sleep(1.5)
            here.proxy.fault = honest
            await here.served()
        assert here.extender.process is not None
        assert here.extender.process.poll() is None
        assert "the cluster is at 0" in control_plane.log("extender").read_text()
        await here.empty()
