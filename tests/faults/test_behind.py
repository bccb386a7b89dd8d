"""Of several API servers behind one address one may be far behind the others."""

from tests.controlplane.plane import Plane
from tests.faults.scene import scene

# Longer than a binding waits for its watch.
BEHIND_S = 11.0


async def test_pods_are_bound_though_the_watch_of_claims_has_fallen_far_behind(control_plane: Plane) -> None:
    async with scene(control_plane, nodes=2, gpus=4, flags=()) as here, here.watched_over():
        await here.burst(1)
        await here.served()
        assert here.proxy.fall_behind(BEHIND_S, "resourceclaims") == 1
        await here.burst(4)
        await here.served()
        await here.empty()
