"""Pods that change or go while they are bound, and an API server that goes and comes back."""

from collections.abc import AsyncIterator

import pytest

from extender.kube.answer import Answer, Unanswered
from tests.controlplane.client import Object, until
from tests.controlplane.plane import Plane
from tests.e2e.faults import Call, allocation_of, binding, faulty
from tests.e2e.world import World, impatient, staged, world_on


@pytest.fixture
async def here(control_plane: Plane) -> AsyncIterator[World]:
    async with staged(control_plane, changed=impatient) as stage, world_on(stage) as made:
        yield made


async def device(here: World, *nodes: str) -> None:
    await here.device_class()
    for node in nodes:
        await here.node(node)
        await here.slice(node, [{"name": "gpu-0"}])


async def no_holds(here: World) -> None:
    async def is_quiet() -> bool:
        return not list(here.service.belief.ledger)

    await until(is_quiet, "every hold to end")


@pytest.mark.parametrize("concerns", ["allocation", "binding"])
async def test_a_pod_that_is_deleted_in_the_middle_of_its_binding_gives_its_device_back(
    here: World, concerns: str
) -> None:
    await device(here, "a")
    claim = await here.claim("c", here.request())
    gated = await here.pod("p", claims=("c",), schedulingGates=[{"name": "example.com/later"}])

    async def deleted(call: Call) -> Answer | Unanswered:
        await here.finish(gated)
        return await call()

    with faulty(here.stage, binding if concerns == "binding" else allocation_of(claim), deleted):
        await here.admin.patch(gated, {"spec": {"schedulingGates": []}})
        await here.gone(gated)
        await here.freed(claim)
    await no_holds(here)
    assert await here.bound(await here.pod("next", claims=("c",))) == "a"


async def test_a_pod_that_is_made_anew_under_its_name_is_bound_with_devices_of_its_own(here: World) -> None:
    await device(here, "a")
    await here.template("one", here.request())
    gated = await here.pod("p", templates=("one",), schedulingGates=[{"name": "example.com/later"}])
    made: list[Object] = []

    async def replaced(call: Call) -> Answer | Unanswered:
        await here.finish(gated)
        made.append(await here.pod("p", templates=("one",)))
        return await call()

    async def is_made() -> Object | None:
        return made[0] if made else None

    with faulty(here.stage, binding, replaced):
        await here.admin.patch(gated, {"spec": {"schedulingGates": []}})
        pod = await until(is_made, "the pod to be made anew")
        assert await here.bound(pod) == "a"
    assert (await here.admin.read(pod))["metadata"]["uid"] == pod["metadata"]["uid"]
    held = [claim for claim in await here.claims() if here.given(claim)]
    assert [claim["status"]["reservedFor"][0]["uid"] for claim in held] == [pod["metadata"]["uid"]]


async def test_a_shared_claim_is_not_taken_back_while_another_pod_uses_it(here: World) -> None:
    await device(here, "a", "b")
    claim = await here.claim("c", here.request())
    others: list[Object] = []

    async def refused(call: Call) -> Answer | Unanswered:
        others.append(await here.pod("second", claims=("c",)))
        await here.bound(others[0])
        await here.finish(first)
        return await call()

    with faulty(here.stage, binding, refused):
        first = await here.pod("first", claims=("c",))
        await here.gone(first)
    read = await here.when(claim, lambda read: len(read["status"].get("reservedFor", [])) == 1)
    assert read["status"]["reservedFor"][0]["uid"] == others[0]["metadata"]["uid"]
    assert here.given(read) == [f"{await here.bound(others[0])}/gpu-0"]
    await no_holds(here)


async def test_an_api_server_that_goes_and_comes_back_is_followed_on(here: World, control_plane: Plane) -> None:
    await device(here, "a", "b")
    await here.template("one", here.request())
    first = await here.pod("first", templates=("one",))
    await here.bound(first)
    control_plane.restart("kube-apiserver")

    async def is_back() -> bool:
        try:
            return (await here.admin.call("GET", "/readyz")).status == 200
        except OSError:
            return False

    await until(is_back, "the API server to be back")
    assert await here.bound(await here.pod("second", templates=("one",))) in ("a", "b")
    third = await here.pod("third", templates=("one",))
    await here.refused(third, "too few matching devices are free")
    await here.finish(first)
    await here.bound(third)
