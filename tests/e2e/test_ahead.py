"""Pods sent to their node before kube-scheduler asks about them."""

from extender.config.settings import Settings, Waking
from tests.controlplane.client import until
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


async def test_a_pod_is_nominated_before_its_claim_is_made_and_bound_there_once_it_is(control_plane: Plane) -> None:
    async with world(control_plane, Settings(waking=Waking(nominate_ahead="always"))) as here:
        await here.device_class()
        for node in ("a", "b"):
            await here.node(node)
            await here.slice(node, [{"name": "gpu-0"}])
        template = await here.template("one", here.request())
        first = await here.bound(await here.pod("first", templates=("one",)))
        # As long as there is no template nobody makes the claim; of what was made from it before it is known what to.
        await here.admin.delete(template)
        await here.gone(template)
        pod = await here.pod("second", templates=("one",))

        async def nominated() -> str | None:
            status = (await here.admin.read(pod))["status"]
            assert "resourceClaimStatuses" not in status
            node: str | None = status.get("nominatedNodeName")
            return node

        node = (await until(nominated)).removeprefix(f"{here.name}-")
        assert {first, node} == {"a", "b"}
        await here.template("one", here.request())
        assert await here.bound(pod) == node
        assert await here.devices(await here.claim_of(pod)) == [f"{node}/gpu-0"]
        assert here.asked(pod) == [(here.full(node),)]
