"""One object of each kind with every field set, as resource.k8s.io/v1 and v1 write it."""

from copy import deepcopy
from typing import Any

Json = dict[str, Any]
TOLERATION = {"key": "sick", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 30}
OPAQUE = {"driver": "gpu.example.com", "parameters": {"kind": "Config", "mode": 1}}
EXACT: Json = {
    "deviceClassName": "gpu",
    "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}],
    "allocationMode": "ExactCount",
    "count": 2,
    "adminAccess": False,
    "tolerations": [TOLERATION],
    "capacity": {"requests": {"memory": "10Gi"}},
    "derivedAttributes": [{"name": "example.com/place", "expression": "'here'"}],
}
ALTERNATIVE = deepcopy({"name": "small"} | {name: value for name, value in EXACT.items() if name != "adminAccess"})
SPEC: Json = {
    "devices": {
        "requests": [{"name": "gpus", "exactly": EXACT}, {"name": "any", "firstAvailable": [ALTERNATIVE]}],
        "constraints": [
            {"requests": ["gpus"], "matchAttribute": "example.com/numa"},
            {"distinctAttribute": "example.com/root"},
        ],
        "config": [{"requests": ["gpus"], "opaque": OPAQUE}],
    }
}
SELECTOR = {
    "nodeSelectorTerms": [
        {
            "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
        }
    ]
}
RESULT: Json = {
    "request": "gpus",
    "driver": "gpu.example.com",
    "pool": "n1",
    "device": "gpu-0",
    "adminAccess": True,
    "tolerations": [TOLERATION],
    "bindingConditions": ["Ready"],
    "bindingFailureConditions": ["Failed"],
    "shareID": "11111111-2222-3333-4444-555555555555",
    "consumedCapacity": {"memory": "10Gi"},
    "skipNodeOperations": ["Prepare"],
}
CLAIM: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {
        "namespace": "ml",
        "name": "claim",
        "uid": "u1",
        "resourceVersion": "7",
        "annotations": {"resource.kubernetes.io/pod-claim-name": "gpus"},
        "finalizers": ["resource.kubernetes.io/delete-protection"],
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p1", "controller": True}],
    },
    "spec": SPEC,
    "status": {
        "allocation": {
            "devices": {
                "results": [RESULT],
                "config": [{"source": "FromClass", "requests": ["gpus"], "opaque": OPAQUE}],
            },
            "nodeSelector": SELECTOR,
            "allocationTimestamp": "2026-01-01T00:00:00Z",
        },
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "p1"}],
        "devices": [
            {
                "driver": "gpu.example.com",
                "pool": "n1",
                "device": "gpu-0",
                "shareID": "11111111-2222-3333-4444-555555555555",
                "conditions": [{"type": "Ready", "status": "True"}],
            }
        ],
    },
}
TEMPLATE: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"namespace": "ml", "name": "template"},
    "spec": {"metadata": {"labels": {"a": "b"}}, "spec": SPEC},
}
CLASS: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {
        "selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}],
        "config": [{"opaque": OPAQUE}],
        "extendedResourceName": "example.com/gpu",
    },
}
RULE: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "sick"},
    "spec": {
        "deviceSelector": {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"},
        "taint": {"key": "sick", "value": "very", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
    },
}
SLICE: Json = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "slice", "uid": "s1"},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "n1", "generation": 2, "resourceSliceCount": 1},
        "nodeName": "n1",
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {"model": {"string": "A"}, "ids": {"ints": [1, 2]}, "v": {"version": "1.2.3"}},
                "capacity": {
                    "memory": {
                        "value": "40Gi",
                        "requestPolicy": {
                            "default": "1Gi",
                            "validValues": ["1Gi", "2Gi"],
                            "validRange": {"min": "1Gi", "max": "40Gi", "step": "1Gi"},
                        },
                    }
                },
                "consumesCounters": [
                    {"counterSet": "c", "counters": {"m": {"value": "1"}}, "compatibilityGroups": ["g"]}
                ],
                "taints": [{"key": "sick", "effect": "NoSchedule"}],
                "bindsToNode": True,
                "bindingConditions": ["Ready"],
                "bindingFailureConditions": ["Failed"],
                "allowMultipleAllocations": True,
            }
        ],
        "skipNodeOperations": ["Prepare"],
    },
}
NODE: Json = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"zone": "a"}, "annotations": {"x": "y"}},
    "spec": {"unschedulable": True},
    "status": {"allocatable": {"cpu": "8", "memory": "32Gi"}, "declaredFeatures": ["DRAOptionalNodeOperations"]},
}
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "namespace": "ml",
        "name": "pod",
        "uid": "p1",
        "resourceVersion": "3",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "d1"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r1", "controller": True},
        ],
    },
    "spec": {
        "nodeName": "n1",
        "schedulerName": "default-scheduler",
        "priority": 100,
        "schedulingGroup": {"podGroupName": "group"},
        "schedulingGates": [{"name": "wait"}],
        "resourceClaims": [
            {"name": "gpus", "resourceClaimTemplateName": "template"},
            {"name": "shared", "resourceClaimName": "claim"},
        ],
        "initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "init"}],
        "containers": [
            {"name": "main", "resources": {"requests": {"cpu": "500m"}, "claims": [{"name": "gpus", "request": "r"}]}}
        ],
    },
    "status": {
        "phase": "Pending",
        "nominatedNodeName": "n2",
        "resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": "pod-gpus-x"}, {"name": "none"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "pod-extended"},
    },
}
EVERY = {raw["kind"]: raw for raw in (SLICE, CLAIM, TEMPLATE, CLASS, RULE, NODE, POD)}
