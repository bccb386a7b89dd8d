"""Small objects for tests: a node and its devices, claims for them, and pods."""

from collections.abc import Iterable, Mapping

from tests.controlplane.client import Object

RESOURCE = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"
CLASS = "gpu"
SCHEDULER = "dra-scheduler"


def node(name: str, *, cpu: str = "64", labels: Mapping[str, str] | None = None) -> Object:
    amounts = {"cpu": cpu, "memory": "256Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Tests"}],
        },
    }


def device_slice(node_name: str, devices: int | Iterable[Object] = 1, *, driver: str = DRIVER) -> Object:
    """Return the whole pool of a node: so many plain devices gpu-0, gpu-1, ..., or these."""
    listed = [{"name": f"gpu-{number}"} for number in range(devices)] if isinstance(devices, int) else [*devices]
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": listed,
        },
    }


def device_class(name: str = CLASS, *, driver: str = DRIVER, extended_resource: str = "") -> Object:
    spec: Object = {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}
    if extended_resource:
        spec["extendedResourceName"] = extended_resource
    return {"apiVersion": RESOURCE, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def exactly(count: int = 1, *, name: str = "devices", device_class_name: str = CLASS, **fields: object) -> Object:
    """Return a request for so many devices."""
    return {"name": name, "exactly": {"deviceClassName": device_class_name, "count": count, **fields}}


def claim(name: str, *requests: Object, namespace: str = "default", **devices: object) -> Object:
    """Return a claim with these requests, or with one for one device; *devices* are constraints and configuration."""
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": [*requests] or [exactly()], **devices}},
    }


def template(name: str, *requests: Object, namespace: str = "default", **devices: object) -> Object:
    inner = {"devices": {"requests": [*requests] or [exactly()], **devices}}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": RESOURCE, "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {"spec": inner}}


def pod(
    name: str,
    *,
    claims: Iterable[str] = (),
    templates: Iterable[str] = (),
    scheduler: str = SCHEDULER,
    namespace: str = "default",
    **resources: str,
) -> Object:
    """Return a pod that names claims and templates; *resources* are its limits."""
    wanted = [{"name": each, "resourceClaimName": each} for each in claims]
    wanted += [{"name": each, "resourceClaimTemplateName": each} for each in templates]
    container = {
        "name": "main",
        "image": "none",
        "resources": {"limits": resources, "claims": [{"name": each["name"]} for each in wanted]},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulerName": scheduler, "containers": [container], "resourceClaims": wanted},
    }


def allocation(node_name: str, *devices: str, request: str = "devices", driver: str = DRIVER) -> Object:
    """Return what an allocator writes: these devices of a node's pool."""
    results = [{"request": request, "driver": driver, "pool": node_name, "device": device} for device in devices]
    here = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    return {
        "devices": {"results": results},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
    }


def reservation(pod_object: Object) -> Object:
    metadata = pod_object["metadata"]
    return {"resource": "pods", "name": metadata["name"], "uid": metadata["uid"]}
