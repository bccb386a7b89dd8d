"""Devices that are ours, and pods that are not."""

from extender.config.settings import Ownership, Settings
from tests.controlplane.plane import Plane
from tests.e2e.world import staged, stock, world_on


async def test_the_owner_taint_bars_the_stock_scheduler_and_not_us(control_plane: Plane) -> None:
    settings = Settings(ownership=Ownership(owner_taint="dra-extender.x-k8s.io/owned"))
    async with staged(control_plane, settings) as stage, world_on(stage) as here, stock(control_plane):
        await here.node("a")
        await here.device_class()
        await here.slice("a", [{"name": "gpu-0"}])
        await here.taint_rule("dra-extender.x-k8s.io/owned")
        await here.claim("c", here.request())
        theirs = await here.pod("theirs", claims=("c",), schedulerName="default-scheduler")
        await here.refused(theirs, "cannot allocate all claims")
        assert await here.bound(await here.pod("ours", claims=("c",))) == "a"
        # What we allocated may be used by pods of any scheduler.
        assert await here.bound(theirs) == "a"
