"""Nodes with devices of every kind, and pods that ask for them in every way."""

from collections.abc import Iterator
from itertools import count

from tests.controlplane import objects
from tests.controlplane.client import Object

GPU, SHARE, PART = "gpu.example.com", "share.example.com", "part.example.com"
NUMBER = "faults.example.com/gpu"
PART_COUNTERS = {"name": "chip", "counters": {"slices": {"value": "4"}}}


def classes() -> Iterator[Object]:
    yield objects.device_class("gpu", driver=GPU, extended_resource=NUMBER)
    yield objects.device_class("share", driver=SHARE)
    yield objects.device_class("part", driver=PART)


def templates() -> Iterator[Object]:
    alike = [{"requests": ["devices"], "matchAttribute": f"{GPU}/numa"}]
    share = objects.exactly(device_class_name="share", capacity={"requests": {"memory": "10Gi"}})
    yield objects.template("one")
    yield objects.template("pair", objects.exactly(2), constraints=alike)
    yield objects.template("quartet", objects.exactly(4))
    yield objects.template("share", share)
    yield objects.template("part", objects.exactly(device_class_name="part"))


def node(name: str) -> Object:
    made = objects.node(name, cpu="128")
    made["status"]["capacity"] |= {"pods": "500"}
    return made


def slices(on: str, gpus: int, generation: int = 1) -> Iterator[Object]:
    """Publish on a node: plain devices in two halves, one that is shared, and parts of a chip, or all of it."""
    yield gpu_slice(on, gpus, generation)
    shared = {"name": "s", "allowMultipleAllocations": True, "capacity": {"memory": {"value": "40Gi"}}}
    yield objects.device_slice(on, [shared], driver=SHARE)
    counters = objects.device_slice(on, [], driver=PART)
    counters["metadata"]["name"] += "-counters"
    del counters["spec"]["devices"]
    counters["spec"]["sharedCounters"] = [PART_COUNTERS]
    parts = objects.device_slice(on, [_part("whole", 4), _part("left", 2), _part("right", 2)], driver=PART)
    for each in (counters, parts):
        each["spec"]["pool"]["resourceSliceCount"] = 2
        yield each


def gpu_slice(on: str, gpus: int, generation: int = 1) -> Object:
    devices = [{"name": f"gpu-{i}", "attributes": {"numa": {"int": 2 * i // gpus}}} for i in range(gpus)]
    made = objects.device_slice(on, devices, driver=GPU)
    made["metadata"]["name"] += f"-{generation}"
    made["spec"]["pool"]["generation"] = generation
    return made


def _part(name: str, slices_of_it: int) -> Object:
    draws = {"counterSet": "chip", "counters": {"slices": {"value": str(slices_of_it)}}}
    return {"name": name, "consumesCounters": [draws]}


def work(name: str, shape: str) -> list[Object]:
    """Return the pods of a *shape*, and before them the claims that they name."""
    match shape:
        case "number":
            return [objects.pod(name, **{NUMBER: "1"})]
        case "friends":
            pods = [objects.pod(f"{name}-{who}", claims=[name]) for who in "ab"]
            return [objects.claim(name), *pods]
        case "both":
            return [objects.pod(name, templates=["one", "part"])]
        case "none":
            return [objects.pod(name)]
    return [objects.pod(name, templates=[shape])]


# How often each shape comes, of twenty.
MIX = (
    *("one",) * 8,
    *("pair",) * 3,
    *("friends", "friends"),
    *("number", "number"),
    *("share", "part", "both", "quartet", "none"),
)
NAMES = count()
