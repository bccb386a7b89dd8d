"""Nodes and pods of the core group."""

from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

from extender.model.names import NodeName, Uid
from extender.model.node import Container, Node, Pod, PodClaim, PodClaimStatus
from extender.model.parse.alike import alike
from extender.model.parse.fields import Fields
from extender.model.parse.metadata import key_of, owners_of
from extender.model.parse.selection import taint_of
from extender.model.parse.terms import terms_of
from extender.model.quantity import Quantity
from extender.model.terms import Terms

# What a pod has of its template, but for what is looked at in part.
WANTED: Final = (
    "resourceClaims",
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "overhead",
    "resources",
)
POD_CLAIM = frozenset(("name", "resourceClaimName", "resourceClaimTemplateName"))


def node_of(fields: Fields) -> Node:
    """Read a node; raise Malformed where it makes no sense."""
    metadata, spec, status = fields.child("metadata"), fields.child("spec"), fields.child("status")
    return Node(
        name=NodeName(metadata.required("name")),
        labels=metadata.strings("labels"),
        allocatable=_allocatable(status, ""),
        declared_features=status.texts("declaredFeatures"),
        annotations=metadata.strings("annotations"),
        is_unschedulable=spec.flag("unschedulable"),
        taints=tuple(taint_of(entry) for entry in spec.objects("taints")),
    )


def pod_of(fields: Fields) -> Pod:
    """Read a pod; raise Malformed where it makes no sense."""
    metadata, spec, status = fields.child("metadata"), fields.child("spec"), fields.child("status")
    extended, wants = status.child("extendedResourceClaimStatus"), _wants(spec, "")
    return Pod(
        key=key_of(metadata),
        uid=Uid(metadata.text("uid")),
        resource_version=metadata.text("resourceVersion"),
        node_name=NodeName(spec.text("nodeName")) or None,
        nominated_node=NodeName(status.text("nominatedNodeName")) or None,
        scheduler=spec.text("schedulerName"),
        phase=status.text("phase"),
        refusal="" if spec.has("nodeName") else _refusal(status),
        priority=spec.integer("priority"),
        created=metadata.text("creationTimestamp"),
        claims=wants.claims,
        claim_statuses=tuple(_claim_status(entry) for entry in status.objects("resourceClaimStatuses")),
        extended_claim=extended.text("resourceClaimName") or None,
        containers=wants.containers,
        scheduling_group=spec.child("schedulingGroup").text("podGroupName") if spec.has("schedulingGroup") else None,
        scheduling_gates=tuple(entry.text("name") for entry in spec.objects("schedulingGates")),
        owners=owners_of(metadata),
        is_deleting=metadata.has("deletionTimestamp"),
        terms=wants.terms,
    )


def other_pod_of(fields: Fields, schedulers: Collection[str]) -> Pod | None:
    """Read who a pod is, and how far it has got, unless one of *schedulers* places it."""
    spec = fields.child("spec")
    scheduler = spec.text("schedulerName")
    if scheduler in schedulers:
        return None
    metadata = fields.child("metadata")
    return Pod(
        key=key_of(metadata),
        uid=Uid(metadata.text("uid")),
        resource_version=metadata.text("resourceVersion"),
        node_name=NodeName(spec.text("nodeName")) or None,
        scheduler=scheduler,
        phase=fields.child("status").text("phase"),
    )


def _read_allocatable(status: Fields, _version: str) -> tuple[tuple[str, Quantity], ...]:
    return status.quantities("allocatable")


# Nodes of a kind have the same.
_allocatable: Final = alike(_read_allocatable, 1024, lambda status: status.raw.get("allocatable"))


def _refusal(status: Fields) -> str:
    """Say why the pod was found no place; where trying it failed, it is tried again without that."""
    for entry in status.objects("conditions"):
        if entry.text("type") == "PodScheduled":
            return entry.text("message") if entry.text("reason") == "Unschedulable" else ""
    return ""


class _Wants(NamedTuple):
    """What a pod has of its template, and so have all that were made from it."""

    claims: tuple[PodClaim, ...]
    containers: tuple[Container, ...]
    terms: Terms


def _wants_of(spec: Fields, _version: str) -> _Wants:
    return _Wants(
        claims=tuple(_claim(entry) for entry in spec.objects("resourceClaims")),
        containers=(
            *(_container(entry, is_init=True) for entry in spec.objects("initContainers")),
            *(_container(entry, is_init=False) for entry in spec.objects("containers")),
        ),
        terms=terms_of(spec),
    )


def _written(spec: Fields) -> object:
    """Pick what is looked at: variables and the names of mounts differ from pod to pod."""
    raw = spec.raw
    return (
        [raw.get(name) for name in WANTED],
        _picked(raw.get("volumes"), lambda volume: list(volume.keys())),
        _picked(raw.get("initContainers"), _of_container),
        _picked(raw.get("containers"), _of_container),
    )


def _picked(items: object, pick: Callable[[Any], object]) -> object:
    return [pick(item) for item in items] if type(items) is list else items


def _of_container(raw: Any) -> object:  # noqa: ANN401 - whatever JSON says
    get = raw.get
    return get("name"), get("resources"), get("ports"), get("restartPolicy")


_wants: Final = alike(_wants_of, 1024, _written)


def _claim(fields: Fields) -> PodClaim:
    return PodClaim(
        name=fields.required("name"),
        claim_name=fields.text("resourceClaimName") or None,
        template_name=fields.text("resourceClaimTemplateName") or None,
        unknown_fields=fields.unknown(POD_CLAIM),
    )


def _claim_status(fields: Fields) -> PodClaimStatus:
    return PodClaimStatus(name=fields.required("name"), claim_name=fields.text("resourceClaimName") or None)


def _container(fields: Fields, *, is_init: bool) -> Container:
    return Container(
        name=fields.required("name"),
        requests=fields.child("resources").quantities("requests"),
        is_init=is_init,
        is_sidecar=is_init and fields.text("restartPolicy") == "Always",
    )
