"""What drawn clusters have found once: the smallest questions to which the answer was wrong."""

import json
from typing import Any

import pytest

from extender.cli.allocate import MANNERS, answer
from tests.allocation.checker import violations

Json = dict[str, Any]
GPU = "gpu.example.com"
EXACT = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}


def asked(requests: list[Json], device: Json, constraints: list[Json], **more: Any) -> Json:
    config = [{"opaque": {"driver": GPU, "parameters": {}}}]
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": GPU, "pool": pool, "nodeName": "node-1", "devices": [{"name": "d0"} | device]}
    devices = {"requests": requests, "constraints": constraints}
    return {
        "name": "found",
        "node": {"metadata": {"name": "node-1"}},
        "classes": [
            {"metadata": {"name": "gpu"}, "spec": {}},
            {"metadata": {"name": "configured"}, "spec": {"config": config}},
        ],
        "slices": [{"metadata": {"name": "s0"}, "spec": spec}],
        "claims": [{"metadata": {"name": "c0"}, "spec": {"devices": devices}}],
    } | more


def answered(case: Json, order: str) -> Json:
    told: Json = answer(json.dumps(case).encode(), MANNERS[order])["nodes"]["node-1"]
    return told


@pytest.mark.parametrize("order", MANNERS)
def test_list_matches_nothing_without_its_gate_not_even_itself(order: str) -> None:
    requests = [{"name": "r0", "exactly": EXACT}, {"name": "r1", "exactly": EXACT}]
    device = {"allowMultipleAllocations": True, "attributes": {"links": {"ints": [3]}}}
    constraints = [{"matchAttribute": f"{GPU}/links"}]
    case = asked(requests, device, constraints, features=["DRAConsumableCapacity"])
    assert answered(case, order)["fits"] is False
    assert answered(case | {"features": ["DRAConsumableCapacity", "DRAListTypeAttributes"]}, order)["fits"] is True


@pytest.mark.parametrize("order", MANNERS)
def test_alternative_that_takes_no_device_brings_its_own_configuration(order: str) -> None:
    two_devices = {"name": "two", **EXACT, "count": 2}
    none = {"name": "none", **EXACT, "deviceClassName": "configured", "count": 0}
    case = asked([{"name": "r0", "firstAvailable": [two_devices, none]}], {}, [])
    told = answered(case, order)
    assert violations(case, case["node"], told["allocations"]) == []
    assert told["allocations"][0]["devices"]["config"] == [
        {"source": "FromClass", "opaque": {"driver": GPU, "parameters": {}}}
    ]


@pytest.mark.parametrize("order", MANNERS)
@pytest.mark.parametrize("step", ["0", "-500m"])
@pytest.mark.parametrize("amount", ["0", "2"])
def test_range_without_a_grid_is_an_error_of_the_device(order: str, step: str, amount: str) -> None:
    policy = {"validRange": {"min": "0", "step": step}}
    device = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "4", "requestPolicy": policy}}}
    for asking in ({"capacity": {"requests": {"memory": amount}}}, {}):
        told = answered(asked([{"name": "r0", "exactly": EXACT | asking}], device, []), order)
        assert told["fits"] is False
        assert "has no grid" in told["nodeError"] + told["fatalError"]
