"""A small sound cluster, to plant violations in."""

from typing import Any

from tests.invariants.checker import Moment
from tests.invariants.reading import Json

DRIVER, OTHER = "gpu.example.com", "part.example.com"
SCHEDULER = "dra-scheduler"


def node(name: str, **labels: str) -> Json:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts}}


def published(on: str, *devices: Json, driver: str = DRIVER, generation: int = 1, **spec: Any) -> Json:
    pool = {"name": on, "generation": generation, "resourceSliceCount": 1}
    metadata = {"name": f"{on}-{driver}-{generation}"}
    return {
        "metadata": metadata,
        "spec": {"driver": driver, "nodeName": on, "pool": pool, "devices": [*devices], **spec},
    }


def device(name: str, **fields: Any) -> Json:
    return {"name": name, **fields}


def device_class(name: str = "gpu", driver: str = DRIVER, **spec: Any) -> Json:
    selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    return {"metadata": {"name": name}, "spec": {"selectors": selectors, **spec}}


def request(count: int = 1, of: str = "gpu", **fields: Any) -> Json:
    return {"name": "r", "exactly": {"deviceClassName": of, "count": count, **fields}}


def result(on: str, name: str, driver: str = DRIVER, **fields: Any) -> Json:
    return {"request": "r", "driver": driver, "pool": on, "device": name, **fields}


def claim(name: str, *given: Json, users: tuple[str, ...] = (), asks: Json | None = None, **spec: Any) -> Json:
    """Return a claim; with devices it is usable on the node of the first alone, reserved for the pods *users*."""
    status: Json = {}
    if given:
        here = {"key": "metadata.name", "operator": "In", "values": [given[0]["pool"]]}
        selector = {"nodeSelectorTerms": [{"matchFields": [here]}]}
        status = {"allocation": {"devices": {"results": [*given]}, "nodeSelector": selector}}
    status["reservedFor"] = [{"resource": "pods", "name": each, "uid": f"uid-{each}"} for each in users]
    metadata = {"namespace": "default", "name": name, "uid": f"uid-of-{name}"}
    return {"metadata": metadata, "spec": {"devices": {"requests": [asks or request()], **spec}}, "status": status}


def pod(name: str, *claims: str, on: str = "", phase: str = "Pending", **resources: str) -> Json:
    spec: Json = {
        "schedulerName": SCHEDULER,
        "containers": [{"name": "c", "resources": {"requests": resources}}],
        "resourceClaims": [{"name": each, "resourceClaimName": each} for each in claims],
    }
    if on:
        spec["nodeName"] = on
    metadata = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def moment(
    *,
    pods: list[Json],
    claims: list[Json],
    slices: list[Json] | None = None,
    nodes: list[Json] | None = None,
    classes: list[Json] | None = None,
) -> Moment:
    """Return two nodes with two devices each, and what is given."""
    return Moment(
        pods=pods,
        claims=claims,
        slices=[published(on, device("g0"), device("g1")) for on in ("a", "b")] if slices is None else slices,
        nodes=[node("a"), node("b")] if nodes is None else nodes,
        classes=[device_class()] if classes is None else classes,
    )
