"""A synthetic fleet as the API server lists it: GPU nodes of a few kinds, every device with an identity of its own."""

from random import Random
from typing import Any
from uuid import UUID

Json = dict[str, Any]
DRIVER = "gpu.example.com"
MODELS = ("A10", "A30", "A100", "H100", "H200", "B200")


def slices(nodes: int, devices: int = 8, kinds: int = 12, seed: int | None = None) -> list[Json]:
    """Return one slice for each node; kinds of nodes take turns, or are drawn where there is a seed."""
    random = Random(seed)  # noqa: S311 - no secret depends on it
    return [
        node_slice(number, devices, number % kinds if seed is None else random.randrange(kinds))
        for number in range(nodes)
    ]


def node_slice(number: int, devices: int, kind: int) -> Json:
    name = node_name(number)
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    listed = [_device(number, index, kind) for index in range(devices)]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{name}-gpu", "uid": str(UUID(int=number)), "resourceVersion": str(1000 + number)},
        "spec": {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": listed},
    }


def node_name(number: int) -> str:
    return f"node-{number:05}"


def _device(node: int, index: int, kind: int) -> Json:
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "uuid": {"string": f"GPU-{UUID(int=(node << 16) + index)}"},
            "index": {"int": index},
            "model": {"string": MODELS[kind % len(MODELS)]},
            "architecture": {"string": f"arch-{kind % 4}"},
            "driverVersion": {"version": f"550.{kind}.0"},
            "numa": {"int": index // 4},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index // 2:02x}"},
            "nvlink.example.com/island": {"string": f"island-{index // 4}"},
        },
        "capacity": {"memory": {"value": f"{40 + 8 * kind}Gi"}, "multiprocessors": {"value": "108"}},
    }


def nodes(count: int) -> list[Json]:
    """Return the nodes themselves."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node_name(number), "labels": {"kubernetes.io/hostname": node_name(number)}},
        }
        for number in range(count)
    ]


def classes() -> list[Json]:
    """Return a class of all devices, and one for each architecture."""
    driver = f"device.driver == '{DRIVER}'"
    return [
        _class("gpu", driver),
        *(
            _class(f"arch-{number}", f"{driver} && {_attribute('architecture')} == 'arch-{number}'")
            for number in range(4)
        ),
    ]


def _class(name: str, expression: str) -> Json:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def _attribute(name: str) -> str:
    return f"device.attributes['{DRIVER}'].{name}"


def claims(nodes: int) -> list[Json]:
    """Return the claims of pods that run: four on each node, which hold its eight devices in pairs of one root."""
    return [_claim(node, pair) for node in range(nodes) for pair in range(4)]


def _claim(node: int, pair: int) -> Json:
    claim, pod = holder(node, [2 * pair, 2 * pair + 1]), f"worker-{node}-{pair}"
    request = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name(node)]}]}
    uid = str(UUID(int=(node << 16) + pair))
    claim["metadata"] |= {
        "name": f"{pod}-gpus",
        "uid": f"claim-{uid}",
        "resourceVersion": str(node),
        "finalizers": ["resource.kubernetes.io/delete-protection"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid, "controller": True}],
    }
    claim["spec"]["devices"] = {
        "requests": [{"name": "gpus", "exactly": request}],
        "constraints": [{"requests": ["gpus"], "matchAttribute": "resource.kubernetes.io/pcieRoot"}],
    }
    claim["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [term]}
    claim["status"]["reservedFor"] = [{"resource": "pods", "name": pod, "uid": uid}]
    return claim


def holder(node: int, devices: list[int]) -> Json:
    """Return a claim that holds some devices of one node."""
    results = [
        {"request": "gpus", "driver": DRIVER, "pool": node_name(node), "device": f"gpu-{index}"} for index in devices
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"namespace": "fleet", "name": f"holder-{node}", "uid": f"holder-{node}"},
        "spec": {"devices": {"requests": []}},
        "status": {"allocation": {"devices": {"results": results}}},
    }
