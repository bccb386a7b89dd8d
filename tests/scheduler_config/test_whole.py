"""All that people apply, at once: a pod gets devices that no other scheduler may give away."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.controlplane.client import Client, until
from tests.controlplane.manifests import BASE, SCHEDULER, documents
from tests.controlplane.objects import device_class, device_slice, exactly, node, pod, template
from tests.controlplane.plane import Plane
from tests.controlplane.processes import free_port, start, stop

FINALIZER = "resource.kubernetes.io/delete-protection"


def arguments() -> list[str]:
    """Return what the Deployment passes to the extender, with the file where it is here."""
    (deployment,) = documents(BASE / "deployment.yaml")
    (given,) = (each["args"] for each in deployment["spec"]["template"]["spec"]["containers"] if "args" in each)
    return [each.replace("/etc/dra-scheduler", str(BASE)) for each in given]


@pytest.fixture
async def address(control_plane: Plane, tmp_path: Path) -> AsyncIterator[str]:
    """Run the extender as its pod does, with its own rights, and return where it answers."""
    verbs, probes = (f"127.0.0.1:{free_port()}" for _ in range(2))
    here = [f"--listen-verbs={verbs}", f"--listen-probes={probes}"]
    here.append(f"--api-kubeconfig={control_plane.kubeconfig('extender')}")
    process = start(Path(sys.executable), "-m", "extender", *arguments(), *here, log=tmp_path / "log")

    async def ready() -> bool:
        assert process.poll() is None, (tmp_path / "log").read_text()
        try:
            async with aiohttp.ClientSession() as session, session.get(f"http://{probes}/readyz") as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False

    try:
        await until(ready, "the extender to be ready")
        yield f"http://{verbs}"
    finally:
        stop(process)


@pytest.mark.usefixtures("applied")
async def test_a_pod_is_given_an_owned_device(control_plane: Plane, admin: Client, address: str) -> None:
    for each in (node("node"), device_slice("node", 2), device_class(), template("one", exactly())):
        await admin.create(each)
    async with control_plane.scheduler(SCHEDULER, extender=address):
        await admin.create(pod("pod", templates=["one"]))

        async def bound() -> bool:
            return "nodeName" in (await admin.read(pod("pod")))["spec"]

        await until(bound, "the pod to be bound")
    (claim,) = await admin.list("/apis/resource.k8s.io/v1/resourceclaims")
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert (result["pool"], result["driver"]) == ("node", "gpu.example.com")
    assert claim["metadata"]["finalizers"] == [FINALIZER]
    assert [each["name"] for each in claim["status"]["reservedFor"]] == ["pod"]
