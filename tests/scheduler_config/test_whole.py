"""All that people apply, at once: a pod gets devices that no other scheduler may give away."""

import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.controlplane.client import Client, Object, until
from tests.controlplane.manifests import BASE, EXTENDER, SCHEDULER, documents
from tests.controlplane.objects import device_class, device_slice, exactly, node, pod, template
from tests.controlplane.plane import Plane
from tests.controlplane.probes import until_ready
from tests.controlplane.processes import free_port, start, stop

FINALIZER = "resource.kubernetes.io/delete-protection"


def told() -> tuple[list[str], dict[str, str]]:
    """Return what the Deployment passes to the extender, with the file where it is here, and its environment."""
    (deployment,) = documents(BASE / "deployment.yaml")
    (ours,) = (each for each in deployment["spec"]["template"]["spec"]["containers"] if "args" in each)
    environment = {entry["name"]: entry.get("value", "a-pod") for entry in ours["env"]}
    return [each.replace("/etc/dra-scheduler", str(EXTENDER.parent)) for each in ours["args"]], environment


def lease(name: str, holder: str = "") -> Object:
    metadata = {"name": name, "namespace": "dra-extender"}
    spec = {"holderIdentity": holder} if holder else {}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


@pytest.fixture
async def address(
    control_plane: Plane, admin: Client, applied: dict[str, Object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[str]:
    """Run the extender as its pod does, with its own rights, beside a scheduler that leads; return where it answers."""
    del applied
    # As a pod of before leaves it.
    for each in (lease("dra-extender"), lease("dra-scheduler", f"{socket.gethostname()}_scheduler")):
        await admin.delete(each)
        await admin.create(each)
    verbs, probes = free_port(), free_port()
    here = [f"--listen-verbs=127.0.0.1:{verbs}", f"--listen-probes=127.0.0.1:{probes}"]
    here.append(f"--api-kubeconfig={control_plane.kubeconfig('extender')}")
    arguments, environment = told()
    program = Path(sys.executable), "-m", "extender"
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    process = start(*program, *arguments, *here, log=tmp_path / "extender.log")
    try:
        await until_ready(process, probes, tmp_path / "extender.log")
        yield f"http://127.0.0.1:{verbs}"
    finally:
        stop(process)


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
