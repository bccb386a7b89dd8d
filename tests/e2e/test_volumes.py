"""Pods whose volumes are made once their node is known: between filter and bind the scheduler waits for them."""

from collections.abc import AsyncIterator
from functools import partial

import pytest_asyncio

from extender.config.settings import Holds, Settings
from extender.model.names import Uid
from tests.controlplane.client import Object, until
from tests.controlplane.plane import Plane
from tests.e2e.world import World, staged, world_on

SELECTED = "volume.kubernetes.io/selected-node"


@pytest_asyncio.fixture
async def hasty(control_plane: Plane) -> AsyncIterator[World]:
    """Give a world with one device, where an offer that is not taken up ends soon."""
    async with staged(control_plane, Settings(holds=Holds(offer_seconds=1))) as stage, world_on(stage) as here:
        await here.device_class()
        await here.node("a")
        await here.slice("a", [{"name": "gpu-0"}])
        await here.template("t", here.request())
        await _storage(here)
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


async def _has_waited(here: World, uid: Uid, seconds: float) -> bool:
    promise = here.service.belief.ledger.of_pod(uid)
    assert promise is not None, "nothing is kept for the pod"
    return here.service.attention.now() - promise.since > seconds


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
