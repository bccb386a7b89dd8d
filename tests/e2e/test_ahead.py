"""Pods sent to their node before kube-scheduler asks about them."""

from extender.config.settings import Settings, Waking
from tests.controlplane.plane import Plane
from tests.e2e.world import world


async def test_pods_that_are_nominated_ahead_each_get_a_node_of_their_own(control_plane: Plane) -> None:
    async with world(control_plane, Settings(waking=Waking(nominate_ahead="always"))) as here:
        await here.device_class()
        for node in ("a", "b", "c"):
            await here.node(node)
            await here.slice(node, [{"name": "gpu-0"}])
        await here.template("one", here.request())
        pods = [await here.pod(f"p{index}", templates=("one",)) for index in range(3)]
        assert {await here.bound(pod) for pod in pods} == {"a", "b", "c"}
