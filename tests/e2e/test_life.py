"""The whole life of a claim that we allocate, as kube-scheduler and the resourceclaim controller see it."""

import pytest

from extender.scheduling.drift import Kind, findings
from tests.controlplane.client import Object, until
from tests.e2e.world import World

pytestmark = pytest.mark.asyncio(loop_scope="module")

FINALIZER = "resource.kubernetes.io/delete-protection"


async def device(here: World, *nodes: str) -> None:
    await here.device_class()
    for node in nodes or ("a",):
        await here.node(node)
        await here.slice(node, [{"name": "gpu-0"}])


def reservations(claim: Object) -> list[Object]:
    found: list[Object] = claim["status"].get("reservedFor", [])
    return found


def reservation(pod: Object) -> Object:
    return {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}


def extended(resource: str) -> Object:
    amounts = {resource: "1"}
    return {"name": "main", "image": "none", "resources": {"requests": amounts, "limits": amounts}}


async def test_a_claim_is_reserved_shared_finished_freed_used_again_and_deleted(here: World) -> None:
    await device(here)
    claim = await here.claim("c", here.request())
    first, second = await here.pod("first", claims=("c",)), await here.pod("second", claims=("c",))
    for pod in (first, second):
        assert await here.bound(pod) == "a"
    shared = await here.admin.read(claim)
    assert FINALIZER in shared["metadata"]["finalizers"]
    assert sorted(reservations(shared), key=str) == sorted(map(reservation, (first, second)), key=str)

    await here.succeed(first)
    left = await here.when(claim, lambda read: len(reservations(read)) == 1, "the first reservation to end")
    assert reservations(left) == [reservation(second)]
    assert left["status"]["allocation"] == shared["status"]["allocation"]
    await here.succeed(second)
    await here.freed(claim)

    third = await here.pod("third", claims=("c",))
    assert await here.bound(third) == "a"
    await here.admin.delete(claim)
    assert (await here.admin.read(claim))["status"]["allocation"]
    await here.succeed(third)
    await here.gone(claim)


async def test_a_claim_that_is_freed_may_move_to_another_node(here: World) -> None:
    await device(here, "a", "b")
    claim = await here.claim("c", here.request())
    pods = [
        await here.pod(f"p-{node}", claims=("c",), nodeSelector={"kubernetes.io/hostname": here.full(node)})
        for node in ("a", "b")
    ]
    for pod, node in zip(pods, ("a", "b"), strict=True):
        assert await here.bound(pod) == node
        assert await here.devices(claim) == [f"{node}/gpu-0"]
        await here.succeed(pod)


async def test_the_claim_of_a_template_goes_with_its_pod_and_leaves_its_device(here: World) -> None:
    await device(here)
    await here.template("one", here.request())
    for name in ("first", "second"):
        pod = await here.pod(name, templates=("one",))
        assert await here.bound(pod) == "a"
        claim = await here.claim_of(pod)
        assert reservations(await here.admin.read(claim)) == [reservation(pod)]
        await here.finish(pod)
        await here.gone(claim)


async def test_the_claim_for_extended_resources_goes_with_its_pod_and_leaves_its_device(here: World) -> None:
    resource = f"{here.name}.example.com/gpu"
    await here.node("a")
    await here.device_class(extendedResourceName=resource)
    await here.slice("a", [{"name": "gpu-0"}])
    for name in ("first", "second"):
        pod = await here.pod(name, containers=[extended(resource)])
        assert await here.bound(pod) == "a"
        claim = await here.hidden_claim_of(pod)
        read = await here.admin.read(claim)
        assert reservations(read) == [reservation(pod)]
        assert read["metadata"]["annotations"]["resource.kubernetes.io/extended-resource-claim"] == "true"
        await here.finish(pod)
        await here.gone(claim)


async def test_a_pod_that_is_deleted_while_it_waits_leaves_nothing(here: World) -> None:
    await device(here)
    await here.template("one", here.request())
    await here.template("two", here.request(count=2))
    hopeless = await here.pod("hopeless", templates=("two",))
    await here.refused(hopeless, "too few")
    claim = await here.claim_of(hopeless)
    await here.finish(hopeless)
    await here.gone(claim)
    assert await here.bound(await here.pod("p", templates=("one",))) == "a"
    assert not list(here.service.belief.ledger)


async def test_a_namespace_that_is_deleted_takes_its_pods_and_leaves_their_devices(here: World) -> None:
    resource = f"{here.name}.example.com/gpu"
    await here.node("a")
    await here.device_class(extendedResourceName=resource)
    await here.slice("a", [{"name": f"gpu-{number}"} for number in range(4)])
    await here.own_namespace()
    await here.template("one", here.request())
    kinds: tuple[Object, ...] = ({"templates": ("one",)}, {"containers": [extended(resource)]})
    for number in range(4):
        assert (
            await here.bound(await here.pod(f"p{number}", terminationGracePeriodSeconds=0, **kinds[number % 2])) == "a"
        )
    for number, kind in enumerate(kinds):
        await here.refused(await here.pod(f"waiting-{number}", **kind), "too few")

    namespace: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": here.namespace}}
    await here.admin.delete(namespace)
    await here.gone(namespace)

    here.namespace = "default"
    await here.template("one", here.request())
    for number in range(4):
        assert await here.bound(await here.pod(f"next-{number}", templates=("one",))) == "a"
    assert not list(here.service.belief.ledger)


async def test_a_bound_pod_whose_claim_somebody_has_emptied_is_told_so(here: World) -> None:
    await here.node("a")
    await here.device_class()
    await here.slice("a", [{"name": "gpu-0"}])
    await here.template("one", here.request())
    pod = await here.pod("p", templates=("one",))
    await here.bound(pod)
    claim = await here.claim_of(pod)

    async def is_bare() -> bool:
        # What has to last for a minute is looked for at once.
        return any(found.kind is Kind.BARE for found in findings(here.service.belief))

    async def is_told() -> bool:
        await here.service.auditing.round()
        return here.stage.counted("drift", kind="bare") == 1

    assert not await is_bare()
    await here.admin.patch(claim, {"status": {"allocation": None, "reservedFor": None}}, "status")
    await until(is_bare, "the pod to be bare")
    here.service.auditing.auditor.patience_s = 0.0
    await until(is_told, "drift")
    (note,) = await here.notes(pod, "DevicesMissing")
    assert note.endswith("it has no devices, and the pod is bound with it")
