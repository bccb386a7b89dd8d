"""Objects to create, as the API server takes them."""

from typing import Any

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"


def pod(name: str, **spec: Any) -> Json:
    container = {"name": "c", "image": "none"}
    whole = {"schedulerName": "nobody", "terminationGracePeriodSeconds": 0, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


def claim(name: str, **metadata: Any) -> Json:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu.example.com"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, **metadata},
        "spec": {"devices": {"requests": [request]}},
    }


def device_class(name: str) -> Json:
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {}}


def allocation(device: str = "gpu-0") -> Json:
    result = {"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": device}
    field = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
    return {
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
