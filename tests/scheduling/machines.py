"""Nodes that are sample machines, for tests of what is preferred."""

import json
from dataclasses import replace

from extender.model.claim import Constraint, DeviceClass, ResourceClaim, Selector
from extender.model.device import NodeSelection, ResourceSlice
from extender.model.names import ClassName, DeviceKey, DeviceName, DriverName, NodeName, PoolName
from extender.model.node import Node
from extender.model.parse import parse_slice
from extender.scheduling.choosing import Chooser
from extender.scheduling.commons import Commons
from extender.scheduling.planner import Planner
from extender.scheduling.ranking import AnswerPolicy
from extender.scheduling.taste import Taste
from extender.state.belief import Belief
from extender.topology.document import Document
from extender.topology.policies import Policies
from extender.topology.policy import Policy
from tests.scheduling.cast import belief_of, claim, held, request
from tests.topology.machines import FIXTURES

NVIDIA = DriverName("gpu.nvidia.com")
GPU = ClassName("nvidia")
GPU_CLASS = DeviceClass(name=GPU, selectors=(Selector(f"device.driver == '{NVIDIA}'"),))
ROOT = "resource.kubernetes.io/pcieRoot"
NUMA = "resource.kubernetes.io/numaNode"


def sample(machine: str, node: str) -> ResourceSlice:
    """Return the GPUs of a sample machine as those of *node*."""
    raw = json.loads((FIXTURES / f"{machine}.json").read_text())
    parsed = (parse_slice(published) for published in raw["slices"])
    found = next(it for it in parsed if isinstance(it, ResourceSlice) and it.driver == NVIDIA)
    place = NodeSelection(node_name=NodeName(node))
    return replace(found, name=f"{node}-gpus", pool=PoolName(node), selection=place)


def gpu(node: str, index: int) -> DeviceKey:
    return DeviceKey(NVIDIA, PoolName(node), DeviceName(f"gpu-{index}"))


def wanted(name: str, devices: int, match: str = "") -> ResourceClaim:
    """Return a claim for GPUs, which may have to share an attribute."""
    asked = claim(name)
    constraints = (Constraint(match_attribute=match),) if match else ()
    return replace(asked, spec=replace(asked.spec, requests=(request(devices, GPU),), constraints=constraints))


def fleet(machines: dict[str, str], taken: dict[str, tuple[int, ...]]) -> Belief:
    """Return nodes by name with the machines that they are, and what is *taken* of each."""
    slices = [sample(machine, name) for name, machine in machines.items()]
    holders = [
        held(wanted(f"held-{name}", len(indices)), *(gpu(name, index) for index in indices))
        for name, indices in taken.items()
        if indices
    ]
    return belief_of(*(Node(name=NodeName(name)) for name in machines), *slices, GPU_CLASS, *holders)


def planner_with_taste(belief: Belief, answers: AnswerPolicy | None = None, policy: Policy | None = None) -> Planner:
    """Return a planner with what is shipped, and *policy* for all."""
    policies = Policies(every=(policy,), default=policy.name) if policy else Policies()
    taste = Taste(Document(policies=policies), belief.learning.mix_for, Commons(belief.loads))
    return Planner(belief, Chooser(belief, lambda: "share", taste=taste), answers or AnswerPolicy())
