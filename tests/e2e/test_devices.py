"""What people can ask for, on a real control plane, answered by kube-scheduler and us."""

from tests.controlplane.client import Object, until
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


async def test_several_devices_with_one_value_of_an_attribute(control_plane: Plane) -> None:
    async with world(control_plane) as here:
        await here.device_class()
        for node, numas in (("a", [0, 1, 0, 1]), ("b", [0, 0, 0, 1])):
            await here.node(node)
            devices = [
                {"name": f"gpu-{index}", "attributes": {"numa": {"int": numa}}} for index, numa in enumerate(numas)
            ]
            await here.slice(node, devices)
        rule = {"requests": ["gpu"], "matchAttribute": f"{here.driver}/numa"}
        claim = await here.claim("c", here.request(count=3), constraints=[rule])
        pod = await here.pod("p", claims=("c",))
        assert await here.bound(pod) == "b"
        assert sorted(await here.devices(claim)) == ["b/gpu-0", "b/gpu-1", "b/gpu-2"]


async def test_a_freed_device_wakes_the_pod_that_waits_for_it(control_plane: Plane) -> None:
    async with world(control_plane) as here:
        await here.node("a")
        await here.device_class()
        await here.slice("a", [{"name": "gpu-0"}])
        await here.template("one", here.request())
        first = await here.pod("first", templates=("one",))
        await here.bound(first)
        second = await here.pod("second", templates=("one",))
        await here.refused(second, "too few matching devices are free")
        await here.finish(first)
        assert await here.bound(second) == "a"


async def test_two_pods_race_for_one_device_and_one_is_told_why_it_lost(control_plane: Plane) -> None:
    async with world(control_plane) as here:
        await here.node("a")
        await here.device_class()
        await here.slice("a", [{"name": "gpu-0"}])
        await here.template("one", here.request())
        pods = [await here.pod(f"p{index}", templates=("one",)) for index in range(2)]

        async def losers() -> list[Object] | None:
            left = [pod for pod in pods if not (await here.admin.read(pod))["spec"].get("nodeName")]
            return left if len(left) == 1 else None

        (loser,) = await until(losers)
        await here.refused(loser, "too few matching devices are free")


async def test_alternatives_take_the_first_that_there_is(control_plane: Plane) -> None:
    async with world(control_plane) as here:
        await here.node("a")
        await here.device_class()
        await here.slice("a", [{"name": f"gpu-{index}", "attributes": {"big": {"bool": False}}} for index in range(2)])
        big = {"cel": {"expression": f"device.attributes['{here.driver}'].big"}}
        name = f"{here.name}-gpu"
        alternatives = [
            {"name": "big", "deviceClassName": name, "selectors": [big]},
            {"name": "two", "deviceClassName": name, "count": 2},
        ]
        claim = await here.claim("c", {"name": "gpu", "firstAvailable": alternatives})
        pod = await here.pod("p", claims=("c",))
        await here.bound(pod)
        assert sorted(await here.devices(claim)) == ["a/gpu-0", "a/gpu-1"]


async def test_a_shared_claim_serves_both_pods_on_its_node(control_plane: Plane) -> None:
    async with world(control_plane) as here:
        await here.device_class()
        for node in ("a", "b"):
            await here.node(node)
            await here.slice(node, [{"name": "gpu-0"}])
        claim = await here.claim("c", here.request())
        pods = [await here.pod(f"p{index}", claims=("c",)) for index in range(3)]
        nodes = {await here.bound(pod) for pod in pods}
        assert len(nodes) == 1
        reserved = (await here.admin.read(claim))["status"]["reservedFor"]
        assert len(reserved) == 3


async def test_an_extended_resource_is_served_by_its_class(control_plane: Plane) -> None:
    async with world(control_plane) as here:
        await here.node("a")
        resource = f"{here.name}.example.com/gpu"
        await here.device_class(extendedResourceName=resource)
        await here.slice("a", [{"name": "gpu-0"}, {"name": "gpu-1"}])
        amounts = {"requests": {resource: "2"}, "limits": {resource: "2"}}
        pod = await here.pod("p", containers=[{"name": "main", "image": "none", "resources": amounts}])
        assert await here.bound(pod) == "a"
        status = (await here.admin.read(pod))["status"]["extendedResourceClaimStatus"]
        mapping = {"containerName": "main", "resourceName": resource, "requestName": "container-0-request-0"}
        assert status["requestMappings"] == [mapping]


async def test_a_pod_without_claims_is_bound_plainly(control_plane: Plane) -> None:
    async with world(control_plane) as here:
        await here.node("a")
        pod = await here.pod("p")
        assert await here.bound(pod) == "a"


async def test_events_say_what_was_decided(control_plane: Plane) -> None:
    async with world(control_plane) as here:
        await here.node("a")
        await here.device_class()
        await here.slice("a", [{"name": "gpu-0"}])
        await here.template("one", here.request())
        await here.template("two", here.request(count=2))
        pod = await here.pod("p", templates=("one",))
        await here.bound(pod)
        hopeless = await here.pod("q", templates=("two",))

        async def notes() -> list[str] | None:
            path = "/apis/events.k8s.io/v1/namespaces/default/events"
            events = await here.admin.list(path)
            found = [
                event["note"]
                for event in events
                if event.get("reportingController", "").startswith("dra-extender")
                and event["regarding"]["name"] in (pod["metadata"]["name"], hopeless["metadata"]["name"])
            ]
            return found if len(found) >= 2 else None

        said = await until(notes)
        assert any("gpu-0" in note for note in said)
        assert any("needs 2 free devices" in note for note in said)
