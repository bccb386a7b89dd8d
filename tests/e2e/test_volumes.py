"""Pods whose volumes are made once their node is known: between filter and bind the scheduler waits for them."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest_asyncio

from extender.config.settings import Holds, Settings
from extender.model.names import Uid
from tests.controlplane.client import Object, until
from tests.controlplane.plane import Plane
from tests.controlplane.processes import free_port
from tests.e2e.test_obstacles import cpus
from tests.e2e.world import Stage, World, behind, impatient, served, staged, unserved, world_on

SELECTED = "volume.kubernetes.io/selected-node"
HASTY = Settings(holds=Holds(offer_seconds=1))


@asynccontextmanager
async def _world(stage: Stage) -> AsyncIterator[World]:
    """Give a world with one device."""
    async with world_on(stage) as here:
        await here.device_class()
        await here.node("a", 4)
        await here.slice("a", [{"name": "gpu-0"}])
        await here.template("t", here.request())
        await _storage(here)
        yield here


@pytest_asyncio.fixture
async def hasty(control_plane: Plane) -> AsyncIterator[World]:
    """Give a world with one device, where an offer that is not taken up ends soon."""
    async with staged(control_plane, HASTY) as stage, _world(stage) as here:
        yield here


async def test_devices_are_kept_for_a_pod_as_long_as_its_volumes_are_made(hasty: World) -> None:
    first = await hasty.pod("first", templates=("t",), volumes=[_volume(hasty)])
    await hasty.when(_volume_claim(hasty), lambda read: SELECTED in read["metadata"].get("annotations", {}))
    second = await hasty.pod("second", templates=("t",))
    await hasty.refused(second, "too few matching devices are free")
    uid = Uid((await hasty.admin.read(first))["metadata"]["uid"])
    await until(partial(_has_waited, hasty, uid, 3.0), "the offer to be older than offers become")
    assert await hasty.unbound(second)
    await _make(hasty)
    assert await hasty.bound(first) == "a"
    await hasty.finish(first)
    assert await hasty.bound(second) == "a"


async def test_devices_are_kept_where_the_scheduler_prefers_another_node_than_the_best_by_devices(hasty: World) -> None:
    await hasty.node("b")
    await hasty.slice("b", [{"name": f"gpu-{number}"} for number in range(2)])
    await until(partial(_has_slices, hasty, 2), "all devices to be known")
    first = await hasty.pod("first", templates=("t",), volumes=[_volume(hasty)], affinity=_preferring(hasty.full("b")))
    await hasty.when(_volume_claim(hasty), _is_at(hasty.full("b")))
    assert (await hasty.stage.decided(first))["node"] == hasty.full("a")
    uid = Uid((await hasty.admin.read(first))["metadata"]["uid"])
    await until(partial(_has_waited, hasty, uid, 3.0, hasty.full("b")), "the offer to be older than offers become")
    others = [await hasty.pod(f"other-{number}", templates=("t",)) for number in range(2)]
    assert sorted([await hasty.bound(pod) for pod in others]) == ["a", "b"]
    late = await hasty.pod("late", templates=("t",))  # claims are made in any order: a third beside them may come first
    await hasty.refused(late, "too few matching devices are free")
    await _make(hasty)
    assert await hasty.bound(first) == "b"
    assert not hasty.refusals()


async def test_a_pod_whose_scheduler_ends_while_it_waits_keeps_its_devices_with_the_next(control_plane: Plane) -> None:
    async with served(control_plane, HASTY) as stage, _world(stage) as here:
        async with behind(control_plane, stage.server_port):
            first = await here.pod("first", templates=("t",), volumes=[_volume(here)])
            await here.when(_volume_claim(here), _is_at(here.full("a")))
            await here.when(first, lambda read: read["status"].get("nominatedNodeName"))
        asked = len(here.asked(first))
        async with behind(control_plane, stage.server_port):
            await here.until_asked(first, asked + 1)
            second = await here.pod("second", templates=("t",))
            await here.refused(second, "too few matching devices are free")
            uid = Uid((await here.admin.read(first))["metadata"]["uid"])
            await until(partial(_has_waited, here, uid, 3.0), "the offer to be older than offers become")
            await _make(here)
            assert await here.bound(first) == "a"
            assert await here.unbound(second)


async def test_an_extender_that_is_started_anew_meanwhile_refuses_the_bind_and_is_asked_anew(
    control_plane: Plane,
) -> None:
    port = free_port()
    async with unserved(control_plane) as bare, _world(bare) as here, behind(control_plane, port, impatient):
        async with served(control_plane, HASTY, port=port):
            first = await here.pod("first", templates=("t",), volumes=[_volume(here)])
            await here.when(_volume_claim(here), _is_at(here.full("a")))
        async with served(control_plane, HASTY, port=port) as stage:
            await stage.service.ready()
            await _make(here)
            assert await here.bound(first) == "a"

            async def ended() -> list[str] | None:
                # That the pod is bound may be seen before the extender hears of it.
                said = [said for name, said in stage.heard.ended if name == first["metadata"]["name"]]
                return said if len(said) > 1 else None

            refused, bound = await until(ended, "both bindings to end")
            assert "was not offered" in refused
            assert not bound


async def test_a_pod_whose_volumes_are_not_made_in_time_leaves_its_devices_to_others(control_plane: Plane) -> None:
    async with staged(control_plane, HASTY, changed=_impatient) as stage, _world(stage) as here:
        first = await here.pod("first", templates=("t",), volumes=[_volume(here)])
        await here.when(_volume_claim(here), _is_at(here.full("a")))
        second = await here.pod("second", templates=("t",))
        await here.refused(second, "too few matching devices are free")
        assert await here.bound(second) == "a"
        assert await here.unbound(first)


async def test_on_a_node_that_it_was_not_offered_nothing_is_kept_for_a_pod_that_is_nominated_there(
    hasty: World,
) -> None:
    await hasty.node("b")
    await hasty.slice("b", [{"name": "gpu-0"}])
    await until(partial(_has_slices, hasty, 2), "all devices to be known")
    only: Object = {"nodeSelector": hasty.on("a"), "volumes": [_volume(hasty)]}
    first = await hasty.pod("first", templates=("t",), **only)
    await hasty.when(first, lambda read: read["status"].get("nominatedNodeName"))
    await hasty.admin.patch(first, {"status": {"nominatedNodeName": hasty.full("b")}}, "status")
    uid = Uid((await hasty.admin.read(first))["metadata"]["uid"])
    await until(partial(_has_nothing, hasty, uid), "the offer to end")


async def test_a_pod_that_waits_for_volumes_makes_room_for_a_more_important_one(hasty: World) -> None:
    await hasty.priority("high", 1000)
    await hasty.pod("low", templates=("t",), containers=cpus(4), volumes=[_volume(hasty)])
    await hasty.when(_volume_claim(hasty), _is_at(hasty.full("a")))
    high = await hasty.pod("high", templates=("t",), containers=cpus(4), priorityClassName=hasty.full("high"))
    assert await hasty.bound(high) == "a"


def _impatient(configuration: Object) -> None:
    """Wait for volumes for a few seconds, and try again only later."""
    configuration["podInitialBackoffSeconds"] = configuration["podMaxBackoffSeconds"] = 30
    kind = {"apiVersion": configuration["apiVersion"], "kind": "VolumeBindingArgs", "bindTimeoutSeconds": 4}
    configuration["profiles"][0]["pluginConfig"] = [{"name": "VolumeBinding", "args": kind}]


def _preferring(node: str) -> Object:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    preferred = [{"weight": 100, "preference": {"matchExpressions": [here]}}]
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _is_at(node: str) -> Callable[[Object], bool]:
    """Tell of a claim for a volume whether the scheduler has chosen *node* for it."""
    return lambda read: read["metadata"].get("annotations", {}).get(SELECTED) == node


async def _has_slices(here: World, count: int) -> bool:
    slices = here.service.belief.cluster.snapshot.inventory.slices
    return sum(published.driver == here.driver for published in slices) == count


async def _has_nothing(here: World, uid: Uid) -> bool:
    return here.service.belief.ledger.of_pod(uid) is None


async def _has_waited(here: World, uid: Uid, seconds: float, node: str = "") -> bool:
    promise = here.service.belief.ledger.of_pod(uid)
    assert promise is not None, "nothing is kept for the pod"
    return node in (promise.node, "") and here.service.attention.now() - promise.since > seconds


async def _storage(here: World) -> None:
    """Have one volume, to be made where the pod will be."""
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": here.full("late")}}
    await here.create({**storage, "provisioner": "test.example.com", "volumeBindingMode": "WaitForFirstConsumer"})
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": here.full("late"), "resources": _size("requests")}
    await here.create({**_volume_claim(here), "spec": spec})


async def _make(here: World) -> None:
    """Make the volume, as its driver and the controller of volumes would."""
    claim = await here.admin.read(_volume_claim(here))
    reference = {"namespace": here.namespace, "name": claim["metadata"]["name"], "uid": claim["metadata"]["uid"]}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": here.full("volume")}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": here.full("late"), "claimRef": reference}
    source = {"csi": {"driver": "test.example.com", "volumeHandle": "v"}, **_size("capacity")}
    await here.create({**volume, "spec": {**spec, **source}})
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    metadata = {"annotations": bound, "finalizers": None}
    await here.admin.patch(claim, {"metadata": metadata, "spec": {"volumeName": here.full("volume")}})
    await here.admin.patch(claim, {"status": {"phase": "Bound", **_size("capacity")}}, "status")
    await here.admin.patch(volume, {"metadata": {"finalizers": None}})


def _size(key: str) -> Object:
    return {key: {"storage": "1Gi"}}


def _volume(here: World) -> Object:
    return {"name": "data", "persistentVolumeClaim": {"claimName": here.full("data")}}


def _volume_claim(here: World) -> Object:
    metadata = {"name": here.full("data"), "namespace": here.namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata}
