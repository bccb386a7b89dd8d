"""The cluster of the demonstration: DGX-1V and DGX H100 with four network cards each, and what is asked of them."""

from collections.abc import Iterator
from typing import Final

from extender.demo.apiserver.kinds import Json

GPU, NIC = "gpu.nvidia.com", "dra.net"
ROOT: Final = "resource.kubernetes.io/pcieRoot"
NUMA: Final = "resource.kubernetes.io/numaNode"
BUS: Final = "resource.kubernetes.io/pciBusID"
API: Final = "resource.k8s.io/v1"
SCHEDULER: Final = "dra-scheduler"
NAMESPACE: Final = "demo"
MODELS: Final = ("Tesla V100-SXM2-32GB", "Tesla V100-SXM2-32GB", "NVIDIA H100 80GB HBM3")


def objects(nodes: int) -> Iterator[Json]:
    """Yield everything that is there before the first pod."""
    for number in range(nodes):
        yield from _node(f"node-{number}", MODELS[number % len(MODELS)])
    yield _class("gpu", f"device.driver == '{GPU}'", extendedResourceName="example.com/gpu")
    yield _class("nic", f"device.driver == '{NIC}'")
    for name, devices in TEMPLATES.items():
        yield {
            "apiVersion": API,
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"spec": {"devices": devices}},
        }


def _node(name: str, model: str) -> Iterator[Json]:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    conditions = [{"type": "Ready", "status": "True", "reason": "Demo"}]
    status = {"capacity": amounts, "allocatable": amounts, "conditions": conditions}
    yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}
    gpus = [
        {
            "name": f"gpu-{index}",
            "attributes": {
                "type": {"string": "gpu"},
                "productName": {"string": model},
                NUMA: {"int": index // 4},
                BUS: {"string": f"0000:{index + 16:02x}:00.0"},
                ROOT: {"string": f"pci0000:{index // 2:02x}"},
            },
            "capacity": {"memory": {"value": "80Gi"}},
        }
        for index in range(8)
    ]
    yield _slice(name, GPU, gpus)
    nics = [
        {
            "name": f"nic-{index}",
            "attributes": {ROOT: {"string": f"pci0000:{index:02x}"}, NUMA: {"int": index // 2}},
        }
        for index in range(4)
    ]
    yield _slice(name, NIC, nics)


def _slice(node: str, driver: str, devices: list[Json]) -> Json:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": devices}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": f"{node}-{driver}"}, "spec": spec}


def _class(name: str, expression: str, **spec: str) -> Json:
    selectors = [{"cel": {"expression": expression}}]
    return {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors, **spec},
    }


def _request(name: str, device_class: str, **exactly: object) -> Json:
    return {"name": name, "exactly": {"deviceClassName": device_class, **exactly}}


TEMPLATES: Final[dict[str, Json]] = {
    "one-gpu": {"requests": [_request("gpu", "gpu")]},
    "four-gpus-one-numa": {
        "requests": [_request("gpus", "gpu", count=4)],
        "constraints": [{"requests": ["gpus"], "matchAttribute": NUMA}],
    },
    "gpu-and-nic": {
        "requests": [_request("gpu", "gpu"), _request("nic", "nic")],
        "constraints": [{"requests": ["gpu", "nic"], "matchAttribute": ROOT}],
    },
    "two-gpus": {"requests": [_request("gpus", "gpu", count=2)]},
    "eight-gpus": {"requests": [_request("gpus", "gpu", count=8)]},
    "five-gpus-one-numa": {
        "requests": [_request("gpus", "gpu", count=5)],
        "constraints": [{"requests": ["gpus"], "matchAttribute": NUMA}],
    },
}
# What arrives, in this order, over and over again. The last but one can never be placed.
ARRIVALS: Final = (
    "one-gpu",
    "four-gpus-one-numa",
    "gpu-and-nic",
    "eight-gpus",
    "two-gpus",
    "five-gpus-one-numa",
    "one-gpu",
)
HOPELESS: Final = "five-gpus-one-numa"
PLACES: Final = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": f"/api/v1/namespaces/{NAMESPACE}/pods",
    "DeviceClass": f"/apis/{API}/deviceclasses",
    "ResourceSlice": f"/apis/{API}/resourceslices",
    "ResourceClaimTemplate": f"/apis/{API}/namespaces/{NAMESPACE}/resourceclaimtemplates",
}


def pod(name: str, template: str) -> Json:
    """Return a pod with a claim from *template*."""
    container = {"name": "main", "image": "demo", "resources": {"claims": [{"name": "devices"}]}}
    claims = [{"name": "devices", "resourceClaimTemplateName": template}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedulerName": SCHEDULER, "containers": [container], "resourceClaims": claims},
    }
