"""What a share takes of a capacity, as kube-scheduler's allocator says it, where amounts are at the edge of int64."""

import json
from typing import Any

import pytest

from extender.cli.allocate import MANNERS, answer
from tests.oracle_program import Oracle

Json = dict[str, Any]
STEPS = {"min": "4", "step": "4"}


def case(name: str, value: str, policy: Json, *asked: str, **fields: Any) -> Json:
    """Ask for shares of one device; an amount of "" is none."""
    capacity = {"memory": {"value": value, "requestPolicy": policy}}
    devices = [{"name": "d", "allowMultipleAllocations": True, "capacity": capacity}]
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": devices}
    requests = [
        {"name": f"r{number}", "exactly": {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1} | body}
        for number, amount in enumerate(asked)
        for body in [{"capacity": {"requests": {"memory": amount}}} if amount else {}]
    ]
    return {
        "name": name,
        "nodes": [{"metadata": {"name": "n1"}}],
        "classes": [{"metadata": {"name": "any"}, "spec": {}}],
        "slices": [{"metadata": {"name": "slice"}, "spec": spec}],
        "claims": [{"metadata": {"namespace": "ns", "name": "c"}, "spec": {"devices": {"requests": requests}}}],
    } | fields


def stepped(default: str, **limits: str) -> Json:
    return {"default": default, "validRange": STEPS | limits}


CASES = (
    (case("a default that int64 cannot hold in milli units", "9Pi", stepped("9Pi"), ""), "refused"),
    (case("beside one who asks for as much", "9Pi", stepped("9Pi"), "", "9Pi"), "refused"),
    (case("to ask for as much is an error", "9Pi", stepped("9Pi"), "9Pi"), "error"),
    (case("the same that Go does not hold as a decimal", "16P", stepped("10P"), ""), "given"),
    (case("the last that int64 can hold", "9Pi", stepped("8Pi"), ""), "given"),
    (case("limits that int64 cannot hold either", "9Pi", stepped("9Pi", max="9Pi"), ""), "given"),
    (case("whole units", "9Pi", stepped("9Pi"), "", features=["DRAConsumableCapacity"]), "given"),
    (case("values", "9Pi", {"default": "9Pi", "validValues": ["9Pi"]}, ""), "given"),
    (case("off the grid, held as a decimal", "9Pi", stepped("5000000000000Ki", min="3", step="3"), ""), "refused"),
    (case("off the grid, held as an integer", "16P", stepped("10P", min="3", step="3"), ""), "given"),
)


@pytest.mark.parametrize("order", MANNERS)
@pytest.mark.parametrize(("asked", "outcome"), CASES, ids=[asked["name"] for asked, _ in CASES])
def test_a_default_at_the_edge_of_int64_is_given_where_kubernetes_gives_it(
    asked: Json, outcome: str, order: str
) -> None:
    assert said(answer(json.dumps(asked).encode(), MANNERS[order])["nodes"]["n1"]) == outcome


def test_kubernetes_says_the_same(oracle: Oracle) -> None:
    told = oracle.ask("allocate", [asked for asked, _ in CASES])
    assert [said(item["nodes"]["n1"]) for item in told] == [outcome for _, outcome in CASES]


def said(node: Json) -> str:
    if node["nodeError"] or node["fatalError"]:
        return "error"
    return "given" if node["fits"] else "refused"
