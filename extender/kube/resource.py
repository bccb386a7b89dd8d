"""What is followed: each resource, where it is served and how its objects are read."""

from collections.abc import Callable, Collection
from typing import Final

from extender.kube.reading import WHOLE, Reading, reading_of
from extender.model.change import Kind, Noun
from extender.model.claim import DeviceClass, ResourceClaim
from extender.model.device import ResourceSlice
from extender.model.footprint import Footprint
from extender.model.frozen import dataclass
from extender.model.node import Node, Pod
from extender.model.parse import (
    parse_claim,
    parse_class,
    parse_footprint,
    parse_node,
    parse_other_pod,
    parse_pod,
    parse_rule,
    parse_slice,
)
from extender.model.parse.part import PartOfBoundPod, PartOfNode, PartOfWaitingPod
from extender.model.problem import Problem
from extender.model.taint import DeviceTaintRule

CORE: Final = ""
DRA: Final = "resource.k8s.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A resource of the API: *versions* are those that we read, the one that we prefer first.

    *only* is a field selector: of what it leaves out nothing is told, and what ceases to match is told as gone.
    *served_as* is what the API server calls it, where that is not its *name*: pods are followed in two ways.
    *is_vital*: without it nobody is answered. *is_everywhere*: each release has it. *rest_s*: between two looks at what
    a watch has brought; what nobody waits for comes cheaper together. *reading*: what of each object is looked at.
    """

    name: str
    kind: Kind
    parse: Callable[[object, str], Noun | Problem]
    group: str = CORE
    versions: tuple[str, ...] = ("v1",)
    only: str = ""
    served_as: str = ""
    is_vital: bool = True
    is_everywhere: bool = True
    rest_s: float = 0.0
    reading: Reading = WHOLE

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        """What every list and watch of the resource asks for."""
        return (("fieldSelector", self.only),) if self.only else ()

    def __str__(self) -> str:
        return self.name


# Reads in brief what is not to be read in full.
Glance = Callable[[Resource, object], Noun | None]


def nothing(_resource: Resource, _raw: object) -> None:
    """Have everything read in full."""


@dataclass(frozen=True, slots=True)
class Served:
    """A resource in the version in which the API server has it."""

    resource: Resource
    version: str
    glance: Glance = nothing

    def brief(self, raw: object) -> Noun | None:
        """Read an object in brief, where that is enough."""
        return self.glance(self.resource, raw)

    def read(self, raw: object) -> Noun | Problem:
        """Read an object, in full where that is needed."""
        return self.brief(raw) or self.resource.parse(raw, self.version)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Spell the path of all objects, of those of a namespace, or of one and a part of it."""
        root = f"/apis/{self.resource.group}/{self.version}" if self.resource.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace}" if namespace else ""
        plural = self.resource.served_as or self.resource.name
        return "/".join(filter(None, (f"{root}{inside}/{plural}", name, subresource)))


def of_any_version(parse: Callable[[object], Noun | Problem]) -> Callable[[object, str], Noun | Problem]:
    """Read what is written alike in each version."""
    return lambda raw, _version: parse(raw)


DRA_VERSIONS: Final = ("v1", "v1beta2", "v1beta1")

NODES: Final = Resource(name="nodes", kind=Node, parse=of_any_version(parse_node), reading=reading_of(PartOfNode))
PODS: Final = Resource(
    name="pods",
    kind=Pod,
    parse=of_any_version(parse_pod),
    only="spec.nodeName=",  # of pods that have a node all that counts is what they take
    rest_s=0.005,
    reading=reading_of(PartOfWaitingPod),
)
BOUND: Final = Resource(
    name="boundpods",
    kind=Footprint,
    parse=of_any_version(parse_footprint),
    only="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",  # as kube-scheduler counts them
    served_as="pods",
    is_vital=False,  # it makes scores better, and allocations no more correct
    rest_s=0.02,
    reading=reading_of(PartOfBoundPod),
)
SLICES: Final = Resource(name="resourceslices", kind=ResourceSlice, group=DRA, versions=DRA_VERSIONS, parse=parse_slice)
CLAIMS: Final = Resource(name="resourceclaims", kind=ResourceClaim, group=DRA, versions=DRA_VERSIONS, parse=parse_claim)
CLASSES: Final = Resource(
    name="deviceclasses", kind=DeviceClass, group=DRA, versions=DRA_VERSIONS, parse=of_any_version(parse_class)
)
RULES: Final = Resource(
    name="devicetaintrules",
    kind=DeviceTaintRule,
    group=DRA,
    versions=("v1", "v1beta2", "v1alpha3"),
    parse=of_any_version(parse_rule),
    is_everywhere=False,
)
RESOURCES: Final = (NODES, PODS, SLICES, CLAIMS, CLASSES, RULES, BOUND)


def of_others(schedulers: Collection[str], resource: Resource, raw: object) -> Noun | None:
    """Read a pod that none of *schedulers* places in brief: that it waits is all that counts."""
    return parse_other_pod(raw, schedulers) if resource is PODS else None
