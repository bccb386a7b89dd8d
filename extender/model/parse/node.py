"""Nodes and pods of the core group."""

from extender.model.names import NodeName, Uid
from extender.model.node import Container, Node, Pod, PodClaim, PodClaimStatus
from extender.model.parse.fields import Fields
from extender.model.parse.metadata import key_of, owner_of
from extender.model.parse.selection import taint_of
from extender.model.parse.terms import terms_of

POD_CLAIM = frozenset(("name", "resourceClaimName", "resourceClaimTemplateName"))


def node_of(fields: Fields) -> Node:
    """Read a node; raise Malformed where it makes no sense."""
    metadata, spec, status = fields.child("metadata"), fields.child("spec"), fields.child("status")
    return Node(
        name=NodeName(metadata.required("name")),
        labels=metadata.strings("labels"),
        allocatable=status.quantities("allocatable"),
        declared_features=status.texts("declaredFeatures"),
        annotations=metadata.strings("annotations"),
        is_unschedulable=spec.flag("unschedulable"),
        taints=tuple(taint_of(entry) for entry in spec.objects("taints")),
    )


def pod_of(fields: Fields) -> Pod:
    """Read a pod; raise Malformed where it makes no sense."""
    metadata, spec, status = fields.child("metadata"), fields.child("spec"), fields.child("status")
    extended = status.child("extendedResourceClaimStatus")
    return Pod(
        key=key_of(metadata),
        uid=Uid(metadata.text("uid")),
        resource_version=metadata.text("resourceVersion"),
        node_name=NodeName(spec.text("nodeName")) or None,
        nominated_node=NodeName(status.text("nominatedNodeName")) or None,
        scheduler=spec.text("schedulerName"),
        phase=status.text("phase"),
        priority=spec.integer("priority"),
        created=metadata.text("creationTimestamp"),
        claims=tuple(_claim(entry) for entry in spec.objects("resourceClaims")),
        claim_statuses=tuple(_claim_status(entry) for entry in status.objects("resourceClaimStatuses")),
        extended_claim=extended.text("resourceClaimName") or None,
        containers=(
            *(_container(entry, is_init=True) for entry in spec.objects("initContainers")),
            *(_container(entry, is_init=False) for entry in spec.objects("containers")),
        ),
        scheduling_group=spec.child("schedulingGroup").text("podGroupName") if spec.has("schedulingGroup") else None,
        scheduling_gates=tuple(entry.text("name") for entry in spec.objects("schedulingGates")),
        owners=tuple(owner_of(entry) for entry in metadata.objects("ownerReferences")),
        is_deleting=metadata.has("deletionTimestamp"),
        terms=terms_of(spec),
    )


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
    resources = fields.child("resources")
    return Container(
        name=fields.required("name"),
        requests=resources.quantities("requests"),
        claims=tuple(entry.required("name") for entry in resources.objects("claims")),
        is_init=is_init,
        is_sidecar=is_init and fields.text("restartPolicy") == "Always",
    )
