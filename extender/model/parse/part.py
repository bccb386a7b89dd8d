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
    restartPolicy: Any
    resources: _Resources


class _PodSpec(TypedDict, total=False):
    nodeName: Any
    initContainers: list[_Container]
    containers: list[_Container]
    resources: _Resources
    overhead: Any


class _PodStatus(TypedDict, total=False):
    phase: Any


class PartOfBoundPod(TypedDict, total=False):
    """What a footprint is read from."""

    metadata: _Metadata
    spec: _PodSpec
    status: _PodStatus


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
