"""Room that kube-scheduler has kept for a pod which is bound elsewhere."""

import asyncio

from tests.controlplane.plane import Plane
from tests.e2e.test_obstacles import cpus
from tests.e2e.world import world


async def test_who_waits_for_room_that_was_kept_for_a_pod_is_tried_once_that_is_bound_elsewhere(
    control_plane: Plane,
) -> None:
    async with world(control_plane) as here:
        await here.device_class()
        for node in ("a", "b"):
            await here.node(node, 10)
            await here.slice(node, [{"name": "gpu-0"}])
        await here.template("one", here.request())
        spot = {"world": here.name, f"{here.name}-spot": "yes"}
        first = await here.pod("first", templates=("one",), containers=cpus(8), nodeSelector=spot)
        await here.refused(first, "affinity")
        await here.admin.patch(first, {"status": {"nominatedNodeName": here.full("a")}}, "status")
        await asyncio.sleep(2.0)
        second = await here.pod("second", templates=("one",), containers=cpus(8), nodeSelector=here.on("a"))
        await here.refused(second, "Insufficient cpu")
        other = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": here.full("b")}}
        await here.admin.patch(other, {"metadata": {"labels": spot}})
        assert await here.bound(first) == "b"
        assert await here.bound(second) == "a"
