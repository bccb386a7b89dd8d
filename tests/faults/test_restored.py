"""Of etcd restored from a backup: what came after it was never so, and who knew it must not act on that."""

import asyncio

from tests.controlplane.plane import Plane
from tests.faults.scene import Scene, scene

SET_BACK = 4


async def bound(here: Scene) -> set[str]:
    pods = (await here.moment()).pods
    return {pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")}


async def test_after_a_restore_it_ends_and_started_anew_binds_pods_to_what_is_free_now(control_plane: Plane) -> None:
    async with scene(control_plane, nodes=4, gpus=4, flags=()) as here, here.watched_over():
        await here.burst(4)
        await here.calm()
        backup = control_plane.back_up()
        before = (await here.moment()).pods
        # What they have is free for others, until they are back.
        await here.end(before)
        await here.burst(16)
        await here.calm()
        control_plane.restore(backup)
        assert await bound(here) == {pod["metadata"]["name"] for pod in before}
        await here.burst(4)
        process = here.extender.process
        assert process is not None
        assert await asyncio.to_thread(process.wait, 60) == SET_BACK
        await here.end_schedulers()
        await here.extender.start()
        await here.start_scheduler()
        await here.calm()
        assert await bound(here) > {pod["metadata"]["name"] for pod in before}
        await here.served()
        await here.empty()
