"""What people write down: pods, claims, slices, and what strangers allocate."""

from collections.abc import Collection
from random import Random
from typing import Any, Final

from tests.interleavings.stock import MEMORY
from tests.interleavings.variety import DRIVER

Json = dict[str, Any]
STRANGER: Final = "stranger"


def allocation(node: str, device: str, memory: int) -> Json:
    """Give a stranger a device, or so much of its memory."""
    result: Json = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device}
    if memory:
        result |= {"shareID": f"{STRANGER}-share", "consumedCapacity": {MEMORY: str(memory)}}
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    return {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]}}


def node_slice(node: str, devices: range, generation: int) -> Json:
    """Publish plain devices of a node."""
    pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
    listed = [{"name": f"d{index}"} for index in devices]
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": listed}
    return {"metadata": {"name": f"{node}-gpus"}, "spec": spec}


def claim_spec(count: int = 1, memory: int = 0, **beside: Any) -> Json:
    """Ask for so many devices, or so much memory of a shared one; or whatever is said *beside*."""
    if "firstAvailable" in beside:
        return {"devices": {"requests": [{"name": "gpu", **beside}]}}
    mode: Json = {} if "allocationMode" in beside else {"allocationMode": "ExactCount", "count": count}
    exactly: Json = {"deviceClassName": "gpu", **mode, **beside}
    if memory:
        exactly["capacity"] = {"requests": {MEMORY: str(memory)}}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def pod(name: str, wants: tuple[str, ...], shared: Collection[str], random: Random) -> Json:
    """Want templates by their names, *shared* claims, and extended resources."""
    entries: list[Json] = []
    for index, want in enumerate(wants):
        if want != "extended":
            source = "resourceClaimName" if want in shared else "resourceClaimTemplateName"
            entries.append({"name": f"c{index}", source: want})
    amounts = {"requests": {"example.com/gpu": str(random.randint(1, 2))}} if "extended" in wants else {}
    container = {"name": "main", "image": "none", "resources": amounts}
    spec = {"schedulerName": "dra-scheduler", "containers": [container], "resourceClaims": entries}
    return {"metadata": {"name": name}, "spec": {**spec, "priority": random.choice((0, 0, 10))}}
