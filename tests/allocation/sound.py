"""A sound allocation with a little of everything in it."""

from copy import deepcopy
from typing import Any

Json = dict[str, Any]

GPU = "gpu.example.com"


def _case() -> Json:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
    partition = {"counterSet": "set", "counters": {"slots": {"value": "2"}}, "compatibilityGroups": ["mig"]}
    devices = [
        _device("d0", numa=0, consumesCounters=[partition]),
        _device("d1", numa=0, taints=[{"key": "old", "effect": "NoSchedule"}]),
        _device("d2", numa=1, bindingConditions=["attached"], bindingFailureConditions=["broken"]),
        _device(
            "d3",
            numa=1,
            allowMultipleAllocations=True,
            capacity={"memory": {"value": "4", "requestPolicy": {"default": "1", "validValues": ["1", "2"]}}},
        ),
    ]
    counters = {"sharedCounters": [{"name": "set", "counters": {"slots": {"value": "3"}}}]}
    other = {"devices": [_device("elsewhere", numa=0)], "nodeName": "node-2"}
    return {
        "node": {
            "metadata": {"name": "node-1", "labels": {"zone": "a"}},
            "status": {"declaredFeatures": ["DRAOptionalNodeOperations"]},
        },
        "classes": [{"metadata": {"name": "gpu"}, "spec": {"selectors": [_cel(f"device.driver == '{GPU}'")]}}],
        "slices": [
            _slice("s0", 3, {"nodeSelector": selector, "devices": devices, "skipNodeOperations": ["*"]}),
            _slice("s1", 3, {"allNodes": True} | counters),
            _slice("s2", 3, other),
        ],
        "claims": [_first_claim(), _second_claim()],
    }


def _first_claim() -> Json:
    tolerations = [{"key": "old", "operator": "Exists"}]
    pair = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2, "tolerations": tolerations}
    pair["selectors"] = [_cel(f"device.attributes['{GPU}'].numa == 0")]
    single = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    return {
        "metadata": {"name": "c0"},
        "spec": {
            "devices": {
                "requests": [
                    {"name": "pair", "exactly": pair},
                    {"name": "one", "firstAvailable": [{"name": "far", **single}, {"name": "near", **single}]},
                ],
                "constraints": [
                    {"matchAttribute": f"{GPU}/numa", "requests": ["pair"]},
                    {"distinctAttribute": f"{GPU}/serial"},
                ],
                "config": [
                    {"requests": ["pair"], "opaque": {"driver": GPU, "parameters": {}}},
                    {"requests": ["one/far"], "opaque": {"driver": GPU, "parameters": {}}},
                ],
            }
        },
    }


def _second_claim() -> Json:
    share = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    share["capacity"] = {"requests": {"memory": "1500m"}}
    share["selectors"] = [_cel("device.allowMultipleAllocations")]
    return {"metadata": {"name": "c1"}, "spec": {"devices": {"requests": [{"name": "share", "exactly": share}]}}}


def _allocations() -> list[Json]:
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
    tolerations = [{"key": "old", "operator": "Exists"}]
    results = [
        _result("pair", "d0", tolerations=tolerations),
        _result("pair", "d1", tolerations=tolerations),
        _result("one/near", "d2", bindingConditions=["attached"], bindingFailureConditions=["broken"]),
    ]
    config = [{"source": "FromClaim", "requests": ["pair"], "opaque": {"driver": GPU, "parameters": {}}}]
    share = _result("share", "d3", shareID="1", consumedCapacity={"memory": "2"})
    return [
        {"devices": {"results": results, "config": config}, "nodeSelector": selector},
        {"devices": {"results": [share]}, "nodeSelector": deepcopy(selector)},
    ]


def _device(name: str, *, numa: int, **body: Any) -> Json:
    return {"name": name, "attributes": {"numa": {"int": numa}, "serial": {"string": name}}} | body


def _slice(name: str, count: int, body: Json) -> Json:
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": count}
    return {"metadata": {"name": name}, "spec": {"driver": GPU, "pool": pool} | body}


def _result(request: str, device: str, **body: Any) -> Json:
    result = {"request": request, "driver": GPU, "pool": "pool", "device": device}
    return result | body | {"skipNodeOperations": ["*"]}


def _cel(text: str) -> Json:
    return {"cel": {"expression": text}}


BASE = (_case(), _allocations())
