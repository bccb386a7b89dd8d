"""The parts of large objects that are looked at: a parser that knows them passes over the rest.

What is read of an object and not named here is as if it was not set.
"""

from typing import Any, TypedDict


class _Metadata(TypedDict, total=False):
    namespace: Any
    name: Any
    uid: Any
    resourceVersion: Any


class _Resources(TypedDict, total=False):
    requests: Any


class _Container(TypedDict, total=False):
    name: Any
    restartPolicy: Any
    resources: _Resources


class _ContainerStatus(TypedDict, total=False):
    name: Any
    allocatedResources: Any
    resources: _Resources


class _Condition(TypedDict, total=False):
    type: Any
    reason: Any


class _PodSpec(TypedDict, total=False):
    nodeName: Any
    schedulerName: Any
    resourceClaims: Any
    initContainers: list[_Container]
    containers: list[_Container]
    resources: _Resources
    overhead: Any


class _PodStatus(TypedDict, total=False):
    phase: Any
    conditions: list[_Condition]
    allocatedResources: Any
    resources: _Resources
    initContainerStatuses: list[_ContainerStatus]
    containerStatuses: list[_ContainerStatus]
    resourceClaimStatuses: Any
    extendedResourceClaimStatus: Any


class PartOfBoundPod(TypedDict, total=False):
    """What a footprint is read from."""

    metadata: _Metadata
    spec: _PodSpec
    status: _PodStatus


class _WaitingMetadata(_Metadata, total=False):
    creationTimestamp: Any
    deletionTimestamp: Any
    ownerReferences: Any


class _WaitingContainer(TypedDict, total=False):
    name: Any
    restartPolicy: Any
    resources: Any
    ports: Any


class _WaitingSpec(TypedDict, total=False):
    nodeName: Any
    schedulerName: Any
    priority: Any
    schedulingGroup: Any
    schedulingGates: Any
    resourceClaims: Any
    nodeSelector: Any
    affinity: Any
    tolerations: Any
    topologySpreadConstraints: Any
    overhead: Any
    resources: Any
    volumes: Any
    initContainers: list[_WaitingContainer]
    containers: list[_WaitingContainer]


class _WaitingStatus(TypedDict, total=False):
    phase: Any
    nominatedNodeName: Any
    conditions: Any
    resourceClaimStatuses: Any
    extendedResourceClaimStatus: Any


class PartOfWaitingPod(TypedDict, total=False):
    """What a pod is read from that waits for a node: not its annotations, nor what its containers run."""

    metadata: _WaitingMetadata
    spec: _WaitingSpec
    status: _WaitingStatus


class _NodeMetadata(_Metadata, total=False):
    labels: Any
    annotations: Any


class _NodeSpec(TypedDict, total=False):
    unschedulable: Any
    taints: Any


class _NodeStatus(TypedDict, total=False):
    allocatable: Any
    declaredFeatures: Any


class PartOfNode(TypedDict, total=False):
    """What a node is read from: not its images."""

    metadata: _NodeMetadata
    spec: _NodeSpec
    status: _NodeStatus
