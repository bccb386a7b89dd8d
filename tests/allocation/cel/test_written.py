"""Every written case has the outcome and the value that Kubernetes' own environment gives."""

import json
from typing import Any

import pytest

from tests.allocation.cel.computed import computed, plain
from tests.allocation.cel.record import FILE, told, written
from tests.allocation.cel.written.fixtures import sight
from tests.oracle_program import Oracle

RECORDED: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text().splitlines()]


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case['device']}: {case['expression']}")
def test_a_written_case_has_the_recorded_answer(case: dict[str, Any]) -> None:
    recorded = case["outcome"], plain(case["value"]) if case["outcome"] == "value" else None
    assert computed(case["expression"], sight(case["device"])) == recorded


def test_every_written_case_is_recorded() -> None:
    assert [(case["device"], case["expression"]) for case in RECORDED] == written()
    assert len(RECORDED) >= 600


def test_the_record_is_what_kubernetes_says(oracle: Oracle) -> None:
    assert json.loads(json.dumps(told(oracle))) == RECORDED
