"""Nodes of A100s that can be cut, made of the sample slice, as cases for the allocator."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from extender.topology.chips import chips_of
from extender.topology.partitions import Pattern
from tests.topology.cases import board_of_case
from tests.topology.machines import FIXTURES

Json = dict[str, Any]
DRIVER = "gpu.nvidia.com"
PROFILES = ("1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")
RAW = json.loads((FIXTURES / "mig-a100.json").read_text())
NODE = RAW["node"]


def slices(names: Sequence[str]) -> list[Json]:
    """Publish a GPU for each of *names*, all in one pool."""
    found = []
    for name in names:
        text = (
            json.dumps(RAW["slices"])
            .replace("gpu-0", name)
            .replace("GPU-00000000", f"GPU-{name}")
            .replace("mig-a100-gpu.nvidia.com", f"{name}-slice")
        )
        found += json.loads(text)
    for one in found:
        one["spec"]["pool"]["resourceSliceCount"] = len(found)
    return found


def request(profile: str, count: int = 1, name: str = "r") -> Json:
    """Ask for partitions of a profile, or, without one, for whole GPUs."""
    test = f"device.attributes['{DRIVER}'].type == 'gpu'"
    if profile:
        about = f"device.attributes['{DRIVER}']"
        test = f"{about}.type == 'mig' && {about}.profile == '{profile}'"
    selectors = [{"cel": {"expression": test}}]
    exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": count, "selectors": selectors}
    return {"name": name, "exactly": exactly}


def claim(*requests: Json, name: str = "c", together: bool = False) -> Json:
    """Make a claim; *together*: all of one GPU."""
    constraints = [{"matchAttribute": f"{DRIVER}/parentUUID"}] if together else []
    spec = {"devices": {"requests": list(requests), "constraints": constraints}}
    return {"metadata": {"name": name}, "spec": spec}


def case(names: Sequence[str], claims: Sequence[Json], held: Iterable[str] = ()) -> Json:
    used = [{"driver": DRIVER, "pool": "mig-a100", "device": device} for device in held]
    return {
        "name": "mig",
        "node": NODE,
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "slices": slices(names),
        "claims": list(claims),
        "usedDevices": used,
    }


def a100() -> Pattern:
    (chip,) = chips_of(board_of_case(case(["gpu-0"], [])))
    return chip.pattern
