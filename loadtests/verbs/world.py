"""A cluster as files: what the API server of the load tests lists, as large as such objects are."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson

from loadtests.bench.pods import NODES, pods
from tests import fleet

Json = dict[str, Any]
# Names of 41 characters, as clouds give them: what verbs cost is mostly names.
NAME, SUFFIX = re.compile(rb"\b(node-\d{5})"), b".rack-a.eu-west-1.compute.local"
ROOT = "resource.kubernetes.io/pcieRoot"
NUMA = f"{fleet.DRIVER}/numa"
NIC_DRIVER = "nic.example.com"
ARCHITECTURE = f"device.attributes['{fleet.DRIVER}'].architecture in ['arch-0', 'arch-1']"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of everything there is: of *claims* there are four on each node, which leave it two devices of eight.

    Where it *is_full* they leave none.
    """

    nodes: int
    devices: int = 8
    pods: int = 0
    claims: int = 0
    nics: int = 0
    is_full: bool = False


def request(name: str, amount: int, of: str = "gpu", *selectors: str) -> Json:
    exactly: Json = {"deviceClassName": of, "allocationMode": "ExactCount", "count": amount}
    if selectors:
        exactly["selectors"] = [{"cel": {"expression": item}} for item in selectors]
    return {"name": name, "exactly": exactly}


# What pods ask for.
SHAPES: dict[str, Json] = {
    "one": {"requests": [request("gpus", 1)]},
    "two": {"requests": [request("gpus", 2)], "constraints": [{"matchAttribute": NUMA}]},
    "four": {"requests": [request("gpus", 4)], "constraints": [{"matchAttribute": NUMA}]},
    "selector": {"requests": [request("gpus", 1, "gpu", ARCHITECTURE)]},
    "nic": {"requests": [request("gpus", 1), request("nics", 1, "nic")], "constraints": [{"matchAttribute": ROOT}]},
    "hopeless": {"requests": [request("gpus", 9)]},
}


def write(folder: Path, size: Size) -> int:
    """Write everything, a file for each resource; return how many bytes that are."""
    versions = count(1)
    _lines(folder / "nodes", (_node(raw, next(versions)) for raw in fleet.nodes(size.nodes)))
    _lines(folder / "resourceslices", (_of(raw, next(versions)) for raw in _slices(size)))
    _lines(folder / "resourceclaims", (_of(raw, next(versions)) for raw in _claims(size)))
    bound = (_using(raw, number, size.claims) for number, raw in enumerate(_pods(size.pods)))
    _lines(folder / "boundpods", (_of(_large(raw), next(versions)) for raw in bound))
    nic = {"selectors": [{"cel": {"expression": f"device.driver == '{NIC_DRIVER}'"}}]}
    classes = [*fleet.classes(), {**fleet.classes()[0], "metadata": {"name": "nic"}, "spec": nic}]
    _lines(folder / "deviceclasses", (_of(raw, next(versions)) for raw in classes))
    (folder / "shapes").write_bytes(orjson.dumps(SHAPES))
    (folder / "pod").write_bytes(orjson.dumps(pod("NAME", "UID")))
    return sum(path.stat().st_size for path in folder.iterdir())


def pod(name: str, uid: str) -> Json:
    """Return a pod that waits, as kube-scheduler has it: its claim was made from a template."""
    (raw,) = _pods(1)
    metadata = {**raw["metadata"], "name": name, "namespace": "load", "uid": uid, "labels": {"app": "load"}}
    spec = {
        "schedulerName": "dra-scheduler",
        "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "load"}],
        **{key: value for key, value in raw["spec"].items() if key != "nodeName"},
    }
    status = {"phase": "Pending", "resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": f"{name}-gpus"}]}
    return _of({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}, 0)


def _lines(path: Path, items: Iterable[Json]) -> None:
    with path.open("wb") as file:
        file.writelines(NAME.sub(rb"\1" + SUFFIX, orjson.dumps(item)) + b"\n" for item in items)


def _of(raw: Json, version: int) -> Json:
    """Return *raw* with a version, which comes first: that is where the API server of the load tests replaces it."""
    metadata = {"resourceVersion": str(version), **raw["metadata"]} | {"resourceVersion": str(version)}
    return {**raw, "metadata": metadata}


def _node(raw: Json, version: int) -> Json:
    """Return a node with what kubelets report: 6 kB, most of it images."""
    amounts = {"cpu": "128", "memory": "1056763224Ki", "ephemeral-storage": "1855337876Ki", "pods": "250"}
    images = [
        {
            "names": [f"registry.example.com/team/image-{number}@sha256:{number:064x}", f"image-{number}:1.{number}"],
            "sizeBytes": 1_000_000 * number,
        }
        for number in range(36)
    ]
    conditions = [
        {"type": kind, "status": "False", "lastHeartbeatTime": "2026-01-01T00:00:00Z", "reason": "KubeletHasEnough"}
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")
    ]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [*conditions, ready], "images": images}
    return _of({**raw, "spec": {"podCIDR": "10.0.0.0/24"}, "status": status}, version)


def _slices(size: Size) -> Iterator[Json]:
    for number in range(size.nodes):
        yield fleet.node_slice(number, size.devices, number % 12)
        if size.nics:
            yield _nics(number, size.nics)


def _nics(number: int, amount: int) -> Json:
    raw, pool = fleet.node_slice(number, 0, 0), f"{fleet.node_name(number)}-nics"
    roots = [{"attributes": {ROOT: {"string": f"pci0000:{index:02x}"}}} for index in range(amount)]
    listed = [{"name": f"nic-{index}", **of} for index, of in enumerate(roots)]
    inside = {"name": pool, "generation": 1, "resourceSliceCount": 1}
    spec = {**raw["spec"], "driver": NIC_DRIVER, "pool": inside, "devices": listed}
    return {**raw, "metadata": {"name": pool, "uid": f"nics-{number}"}, "spec": spec}


def _claims(size: Size) -> Iterator[Json]:
    """Yield claims of running pods; half of them leave the second device of their pair free, or none do."""
    for raw, number in zip(fleet.claims(-(-size.claims // 4)), range(size.claims), strict=False):
        if number % 2 and not size.is_full:
            del raw["status"]["allocation"]["devices"]["results"][1]
        yield raw


def _pods(amount: int) -> list[Json]:
    """Return bound pods of the kinds that the benchmark of bound pods has."""
    return pods(max(amount, NODES + 1))[:amount] if amount else []


def _using(raw: Json, number: int, claims: int) -> Json:
    """Make the first pods those that the claims are reserved for."""
    if number >= claims:
        return raw
    node, pair = divmod(number, 4)
    name, uid = f"worker-{node}-{pair}", str(UUID(int=(node << 16) + pair))
    entry = {"name": "gpus", "resourceClaimName": f"{name}-gpus"}
    raw["metadata"] |= {"namespace": "fleet", "name": name, "uid": uid}
    raw["spec"] |= {"nodeName": fleet.node_name(node), "resourceClaims": [entry]}
    return raw


def _large(raw: Json) -> Json:
    """Return a bound pod of some 3.4 kB: what the kubelet says of its containers is there."""
    states = [
        {
            "name": name,
            "ready": True,
            "started": True,
            "restartCount": 0,
            "image": "registry.example.com/team/worker:1.2.3",
            "imageID": f"registry.example.com/team/worker@sha256:{0:064x}",
            "containerID": f"containerd://{1:064x}",
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }
        for name in ("main", "proxy")
    ]
    return {**raw, "status": {**raw["status"], "containerStatuses": states, "podIP": "10.0.0.1"}}
