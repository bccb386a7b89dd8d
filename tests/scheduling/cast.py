"""The cast of scheduling tests: nodes with devices, claims, pods, and the belief that knows them."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from extender.allocation.features import Features
from extender.allocation.solve import BEST, Manner
from extender.model.change import Changed, Noun
from extender.model.claim import (
    AllocatedDevice,
    Allocation,
    ClaimSpec,
    Consumer,
    DeviceClass,
    DeviceRequest,
    RequestSlot,
    ResourceClaim,
    Selector,
)
from extender.model.device import Device, NodeSelection, ResourceSlice, Traits
from extender.model.names import ClassName, DeviceKey, DeviceName, DriverName, NodeName, ObjectKey, PoolName, Uid
from extender.model.node import Container, Node, Pod, PodClaim
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from extender.model.quantity import parse_quantity
from extender.scheduling.binding import Binder
from extender.scheduling.choosing import Chooser
from extender.scheduling.claiming import FINALIZER
from extender.scheduling.planner import Offer, Planner
from extender.scheduling.ranking import AnswerPolicy
from extender.scheduling.survey import Survey
from extender.state.belief import Belief

DRIVER = DriverName("gpu.example.com")
GPU = ClassName("gpu")
OURS, THEIRS = "dra-scheduler", "default-scheduler"
GPU_CLASS = DeviceClass(name=GPU, selectors=(Selector(f"device.driver == '{DRIVER}'"),), extended_resource="ex.com/gpu")
WHOLE = Traits()


def node(name: str, allocatable: Mapping[str, int] | None = None) -> Node:
    amounts = sorted((key, parse_quantity(str(amount))) for key, amount in (allocatable or {}).items())
    return Node(name=NodeName(name), allocatable=tuple(amounts))


def gpus(node_name: str, devices: int, traits: Traits = WHOLE) -> ResourceSlice:
    return ResourceSlice(
        name=f"{node_name}-gpus",
        driver=DRIVER,
        pool=PoolName(node_name),
        generation=1,
        slice_count=1,
        selection=NodeSelection(node_name=NodeName(node_name)),
        devices=tuple(Device(DeviceName(f"d{index}"), traits=traits) for index in range(devices)),
    )


def device(node_name: str, index: int) -> DeviceKey:
    return DeviceKey(DRIVER, PoolName(node_name), DeviceName(f"d{index}"))


def request(devices: int = 1, class_name: ClassName = GPU) -> RequestSlot:
    exactly = DeviceRequest(name="gpu", class_name=class_name, mode="ExactCount", count=devices)
    return RequestSlot(name="gpu", exactly=exactly)


def claim(name: str, devices: int = 1, *, version: int = 1) -> ResourceClaim:
    return ResourceClaim(
        key=ObjectKey("ns", name),
        uid=Uid(f"uid-{name}"),
        spec=ClaimSpec(requests=(request(devices),)),
        resource_version=str(version),
        finalizers=(FINALIZER,),
    )


def given(*devices: DeviceKey) -> Allocation:
    """Return an allocation of *devices* of one node."""
    here = Requirement(key="metadata.name", operator="In", values=(devices[0].pool,))
    return Allocation(
        devices=tuple(AllocatedDevice(request="gpu", device=key) for key in devices),
        node_selector=NodeSelector((NodeSelectorTerm(fields=(here,)),)),
    )


def consumer(pod: Pod) -> Consumer:
    return Consumer(resource="pods", name=pod.key.name, uid=pod.uid)


def held(item: ResourceClaim, *devices: DeviceKey, by: Pod | None = None) -> ResourceClaim:
    """Return *item* with *devices*, reserved for *by*."""
    return replace(item, allocation=given(*devices), reserved_for=(consumer(by),) if by else ())


def pod(name: str, *claims: str, priority: int = 0, created: str = "2026-01-01T00:00:00Z", gpus: int = 0) -> Pod:
    requests = (("ex.com/gpu", parse_quantity(str(gpus))),) if gpus else ()
    return Pod(
        key=ObjectKey("ns", name),
        uid=Uid(f"uid-{name}"),
        resource_version="1",
        scheduler=OURS,
        priority=priority,
        created=created,
        claims=tuple(PodClaim(name=name, claim_name=name) for name in claims),
        containers=(Container(name="main", requests=requests),),
    )


def belief_of(*nouns: Noun, manner: Manner = BEST, features: Features | None = None) -> Belief:
    belief = Belief((OURS,), features or Features(), manner)
    belief.apply(Changed(GPU_CLASS))
    for noun in nouns:
        belief.apply(Changed(noun))
    return belief


def chooser_of(belief: Belief) -> Chooser:
    numbers = count()
    return Chooser(belief, lambda: f"share-{next(numbers)}")


def binder_of(belief: Belief, now: float = 0.0) -> Binder:
    """Return a binder of pods that were offered every node."""
    return Binder(belief, chooser_of(belief), lambda: now, lambda _pod, _node: True)


def planner_of(belief: Belief, policy: AnswerPolicy | None = None) -> Planner:
    return Planner(belief, chooser_of(belief), policy or AnswerPolicy())


def names(*nodes: str) -> list[NodeName]:
    return [NodeName(name) for name in nodes]


def surveyed(offer: Offer) -> Survey:
    """Return all nodes as they were judged for an offer that was made just now."""
    found = getattr(offer.why, "__self__", None)
    assert isinstance(found, Survey)
    return found


def promised(belief: Belief) -> list[DeviceKey]:
    """List every device that is promised, as often as it is."""
    return [hold.device for promise in belief.ledger for claim in promise.claims for hold in claim.devices]
