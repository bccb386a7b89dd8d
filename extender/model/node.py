"""Nodes and pods, as far as placing devices needs them."""

from typing import Final

from extender.model.claim import OwnerReference
from extender.model.frozen import dataclass
from extender.model.names import NodeName, ObjectKey, Uid
from extender.model.quantity import Quantity
from extender.model.taint import Taint
from extender.model.terms import ANYWHERE, Terms

# Phases of pods that run no more.
FINISHED: Final = frozenset(("Succeeded", "Failed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node. Labels and allocatable are sorted by name."""

    name: NodeName
    labels: tuple[tuple[str, str], ...] = ()
    allocatable: tuple[tuple[str, Quantity], ...] = ()
    declared_features: tuple[str, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    is_unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClaim:
    """An entry of ``spec.resourceClaims``: exactly one of the two sources, or a kind that we do not know."""

    name: str
    claim_name: str | None = None
    template_name: str | None = None
    unknown_fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClaimStatus:
    """Which claim was made for an entry from a template; no claim name means that none was needed."""

    name: str
    claim_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container's requests."""

    name: str
    requests: tuple[tuple[str, Quantity], ...] = ()
    is_init: bool = False
    is_sidecar: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod. Containers are in upstream's order: init containers, then containers.

    The name of a scheduling group is empty where the pod has one of a kind that we do not know. The refusal is what
    kube-scheduler wrote when it found no place for the pod, empty where it has found one or has not looked.
    """

    key: ObjectKey
    uid: Uid
    resource_version: str = ""
    node_name: NodeName | None = None
    nominated_node: NodeName | None = None
    scheduler: str = ""
    phase: str = ""
    refusal: str = ""
    priority: int = 0
    created: str = ""
    claims: tuple[PodClaim, ...] = ()
    claim_statuses: tuple[PodClaimStatus, ...] = ()
    extended_claim: str | None = None
    containers: tuple[Container, ...] = ()
    scheduling_group: str | None = None
    scheduling_gates: tuple[str, ...] = ()
    owners: tuple[OwnerReference, ...] = ()
    is_deleting: bool = False
    terms: Terms = ANYWHERE
