"""What people can ask for, on a real control plane, answered by kube-scheduler and us."""

from tests.controlplane.plane import Plane
from tests.e2e.world import world


async def test_one_device(control_plane: Plane) -> None:
    async with world(control_plane) as here:
        await here.node("a")
        await here.device_class()
        await here.slice("a", [{"name": "gpu-0"}, {"name": "gpu-1"}])
        claim = await here.claim("c", here.request())
        pod = await here.pod("p", claims=("c",))
        assert await here.bound(pod) == "a"
        assert await here.devices(claim) in (["a/gpu-0"], ["a/gpu-1"])
