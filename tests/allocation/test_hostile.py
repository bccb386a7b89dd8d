"""Questions that were made to take long: each is decided or given up within its steps, and never answered wrongly."""

import json

import pytest

from extender.cli.allocate import MANNERS, answer
from tests.allocation.hostile import FILE, KEPT, steps
from tests.oracle_program import Oracle

LINES = FILE.read_bytes().splitlines()
DRIVER = "gpu.example.com"


def test_the_worst_that_were_found_are_kept() -> None:
    assert len(LINES) == KEPT
    assert min(steps(json.loads(line)) for line in LINES) > 1000


@pytest.mark.parametrize("order", MANNERS)
def test_a_hostile_question_is_never_answered_wrongly(oracle: Oracle, order: str) -> None:
    ours = [answer(line, MANNERS[order])["nodes"]["n1"] for line in LINES]
    assert all(told["nodeError"] or told["fits"] is not None for told in ours)
    decided = [(line, told["fits"]) for line, told in zip(LINES, ours, strict=True) if told["fits"] is not None]
    theirs = oracle.ask("allocate", [json.loads(line) for line, _ in decided])
    for (_, fits), told in zip(decided, theirs, strict=True):
        # Kubernetes gives up by the clock, which is an error there.
        assert told["nodes"]["n1"]["fatalError"] or told["nodes"]["n1"]["fits"] == fits


def device(index: int) -> dict[str, object]:
    return {"name": f"d{index:02}", "attributes": {"numa": {"int": index}, "root": {"string": f"pci{index}"}}}


def asked(count: int, name: str) -> dict[str, object]:
    return {"name": name, "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}}


@pytest.mark.parametrize("order", MANNERS)
@pytest.mark.parametrize("constraint", ["matchAttribute", "distinctAttribute"])
def test_six_devices_and_two_that_cannot_agree_are_decided_at_once(order: str, constraint: str) -> None:
    # By combinations: 24 over 6 times 18 over 2 are twenty million.
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    devices = [device(index if constraint == "matchAttribute" else 0) | {"name": f"d{index}"} for index in range(24)]
    spec = {"driver": DRIVER, "nodeName": "n1", "pool": pool, "devices": devices}
    constraints = [{constraint: f"{DRIVER}/numa", "requests": ["two"]}]
    claim = {"requests": [asked(6, "six"), asked(2, "two")], "constraints": constraints}
    case = {
        "name": "impossible",
        "node": {"metadata": {"name": "n1"}},
        "classes": [{"metadata": {"name": "gpu"}}],
        "slices": [{"metadata": {"name": "s"}, "spec": spec}],
        "claims": [{"metadata": {"name": "c", "namespace": "ns"}, "spec": {"devices": claim}}],
    }
    told = answer(json.dumps(case).encode(), MANNERS[order])["nodes"]["n1"]
    assert told["fits"] is False
    assert "of gpu.example.com/numa" in told["reason"]
    assert steps(case) < 200
