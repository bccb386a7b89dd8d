"""The bodies of writes as JSON.

A patch *sets* the resourceVersion that was read, rather than testing it: the API server then answers 409 when the
object has moved on, where a failed test is a 422 like any other. What patches do not name they leave alone, unknown
fields too.
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Final

from extender.allocation.extended import ANNOTATION, Use, unmade_name
from extender.kube.answer import Json
from extender.model import encode
from extender.model.claim import Allocation, Consumer, DeviceRequest, ResourceClaim
from extender.model.frozen import dataclass
from extender.model.names import NodeName, Uid
from extender.model.node import Pod, PodClaimStatus
from extender.model.taint import NO_SCHEDULE, OWNED
from extender.scheduling.account import shortened
from extender.scheduling.claiming import FINALIZER

TOUCHED: Final = "dra-extender.x-k8s.io/touched"
# Of a pod or a claim, in characters.
LONGEST_NAME: Final = 253
# To remove what somebody has removed meanwhile would be an invalid patch (422), before anybody looks at the version.
FREED: Final[list[Json]] = [
    {"op": "add", "path": "/status/allocation", "value": None},
    {"op": "remove", "path": "/status/allocation"},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What an event says, and of which pod or claim."""

    regarding: Pod | ResourceClaim
    name: str
    reason: str
    action: str
    text: str
    is_warning: bool


def with_finalizer(claim: ResourceClaim) -> list[Json]:
    finalizers = [*claim.finalizers, FINALIZER]
    return [_guard(claim), {"op": "add", "path": "/metadata/finalizers", "value": finalizers}]


def with_allocation(claim: ResourceClaim, allocation: Allocation, consumer: Consumer) -> list[Json]:
    allocated = {"op": "add", "path": "/status/allocation", "value": encode.allocation(allocation)}
    return [*with_consumer(claim, consumer), allocated]


def allocated(claim: ResourceClaim, version: str, allocation: Allocation, consumer: Consumer) -> Json:
    """Spell *claim* by its status, all that a write of that takes; an unallocated claim has nothing else there."""
    namespace, name = claim.key
    metadata = {"namespace": namespace, "name": name, "uid": claim.uid, "resourceVersion": claim.resource_version}
    reserved = [_consumer(item) for item in consumers_with(claim, consumer)]
    status = {"allocation": encode.allocation(allocation), "reservedFor": reserved}
    return {**_claim_of(version), "metadata": metadata, "status": status}


def with_consumer(claim: ResourceClaim, consumer: Consumer) -> list[Json]:
    return [_guard(claim), _reserved(consumers_with(claim, consumer))]


def consumers_with(claim: ResourceClaim, consumer: Consumer) -> tuple[Consumer, ...]:
    """Return whom *claim* is reserved for, and *consumer*; one that is among them already is not listed twice."""
    return *consumers_without(claim, consumer.uid), consumer


def consumers_without(claim: ResourceClaim, uid: Uid) -> tuple[Consumer, ...]:
    return tuple(consumer for consumer in claim.reserved_for if consumer.uid != uid)


def without_consumer(claim: ResourceClaim, uid: Uid, *, deallocate: bool) -> list[Json]:
    freed = FREED if deallocate and claim.allocation else []
    return [_guard(claim), _reserved(consumers_without(claim, uid)), *freed]


def _guard(claim: ResourceClaim) -> Json:
    return {"op": "replace", "path": "/metadata/resourceVersion", "value": claim.resource_version}


def _reserved(consumers: Sequence[Consumer]) -> Json:
    return {"op": "add", "path": "/status/reservedFor", "value": [_consumer(item) for item in consumers]}


def _consumer(item: Consumer) -> Json:
    group = {"apiGroup": item.api_group} if item.api_group else {}
    return {**dict(item.more), **group, "resource": item.resource, "name": item.name, "uid": item.uid}


def annotated(uid: Uid, annotation: str, value: str) -> Json:
    return {"metadata": {"uid": uid, "annotations": {annotation: value}}}


def mark_of(read: Json) -> object:
    """Return with what an object was touched last."""
    metadata = read.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations.get(TOUCHED) if isinstance(annotations, dict) else None


