"""Configuration for drivers, as much as the API server takes: what is too much is told before anything is written."""

from extender.config.settings import Allocation, Settings
from tests.controlplane.client import Object
from tests.controlplane.plane import Plane
from tests.e2e.world import world

NAMES = [f"r{number}" for number in range(8)]


def entries(driver: str, count: int) -> list[Object]:
    return [{"opaque": {"driver": driver, "parameters": {"number": number}}} for number in range(count)]


async def test_configuration_is_given_to_many_requests_and_not_repeated_beyond_what_is_taken(
    control_plane: Plane,
) -> None:
    async with world(control_plane, Settings(allocation=Allocation(release="v1.36"))) as here:
        await here.node("a")
        await here.device_class()
        await here.slice("a", [{"name": f"gpu-{number}"} for number in range(16)])
        for count, written in ((8, 64), (9, 9)):
            config = [{**entry, "requests": NAMES} for entry in entries(here.driver, count)]
            claim = await here.claim(f"c{count}", *map(here.request, NAMES), config=config)
            pod = await here.pod(f"p{count}", claims=(f"c{count}",))
            assert await here.bound(pod) == "a"
            found = (await here.admin.read(claim))["status"]["allocation"]["devices"]["config"]
            assert len(found) == written
            assert {entry["source"] for entry in found} == {"FromClaim"}


async def test_a_claim_of_classes_with_too_much_configuration_is_told_so(control_plane: Plane) -> None:
    async with world(control_plane) as here:
        await here.node("a")
        for name in NAMES[:3]:
            await here.device_class(name, config=entries(here.driver, 32))
        await here.slice("a", [{"name": f"gpu-{number}"} for number in range(8)])
        await here.claim("c", *(here.request(name, device_class=name) for name in NAMES[:3]))
        pod = await here.pod("p", claims=("c",))
        await here.refused(pod, "the claim's request cannot be answered as it is written")
        (note,) = await here.notes(pod, "InvalidRequest")
        assert "96 entries of configuration" in note
        assert here.refusals() == []
