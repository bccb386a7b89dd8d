"""The recorded questions for Kubernetes' allocator: not always valid, and always readable."""

import json
from pathlib import Path
from typing import Any

import pytest

from extender.model import encode
from extender.model.change import problem_in
from extender.model.parse import parse_claim, parse_class, parse_node, parse_slice
from tests.model.parse.reading import read_claim

CASES = Path(__file__).parents[4] / "shared" / "data" / "conformance" / "allocator-1.37.jsonl"

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the recorded conformance cases are not here")


def recorded(name: str) -> list[Any]:
    """Return all objects that the cases have under *name*."""
    cases = [json.loads(line)[name] for line in CASES.read_text().splitlines()]
    found = [raw for case in cases for raw in (case if isinstance(case, list) else [case])]
    assert found
    return found


@pytest.mark.parametrize(
    ("name", "parse"),
    [("slices", parse_slice), ("claims", parse_claim), ("classes", parse_class), ("node", parse_node)],
    ids=["slices", "claims", "classes", "nodes"],
)
def test_every_recorded_object_is_read_and_none_of_its_fields_is_unknown(name: str, parse: Any) -> None:
    read = [parse(raw) for raw in recorded(name)]
    assert [problem for problem in map(problem_in, read) if problem] == []
    assert [item for item in read if "unknown_fields=('" in repr(item)] == []


def test_every_recorded_allocation_is_read_without_loss() -> None:
    for raw in recorded("results"):
        claim = read_claim({"metadata": {"name": "c"}, "status": {"allocation": raw}})
        assert claim.allocation is not None
        assert encode.allocation(claim.allocation) == raw