def claims_named(pod: Pod, statuses: Sequence[PodClaimStatus]) -> Json:
    """Spell which claims were made for *pod*, to be applied: what somebody else names otherwise is a conflict."""
    metadata = {"namespace": pod.key.namespace, "name": pod.key.name, "uid": pod.uid}
    listed = [{"name": status.name, "resourceClaimName": status.claim_name} for status in statuses]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"resourceClaimStatuses": listed}}


def binding(pod: Pod, node: NodeName) -> Json:
    """Bind *pod* as it was read: with its uid and its resourceVersion."""
    namespace, name = pod.key
    metadata = {"namespace": namespace, "name": name, "uid": pod.uid, "resourceVersion": pod.resource_version}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}


def nomination(pod: Pod, node: NodeName | None) -> Json:
    return _status_of(pod, {"nominatedNodeName": node})


def extended_status(pod: Pod, claim: str, uses: Sequence[Use]) -> Json:
    requests = [
        {"containerName": item.container, "resourceName": item.resource, "requestName": item.request} for item in uses
    ]
    return _status_of(pod, {"extendedResourceClaimStatus": {"resourceClaimName": claim, "requestMappings": requests}})


def _status_of(pod: Pod, status: Json) -> Json:
    """Guard it by the version: whatever lands late must not name a claim that is gone, or a node of before."""
    return {"metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version}, "status": status}


def extended_claim(pod: Pod, version: str, requests: Sequence[DeviceRequest]) -> Json:
    """Spell the hidden claim for a pod's extended resources, as kube-scheduler's plugin makes it."""
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.key.name,
        "uid": pod.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {
        "namespace": pod.key.namespace,
        # Of this the API server takes the first 58 characters, but refuses what is longer than any name.
        "generateName": f"{unmade_name(pod)}-"[:LONGEST_NAME],
        "ownerReferences": [owner],
        "annotations": {ANNOTATION: "true"},
    }
    asked = [_request(item, version) for item in requests]
    return {**_claim_of(version), "metadata": metadata, "spec": {"devices": {"requests": asked}}}


def _claim_of(version: str) -> Json:
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": "ResourceClaim"}


def _request(item: DeviceRequest, version: str) -> Json:
    exact = {"deviceClassName": item.class_name, "allocationMode": "ExactCount", "count": item.count}
    return {"name": item.name, **(exact if version == "v1beta1" else {"exactly": exact})}


def taint_rule(driver: str, key: str, version: str) -> Json:
    """Spell the rule that keeps other allocators from all devices of *driver*."""
    return {"apiVersion": f"resource.k8s.io/{version}", "kind": "DeviceTaintRule", **kept(driver, key)}


def kept(driver: str, key: str) -> Json:
    """Spell what such a rule has to say. As a patch, it takes back whatever narrows the rule."""
    selector = {"driver": driver, "pool": None, "device": None}
    taint = {"key": key, "value": None, "effect": NO_SCHEDULE}
    return {"metadata": {"name": rule_name(driver)}, "spec": {"deviceSelector": selector, "taint": taint}}


def rule_name(driver: str) -> str:
    """Return the name of the rule for *driver*: no object's name has the capitals that a driver's may have."""
    small = driver.lower()
    # Drivers that differ by capitals alone have a rule each.
    told_apart = "" if small == driver else f"-{sha256(driver.encode()).hexdigest()[:8]}"
    return f"{OWNED}-{small}{told_apart}"


def delete_options(uid: Uid, version: str) -> Json:
    preconditions = {"uid": uid, "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}


def event(note: Note, controller: str, instance: str, at: datetime) -> Json:
    """Spell an event of events.k8s.io/v1; what exceeds the API's limit is cut off."""
    subject = note.regarding
    regarding = {
        "apiVersion": "v1" if isinstance(subject, Pod) else "resource.k8s.io/v1",
        "kind": type(subject).__name__,
        "namespace": subject.key.namespace,
        "name": subject.key.name,
        "uid": subject.uid,
    }
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": subject.key.namespace, "name": note.name},
        "eventTime": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "reportingController": controller,
        "reportingInstance": instance,
        "action": note.action,
        "reason": note.reason,
        "regarding": regarding,
        "note": shortened(note.text),
        "type": "Warning" if note.is_warning else "Normal",
    }
